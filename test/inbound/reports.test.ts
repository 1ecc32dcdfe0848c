/** DMARC and TLS reports: read from whatever they are packed in, kept once and within bounds, shown by the API. */
import { deflateRawSync, gzipSync } from 'node:zlib'
import { zipSync } from 'fflate'
import t from 'tap'
import { SHELL } from '../../src/core/actor.js'
import { reportRoutes } from '../../src/deliverability/reports/report-routes.js'
import { reportStatisticsRoute } from '../../src/deliverability/reports/report-statistics-route.js'
import { addDomain } from '../../src/deliverability/domains/domains.js'
import { readReport, unpack } from '../../src/inbound/reports/read-report.js'
import { findAttachments } from '../../src/inbound/reading/read-inbound-mail.js'
import { fakeDns, type FakeZone } from '../../src/world/dns/fake-dns.js'
import { serveRoutes } from '../support/api/api.js'
import { domainOffice } from '../support/domains.js'
import { BOUNCE_DOMAIN, crlf, openInboundTest } from '../support/inbound.js'

const DMARC_ADDRESS = `dmarc@${BOUNCE_DOMAIN}`
const TLSRPT_ADDRESS = `tlsrpt@${BOUNCE_DOMAIN}`

const record = (ip: string, count: number, dkim = 'pass', disposition = 'none') => `
<record>
  <row><source_ip>${ip}</source_ip><count>${count}</count>
    <policy_evaluated><disposition>${disposition}</disposition><dkim>${dkim}</dkim><spf>fail</spf></policy_evaluated></row>
  <identifiers><header_from>example.com</header_from><envelope_from>bounce.example.com</envelope_from></identifiers>
  <auth_results>
    <dkim><domain>example.com</domain><selector>s1</selector><result>${dkim}</result></dkim>
    <spf><domain>bounce.example.com</domain><scope>mfrom</scope><result>pass</result></spf>
  </auth_results>
</record>`

const dmarc = ({ id = 'r-1', domain = 'example.com', records = record('192.0.2.1', 3) } = {}) =>
  `<?xml version="1.0" encoding="UTF-8" ?>
<feedback>
  <version>1.0</version>
  <report_metadata><org_name>Receiver &amp; Co</org_name><email>dmarc@receiver.example</email>
    <report_id>${id}</report_id><date_range><begin>1767571200</begin><end>1767657599</end></date_range></report_metadata>
  <policy_published><domain>${domain}</domain><adkim>r</adkim><aspf>r</aspf><p>reject</p><sp>none</sp><pct>100</pct></policy_published>
  ${records}
</feedback>`

const TLS_REPORT = {
  'organization-name': 'Company-X',
  'date-range': { 'start-datetime': '2026-01-04T00:00:00Z', 'end-datetime': '2026-01-04T23:59:59Z' },
  'contact-info': 'sts-reporting@company-x.example',
  'report-id': '5065427c-23d3',
  policies: [
    {
      policy: {
        'policy-type': 'sts',
        'policy-string': ['version: STSv1', 'mode: testing'],
        'policy-domain': 'Example.com',
        'mx-host': '*.mail.example.com',
      },
      summary: { 'total-successful-session-count': 5326, 'total-failure-session-count': 303 },
      'failure-details': [
        {
          'result-type': 'certificate-expired',
          'sending-mta-ip': '2001:db8::1',
          'receiving-mx-hostname': 'mx1.mail.example.com',
          'failed-session-count': 100,
        },
      ],
    },
  ],
}

/** A mail with the report attached. */
function mailWith(
  octets: Buffer | Uint8Array | string,
  type = 'application/gzip',
  name = 'report.xml.gz',
): string {
  return crlf(`
From: noreply@receiver.example
Subject: Report domain: example.com
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b 1"

--b 1
Content-Type: text/plain

{ this is text and no report }
--b 1
Content-Type: ${type}; name="${name}"
Content-Disposition: attachment; filename="${name}"
Content-Transfer-Encoding: base64

${Buffer.from(octets).toString('base64').replace(/.{76}/g, '$&\n')}
--b 1--
`)
}

/** The client of the tests, 192.0.2.1, may send mail of receiver.example. */
const ZONE: FakeZone = {
  'receiver.example': { TXT: ['v=spf1 ip4:192.0.2.1 -all'] },
  'other.example': { TXT: ['v=spf1 -all'] },
  'silent.example': 'servfail',
}

async function openReports(t: Parameters<typeof openInboundTest>[0]) {
  const inbound = await openInboundTest(t, { resolver: fakeDns(ZONE) })
  const { parts } = domainOffice(inbound.database)
  const domain = await addDomain(parts, 'w1', 'example.com', SHELL)
  const setVerified = (id: string, verifiedAt: number | null) =>
    inbound.database.write(({ db }) =>
      db.updateTable('domains').set({ verified_at: verifiedAt }).where('id', '=', id).execute(),
    )
  await setVerified(domain.id, parts.clock.now())
  const foreign = await addDomain(parts, 'w2', 'other.example', SHELL)
  const { reader } = inbound.database
  const addresses = async () => ['192.0.2.1']
  const api = await serveRoutes(t, [
    ...reportRoutes(reader),
    reportStatisticsRoute({ reader, slowReader: reader, clock: parts.clock, sendingAddresses: addresses }),
  ])
  const sum = async (query: string) => {
    const { json, status } = await api.ask({ path: `/api/v1/domains/${domain.id}/report-statistics${query}` })
    return status === 200 ? (json as { data: object }).data : status
  }
  const list = async (query = '') => {
    const { json, status } = await api.ask({ path: `/api/v1/domains/${domain.id}/reports${query}` })
    return { status, ...(json as { data: { id: string }[]; pagination: { total: number } }) }
  }
  return { ...inbound, parts, api, domain, foreign, list, sum, setVerified }
}

t.test('a DMARC report is read from gzip, zip and plain XML, attached or as the mail itself', async t => {
  const { take, list } = await openReports(t)
  const xml = (id: string) => Buffer.from(dmarc({ id }))
  const mails = [
    mailWith(gzipSync(xml('a'))),
    mailWith(zipSync({ 'folder/': new Uint8Array(), 'folder/r.xml': xml('b') }), 'application/zip', 'r.zip'),
    mailWith(xml('c'), 'text/xml', 'r.xml'),
    mailWith(gzipSync(zipSync({ 'r.xml': xml('d') })), 'application/octet-stream', 'r'),
    `Content-Type: application/gzip\r\nContent-Transfer-Encoding: base64\r\n\r\n${gzipSync(xml('e')).toString('base64')}\r\n`,
    crlf(`\nSubject: x\n\n${dmarc({ id: 'f' })}`),
  ]
  for (const mail of mails) t.equal((await take(DMARC_ADDRESS, mail)).result, 'report')
  t.equal((await list()).pagination.total, mails.length)
})

t.test('a DMARC report is shown with its totals, and one by one with its records', async t => {
  const { take, list, api, domain } = await openReports(t)
  const records = record('192.0.2.1', 3) + record('192.0.2.9', 7, 'fail', 'reject')
  await take(DMARC_ADDRESS, mailWith(gzipSync(dmarc({ records }))))
  const { data } = await list()
  t.match(data, [
    {
      kind: 'dmarc',
      domain: 'example.com',
      org_name: 'Receiver & Co',
      report_id: 'r-1',
      begin_at: '2026-01-05T00:00:00.000Z',
      end_at: '2026-01-05T23:59:59.000Z',
      summary: {
        policy: 'reject',
        messages: 10,
        passed: 3,
        quarantined: 0,
        rejected: 7,
        records: 2,
        is_truncated: false,
      },
    },
  ])
  t.notOk('records' in data[0]!, 'a list stays small')
  const { json } = await api.ask({ path: `/api/v1/domains/${domain.id}/reports/${data[0]!.id}` })
  t.match(json, {
    data: {
      records: [
        {
          source_ip: '192.0.2.1',
          count: 3,
          dkim: 'pass',
          spf: 'fail',
          disposition: 'none',
          header_from: 'example.com',
          dkim_results: [{ domain: 'example.com', selector: 's1', result: 'pass' }],
          spf_results: [{ domain: 'bounce.example.com', scope: 'mfrom', result: 'pass' }],
        },
        { source_ip: '192.0.2.9', disposition: 'reject' },
      ],
    },
  })
})

t.test('a TLS report is kept with its failures', async t => {
  const { take, list, api, domain } = await openReports(t)
  const mail = mailWith(gzipSync(JSON.stringify(TLS_REPORT)), 'application/tlsrpt+gzip', 'r.json.gz')
  t.match(await take(TLSRPT_ADDRESS, mail), {
    result: 'report',
    findings: [{ detail: 'tlsrpt of Company-X about example.com' }],
  })
  const { data } = await list('?kind=tlsrpt')
  t.match(data, [
    {
      kind: 'tlsrpt',
      summary: { succeeded: 5326, failed: 303, policies: [{ type: 'sts', strings: { length: 2 } }] },
    },
  ])
  const { json } = await api.ask({ path: `/api/v1/domains/${domain.id}/reports/${data[0]!.id}` })
  t.match(json, { data: { records: [{ result_type: 'certificate-expired', failed_sessions: 100 }] } })
})

t.test('the same report again is kept once; one about a domain that is not here not at all', async t => {
  const { take, list } = await openReports(t)
  const mail = mailWith(gzipSync(dmarc()))
  await take(DMARC_ADDRESS, mail)
  t.equal((await take(DMARC_ADDRESS, mail)).result, 'report_known')
  t.match(await take(DMARC_ADDRESS, mailWith(gzipSync(dmarc({ domain: 'elsewhere.example' })))), {
    result: 'foreign_report',
    findings: [{ detail: 'elsewhere.example' }],
  })
  t.equal((await list()).pagination.total, 1)
})

t.test('a report about a subdomain belongs to the verified domain above it', async t => {
  const { take, list } = await openReports(t)
  const about = (domain: string, id: string) => mailWith(gzipSync(dmarc({ domain, id })))
  t.equal((await take(DMARC_ADDRESS, about('news.example.com', 'sub'))).result, 'report')
  t.equal((await take(DMARC_ADDRESS, about('a.b.example.com', 'deep'))).result, 'report')
  t.equal((await take(DMARC_ADDRESS, about('notexample.com', 'other'))).result, 'foreign_report')
  const { data, pagination } = await list()
  t.equal(pagination.total, 2)
  t.match(
    new Set(data.map(report => (report as unknown as { summary: { domain: string } }).summary.domain)),
    new Set(['news.example.com', 'a.b.example.com']),
  )
})

t.test('a TLS report about a subdomain belongs to the verified domain above it', async t => {
  const { take, list } = await openReports(t)
  const report = JSON.stringify(TLS_REPORT).replace('"Example.com"', '"mail.example.com"')
  t.equal((await take(TLSRPT_ADDRESS, mailWith(gzipSync(report)))).result, 'report')
  t.equal((await list('?kind=tlsrpt')).pagination.total, 1)
})

t.test(
  'a subdomain added elsewhere without proof takes no reports away; a verified one gets its own',
  async t => {
    const { take, list, parts, setVerified } = await openReports(t)
    const claimed = await addDomain(parts, 'w2', 'news.example.com', SHELL)
    const about = (id: string) => mailWith(gzipSync(dmarc({ domain: 'news.example.com', id })))
    await take(DMARC_ADDRESS, about('before'))
    t.equal((await list()).pagination.total, 1)
    await setVerified(claimed.id, parts.clock.now())
    await take(DMARC_ADDRESS, about('after'))
    t.equal((await list()).pagination.total, 1)
  },
)

t.test('a report below a domain that is not verified is foreign', async t => {
  const { take } = await openReports(t)
  const mail = mailWith(gzipSync(dmarc({ domain: 'news.other.example' })))
  t.equal((await take(DMARC_ADDRESS, mail)).result, 'foreign_report')
})

t.test('a report in UTF-16 or a declared charset is read, whatever it wrongly declares', async t => {
  const { take, list } = await openReports(t)
  const declared = (id: string, encoding: string) =>
    dmarc({ id }).replace('UTF-8', encoding).replace('&amp;', 'ü')
  const little = (text: string) => Buffer.from(text, 'utf16le')
  const big = (text: string) => little(text).swap16()
  const documents = [
    little(`\ufeff${declared('le', 'UTF-16')}`),
    big(`\ufeff${declared('be', 'UTF-16')}`),
    little(declared('le-no-mark', 'UTF-16LE')),
    big(declared('be-no-mark', 'UTF-16BE')),
    Buffer.from(declared('false', 'utf-16')),
    Buffer.from(declared('latin', 'ISO-8859-1'), 'latin1'),
  ]
  for (const [index, document] of documents.entries()) {
    const mail = index % 2 === 0 ? mailWith(gzipSync(document)) : mailWith(document, 'text/xml', 'r.xml')
    t.equal((await take(DMARC_ADDRESS, mail)).result, 'report', `document ${index}`)
  }
  const { data } = await list()
  t.equal(data.length, documents.length)
  for (const report of data) t.match(report, { org_name: 'Receiver ü Co' })
})

t.test('no more than so many reports a day are kept for a domain', async t => {
  const { receive, settled, list } = await openReports(t)
  const one = (n: number) => mailWith(dmarc({ id: `flood-${n}` }), 'text/xml', 'r.xml')
  await Promise.all(Array.from({ length: 505 }, (_, n) => receive(DMARC_ADDRESS, one(n))))
  await settled()
  t.equal((await list()).pagination.total, 500)
})

t.test('reports are filtered by kind and time, paged, and shown to their own workspace only', async t => {
  const { take, list, api, foreign, domain } = await openReports(t)
  for (const id of ['a', 'b', 'c']) await take(DMARC_ADDRESS, mailWith(dmarc({ id }), 'text/xml', 'r.xml'))
  await take(TLSRPT_ADDRESS, mailWith(JSON.stringify(TLS_REPORT), 'application/json', 'r.json'))
  t.equal((await list('?kind=dmarc')).pagination.total, 3)
  t.equal((await list('?since=2026-01-05')).pagination.total, 3)
  t.equal((await list('?since=2026-01-06T00:00:00Z')).pagination.total, 0)
  t.match(await list('?limit=1&offset=3'), { data: { length: 1 }, pagination: { total: 4, has_more: false } })
  t.match(await api.ask({ path: `/api/v1/domains/${domain.id}/reports?since=yesterday` }), {
    status: 400,
    json: { error: { code: 'validation_error', path: 'since' } },
  })
  t.equal((await list('?kind=spam')).status, 400)
  t.equal((await api.ask({ path: `/api/v1/domains/${foreign.id}/reports` })).status, 404)
  t.equal((await api.ask({ path: `/api/v1/domains/${domain.id}/reports/nonsense` })).status, 404)
  t.equal((await api.ask({ path: `/api/v1/domains/${domain.id}/reports`, key: 'reader' })).status, 403)
})

t.test(
  'reports are shown only to workspaces with the domain verified, and only while it is verified',
  async t => {
    const { take, parts, api, list, domain, setVerified } = await openReports(t)
    await take(DMARC_ADDRESS, mailWith(dmarc(), 'text/xml', 'r.xml'))
    const [report] = (await list()).data
    const other = await addDomain(parts, 'w3', 'example.com', SHELL)
    const parent = await addDomain(parts, 'w3', 'sub.example.com', SHELL)
    await setVerified(parent.id, parts.clock.now())
    const ask = (id: string, more = '') =>
      api.ask({ path: `/api/v1/domains/${id}/reports${more}`, key: 'other_workspace' })
    const refusal = {
      status: 403,
      json: { error: { code: 'domain_invalid', message: /example.com is not verified/ } },
    }
    t.match(await ask(other.id), refusal)
    t.match(await ask(other.id, `/${report!.id}`), refusal)
    t.match(
      await ask(parent.id),
      { status: 200, json: { pagination: { total: 0 } } },
      'a subdomain has its own',
    )
    t.equal((await ask(parent.id, `/${report!.id}`)).status, 404)
    await setVerified(other.id, parts.clock.now())
    t.match(await ask(other.id), { status: 200, json: { pagination: { total: 1 } } })
    await setVerified(domain.id, null)
    t.equal((await list()).status, 403, 'a lost verification')
  },
)

t.test('mail without a report is distinguished from damaged reports', async t => {
  const { take } = await openReports(t)
  const failed = async (octets: Buffer | Uint8Array | string, detail: RegExp) =>
    t.match(await take(DMARC_ADDRESS, mailWith(octets)), { result: 'failed', findings: [{ detail }] })
  t.equal((await take(DMARC_ADDRESS, crlf('\nSubject: hello\n\nHello\n'))).result, 'other')
  t.equal((await take(DMARC_ADDRESS, mailWith('<html>no report</html>', 'text/html'))).result, 'other')
  await failed(gzipSync(dmarc()).subarray(0, 100), /malformed gzip/)
  await failed(dmarc().slice(0, 700), /malformed XML/)
  await failed(dmarc().replace('example.com</domain>', '</domain>'), /invalid domain/)
  await failed(dmarc().replace(/<begin>\d+/, '<begin>99999999999'), /invalid report period/)
  await failed(dmarc({ id: ' ' }), /missing report_id/)
  await failed('{"organization-name": ', /malformed JSON/)
  await failed('{"report-id": "1"}', /missing organization-name/)
})

t.test('a packed report is never unpacked beyond its limit', t => {
  const zeros = Buffer.alloc(50_000_000, 0x20)
  for (const bomb of [
    gzipSync(zeros),
    Buffer.from(zipSync({ 'r.xml': zeros })),
    gzipSync(zipSync({ 'r.xml': zeros })),
    // Says of itself that it is small.
    lyingZip(zeros),
  ]) {
    t.ok(bomb.length < 100_000)
    t.throws(() => unpack(bomb), { message: /larger than 10 MB unpacked/ })
  }
  t.throws(() => unpack(gzipSync(gzipSync(gzipSync('x')))), { message: /packed more than twice/ })
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`${n}.xml`, new Uint8Array()]))
  t.throws(() => unpack(Buffer.from(zipSync(many))), { message: /too many files/ })
  t.end()
})

/** A local file header that gives 10 octets where there are millions. */
function lyingZip(content: Buffer): Buffer {
  const packed = deflateRawSync(content)
  const header = Buffer.alloc(30)
  header.write('PK\x03\x04', 'latin1')
  header.writeUInt16LE(20, 4)
  header.writeUInt16LE(8, 8)
  header.writeUInt32LE(packed.length, 18)
  header.writeUInt32LE(10, 22)
  header.writeUInt16LE(1, 26)
  return Buffer.concat([header, Buffer.from('r'), packed])
}

t.test('entities are not expanded, depth and number of records are bounded', t => {
  const laughs = dmarc().replace(
    '<feedback>',
    '<!DOCTYPE feedback [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;">]><feedback>&b;',
  )
  t.throws(() => readReport(Buffer.from(laughs)), { message: /document type/ })
  const deep = dmarc({ records: '<record>'.repeat(10_000) })
  t.throws(() => readReport(Buffer.from(deep)), { message: /nested too deep/ })
  const long = dmarc({ records: record('192.0.2.1', 1).repeat(3_000) })
  const [report] = readReport(Buffer.from(long))
  t.equal(report!.records.length, 1_000)
  t.match(report!.summary, { messages: 3_000, records: 3_000, is_truncated: true })
  const wordy = dmarc({ id: 'x'.repeat(1_000_000) })
  t.equal(readReport(Buffer.from(wordy))[0]!.reportId.length, 255)
  t.end()
})

t.test('what is in one mail unpacks to no more than one report may, however many files it has', async t => {
  const { take } = await openReports(t)
  const large = gzipSync(dmarc({ records: ' '.repeat(4_000_000) }))
  const parts = Array.from(
    { length: 20 },
    () =>
      `--b\nContent-Type: application/gzip\nContent-Transfer-Encoding: base64\n\n${large.toString('base64')}\n`,
  )
  const mail = crlf(`\nSubject: x\nContent-Type: multipart/mixed; boundary=b\n\n${parts.join('')}--b--\n`)
  const { findings } = await take(DMARC_ADDRESS, mail)
  t.same(
    findings.map(({ result }) => result),
    ['report', 'report_known'],
  )
})

t.test('a report of nothing but values, elements or brackets is given up at once', t => {
  const json = (policies: string) => Buffer.from(`{"report-id": "1", "policies": [${policies}]}`)
  t.throws(() => readReport(json('{},'.repeat(2_000_000))), { message: /too many values/ })
  t.throws(() => readReport(json('['.repeat(1_000_000))), { message: /nested too deep/ })
  // Braces within text are text.
  t.throws(() => readReport(json(`"${'[\\"{'.repeat(100_000)}"`)), { message: /missing organization-name/ })
  t.throws(() => readReport(Buffer.from(dmarc({ records: '<a/>'.repeat(2_000_000) }))), {
    message: /too many elements/,
  })
  t.throws(() => readReport(Buffer.from(dmarc({ records: `<a ${'b="c" '.repeat(100_000)}/>` }))), {
    message: /malformed XML/,
  })
  // What took a general parser an object for each character.
  const brackets = dmarc({ id: `<![CDATA[${']'.repeat(9_000_000)}]]>` })
  t.equal(readReport(Buffer.from(brackets))[0]!.reportId.length, 255)
  const references = dmarc({ id: '&#65;'.repeat(1_000_000) })
  t.match(readReport(Buffer.from(references))[0]!.reportId, /^A{255}$/)
  t.end()
})

t.test('what XML allows and reporters write is read', t => {
  const odd = dmarc({ id: '<![CDATA[<r&1>]]>' })
    .replace('<feedback>', '<!-- > --><f:feedback xmlns:f="urn:x" a=\'>\'>')
    .replace('</feedback>', '</f:feedback >\n<!-- end -->')
    .replace('Receiver &amp; Co', 'R&#38;D & S&#xf6;hne')
    .replace('<sp>none</sp>', '<sp/>')
  const [report] = readReport(Buffer.from(odd))
  t.match(report, {
    reportId: '<r&1>',
    orgName: 'R&D & Söhne',
    domain: 'example.com',
    records: { length: 1 },
  })
  for (const broken of ['</version>', '<1a>', '<a', '<a b="', '<!--', '<![CDATA[', '</'])
    t.throws(() => readReport(Buffer.from(dmarc().replace('<version>', broken))), { message: /XML/ }, broken)
  t.throws(() => readReport(Buffer.from(`${dmarc()}<feedback/>`)), { message: /malformed XML/ })
  t.end()
})

t.test('attachments of a mail nested and broken in every way are found within bounds', t => {
  const nest = (depth: number): string =>
    depth === 0
      ? 'Content-Type: text/plain\r\n\r\nin the middle'
      : `Content-Type: multipart/mixed; boundary=b${depth}\r\n\r\n--b${depth}\r\n${nest(depth - 1)}\r\n--b${depth}--\r\n`
  t.same(findAttachments(Buffer.from(nest(3))).map(String), ['in the middle'])
  t.ok(findAttachments(Buffer.from(nest(1_000))).length <= 20)
  const many = `Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--b\r\n\r\nx\r\n'.repeat(100_000)}`
  t.ok(findAttachments(Buffer.from(many)).length <= 20)
  const cut = 'Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nnever closed'
  t.same(findAttachments(Buffer.from(cut)).map(String), ['never closed'])
  t.same(findAttachments(Buffer.from('')).map(String), [''])
  t.same(findAttachments(Buffer.from('no header at all')).map(String), ['no header at all'])
  t.end()
})

t.test('reports are added up by day, source and reporter', async t => {
  const { take, sum } = await openReports(t)
  const first = record('192.0.2.1', 3) + record('192.0.2.9', 7, 'fail', 'reject')
  await take(DMARC_ADDRESS, mailWith(gzipSync(dmarc({ id: 'a', records: first }))))
  const second = record('192.0.2.9', 2, 'fail', 'quarantine') + record('192.0.2.1', 40)
  await take(DMARC_ADDRESS, mailWith(gzipSync(dmarc({ id: 'b', records: second }))))
  const source = (ip: string, rest: object) => ({ source_ip: ip, header_from: ['example.com'], ...rest })
  t.match(await sum('?since=2026-01-04&until=2026-01-06'), {
    kind: 'dmarc',
    reports: 2,
    is_truncated: false,
    totals: { passed: 43, failed: 9, quarantined: 2, rejected: 7 },
    days: [
      { date: '2026-01-04', passed: 0, failed: 0 },
      { date: '2026-01-05', passed: 43, failed: 9 },
      { date: '2026-01-06', passed: 0, failed: 0 },
    ],
    sources: [
      source('192.0.2.1', { is_own: true, passed: 43, failed: 0, dkim_passed: 43, spf_passed: 0 }),
      source('192.0.2.9', { is_own: false, passed: 0, failed: 9, quarantined: 2, rejected: 7 }),
    ],
    failures: [],
    reporters: [{ org_name: 'Receiver & Co', authenticated_as: null, reports: 2, passed: 43, failed: 9 }],
    unauthenticated: { reports: 2, passed: 43, failed: 9 },
  })
  t.match(await sum('?since=2026-01-06&until=2026-01-08'), { reports: 0, sources: [] })
  t.equal(await sum('?since=2020-01-01&until=2026-01-01'), 400)
  t.equal(await sum('?kind=arf'), 400)
})

t.test('TLS reports are added up by kind of failure', async t => {
  const { take, sum } = await openReports(t)
  await take(TLSRPT_ADDRESS, mailWith(gzipSync(JSON.stringify(TLS_REPORT)), 'application/tlsrpt+gzip'))
  t.match(await sum('?kind=tlsrpt&since=2026-01-04&until=2026-01-04'), {
    totals: { passed: 5326, failed: 303 },
    days: [{ date: '2026-01-04', passed: 5326, failed: 303 }],
    sources: [],
    failures: [
      {
        ...{ result_type: 'certificate-expired', failed_sessions: 100 },
        receiving_mx_hostname: 'mx1.mail.example.com',
      },
    ],
    reporters: [{ org_name: 'Company-X' }],
  })
})

t.test('more reports than fit one page of the store are all counted', async t => {
  const { take, sum } = await openReports(t)
  for (let n = 0; n < 55; n += 1) await take(DMARC_ADDRESS, mailWith(gzipSync(dmarc({ id: `r-${n}` }))))
  t.match(await sum('?since=2026-01-05&until=2026-01-05'), { reports: 55, totals: { passed: 165 } })
})

t.test(
  'a report names the domain that SPF authenticates, and figures say how much anyone may have sent',
  async t => {
    const { take, list, sum } = await openReports(t)
    const senders = ['noreply@receiver.example', 'noreply@other.example', 'x@silent.example', '']
    for (const [at, from] of senders.entries())
      await take(DMARC_ADDRESS, mailWith(gzipSync(dmarc({ id: `r-${at}` }))), from)
    const { data } = await list()
    const shown = data as unknown as { report_id: string; authenticated_as: string | null }[]
    t.same(shown.map(one => [one.report_id, one.authenticated_as]).sort(), [
      ['r-0', 'receiver.example'],
      ['r-1', null],
      ['r-2', null],
      ['r-3', null],
    ])
    t.match(await sum('?since=2026-01-05&until=2026-01-05'), {
      ...{ reports: 4, totals: { passed: 12 }, unauthenticated: { reports: 3, passed: 9 } },
      reporters: [
        { org_name: 'Receiver & Co', authenticated_as: null, reports: 3 },
        { org_name: 'Receiver & Co', authenticated_as: 'receiver.example', reports: 1 },
      ],
    })
  },
)
