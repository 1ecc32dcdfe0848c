/** Delivery status notifications to submitters, and the parameters that request them. */
import t from 'tap'
import { simpleParser } from 'mailparser'
import { routeTo } from '../../support/program/process.js'
import { openSink, type SinkMail } from '../../support/smtp/sink.js'
import { idsOf, letter, openSubmissionTest } from '../../support/smtp/submission.js'
import { until } from '../../support/until.js'

/** One appliance for all tests; its mail goes to a server that knows everybody but `unknown@`. */
const office = openOffice()

async function openOffice() {
  const sink = await openSink(t)
  const test = await openSubmissionTest(t, {
    env: { POSTROAD_MTA_CAPTURE: 'false', ...routeTo(sink.port) },
  })
  const { postroad } = test
  await test.addDomain()
  const client = await test.loggedIn()
  const reportsTo = (address: string) =>
    sink.accepted.filter(({ sender, recipients }) => sender === '' && recipients.includes(address))
  return {
    client,
    postroad,
    reportsTo,
    /** The reports to this submitter, once that many have arrived. */
    told: (address: string, count: number): Promise<SinkMail[]> =>
      until(`${count} reports to ${address}`, () => {
        const found = reportsTo(address)
        return found.length >= count ? found : undefined
      }),
    status: (id: string, status: string) => postroad.messageOnce(postroad.key, id, status),
    messages: () => postroad.rowCounts()['messages'] ?? 0,
    /** A mail that arrives only after all that was reported before it. */
    lastMail: async (): Promise<void> => {
      const [id = ''] = idsOf(await client.submit(letter(), { to: 'last@one.test' }))
      await postroad.messageOnce(postroad.key, id, 'delivered')
    },
  }
}

/** The lines of a report's machine-readable part (RFC 3464), folded lines joined. */
function statusLines({ raw }: SinkMail): string[] {
  const [, part = ''] = raw.toString('latin1').split('Content-Type: message/delivery-status\r\n\r\n')
  const [text = ''] = part.split('\r\n--')
  return text.replace(/\r\n[ \t]+/g, ' ').split('\r\n')
}

t.test('a refused recipient is reported to the submitter, with what the server said', async t => {
  const { client, told, status, messages } = await office
  const before = messages()
  const mail = letter('Message-ID: <1@app.test>', 'X-App: kept')
  const [id = ''] = idsOf(await client.submit(mail, { to: 'unknown@one.test' }))
  await status(id, 'bounced')
  const [report] = await told('app@sender.test', 1)
  if (!report) throw new Error('no report')
  t.same(report.recipients, ['app@sender.test'])
  const parsed = await simpleParser(report.raw)
  t.match(parsed.from, { text: '"Mail Delivery System" <mailer-daemon@mx.postroad.test>' })
  t.equal(parsed.subject, 'Undelivered mail')
  t.equal(parsed.headers.get('auto-submitted'), 'auto-replied')
  t.equal(parsed.inReplyTo, '<1@app.test>')
  t.match(parsed.text, /could not be delivered.*unknown@one\.test.*550 5\.1\.1 No such user here/s)
  const lines = statusLines(report)
  for (const line of [
    'Reporting-MTA: dns; mx.postroad.test',
    'Arrival-Date: Mon, 05 Jan 2026 10:00:00 +0000',
    'Final-Recipient: rfc822; unknown@one.test',
    'Action: failed',
    'Status: 5.1.1',
    'Remote-MTA: dns; 127.0.0.1',
    'Diagnostic-Code: smtp; 550 5.1.1 No such user here',
  ])
    t.ok(lines.includes(line), line)
  const [returned] = parsed.attachments.filter(({ contentType }) => contentType === 'message/rfc822')
  t.match(returned?.content.toString(), /X-App: kept\r\n[^]*\r\n\r\nHello\.\r\n/)
  t.equal(messages() - before, 2, 'the report is a message that can be looked at')
})

t.test('ENVID, ORCPT and RET come back as they were given', async t => {
  const { client, told } = await office
  await client.submit(letter(), {
    from: 'parameters@sender.test',
    to: 'unknown@d1.test',
    mail: 'RET=HDRS ENVID=order+2B17',
    rcpt: 'NOTIFY=FAILURE,DELAY ORCPT=rfc822;Old+2BName@old.test',
  })
  const [report] = await told('parameters@sender.test', 1)
  if (!report) throw new Error('no report')
  const lines = statusLines(report)
  t.ok(lines.includes('Original-Envelope-Id: order+17'))
  t.ok(lines.includes('Original-Recipient: rfc822; Old+Name@old.test'))
  t.match(report.raw.toString(), 'Content-Type: text/rfc822-headers')
  t.notMatch(report.raw.toString(), 'Hello.\r\n')
})

t.test('who wants no reports, or has no address for them, gets none', async t => {
  const { client, lastMail, status, messages, reportsTo } = await office
  const before = messages()
  const ids: string[] = []
  // Who was unknown once is suppressed from then on.
  for (const [index, envelope] of [
    { rcpt: 'NOTIFY=NEVER' },
    { rcpt: 'NOTIFY=SUCCESS' },
    { rcpt: 'NOTIFY=DELAY' },
    { from: '' },
    { from: 'root@web1' },
  ].entries())
    ids.push(
      ...idsOf(
        await client.submit(letter(), {
          from: 'silent@sender.test',
          to: `unknown@wish${index}.test`,
          ...envelope,
        }),
      ),
    )
  t.equal(ids.length, 5)
  for (const id of ids) await status(id, 'bounced')
  await lastMail()
  t.equal(reportsTo('silent@sender.test').length, 0)
  t.equal(messages() - before, 6)
})

t.test('a report that cannot be delivered is not reported', async t => {
  const { client, lastMail, postroad, status, messages } = await office
  const before = { messages: messages(), attempts: postroad.rowCounts()['attempts'] ?? 0 }
  const [id = ''] = idsOf(
    await client.submit(letter(), { to: 'unknown@d3.test', from: 'unknown@sender.test' }),
  )
  await status(id, 'bounced')
  await until('the report to be refused', () => postroad.rowCounts()['attempts'] === before.attempts + 2)
  await lastMail()
  t.equal(messages() - before.messages, 3, 'the mail, its report, and the last')
})

t.test('a requested success notice says that the mail was relayed', async t => {
  const { client, told } = await office
  const to = ['ann@one.test', 'bob@one.test']
  const from = 'curious@sender.test'
  await client.submit(letter(), { from, to, rcpt: 'NOTIFY=SUCCESS,FAILURE', mail: 'RET=FULL' })
  for (const report of await told(from, 2)) {
    const lines = statusLines(report)
    t.ok(lines.includes('Action: relayed'))
    t.ok(lines.includes('Status: 2.0.0'))
    t.match(report.raw.toString(), 'Content-Type: text/rfc822-headers', 'of a success the header is enough')
  }
})

t.test('a suppressed recipient is reported only to who asked for failures', async t => {
  const { client, told, lastMail, postroad, messages } = await office
  await postroad.run('suppress', 'add', '--workspace', postroad.workspaceId, 'bob@two.test')
  const before = messages()
  const envelope = { from: 'strict@sender.test', to: 'bob@two.test' }
  t.match(await client.submit(letter(), envelope), /^250 /)
  await lastMail()
  t.equal(messages() - before, 2)
  t.match(await client.submit(letter(), { ...envelope, rcpt: 'NOTIFY=FAILURE' }), /^250 /)
  const [report] = await told('strict@sender.test', 1)
  if (!report) throw new Error('no report')
  const lines = statusLines(report)
  t.ok(lines.includes('Status: 5.7.1'))
  t.ok(lines.includes('Diagnostic-Code: x-postroad; the recipient is on the suppression list'))
})

t.test('mail sent by the API is reported to nobody', async t => {
  const { postroad, lastMail, status, messages } = await office
  const before = messages()
  const { body } = await postroad.send(postroad.key, {
    to: 'unknown@d6.test',
    from_email: 'me@sender.test',
    subject: 'Hello',
    text: 'Hello.\n',
  })
  await status(String(body.data.results[0].message_id), 'bounced')
  await lastMail()
  t.equal(messages() - before, 2)
})

t.test('of a large message the header comes back', async t => {
  const { client, told } = await office
  const body = `${'x'.repeat(76)}\r\n`.repeat(10_000)
  const from = 'large@sender.test'
  await client.submit(letter('X-App: kept').replace('Hello.\r\n', body), { from, to: 'unknown@d7.test' })
  const [report] = await told(from, 1)
  t.match(report?.raw.toString(), /Content-Type: text\/rfc822-headers\r\n[^]*X-App: kept/)
  t.ok((report?.raw.length ?? 0) < 5_000)
})

t.test("notifications stand in the workspace's log and count as its mail", async t => {
  const { client, told, lastMail, postroad } = await office
  const { key } = postroad
  const ask = async (path: string) => (await postroad.get(`/api/v1${path}`, { key })).body
  const used = () =>
    postroad.sql<{ accepted: number }>(
      "select sum(accepted) as accepted from sending_usage where window_kind = 'day'",
    )[0]?.accepted ?? 0
  await lastMail()
  const before = used()
  const from = 'counted@sender.test'
  for (const n of [1, 2, 3]) await client.submit(letter(), { from, to: `unknown@c${n}.test` })
  await told(from, 3)
  t.equal(used() - before, 6)
  t.match(await ask(`/email?to=${from}`), {
    data: [{ to: from, subject: 'Undelivered mail' }, {}, {}],
    pagination: { total: 3 },
  })
})

t.test('a stranger named as envelope sender gets nothing, whatever fails', async t => {
  const { client, lastMail, postroad, reportsTo, status, messages } = await office
  const stranger = 'victim@elsewhere.test'
  const suppressed = Array.from({ length: 50 }, (_, n) => `s${n}@own.test`)
  for (const address of suppressed)
    t.equal(
      (await postroad.post('/api/v1/suppressions', { email: address }, { key: postroad.key })).status,
      201,
    )
  const before = messages()
  const wishes = { from: stranger, rcpt: 'NOTIFY=FAILURE', mail: 'RET=FULL' }
  await client.submit(letter(), { ...wishes, to: suppressed })
  const [id = ''] = idsOf(await client.submit(letter(), { ...wishes, to: 'unknown@e1.test' }))
  await status(id, 'bounced')
  await lastMail()
  t.same(reportsTo(stranger), [])
  t.equal(messages() - before, 52)
})

t.test('of fifty suppressed recipients one notification tells', async t => {
  const { client, told, lastMail, reportsTo } = await office
  const from = 'sums@sender.test'
  const to = Array.from({ length: 50 }, (_, n) => `s${n}@own.test`)
  await client.submit(letter(), { from, to, rcpt: 'NOTIFY=FAILURE', mail: 'RET=FULL' })
  const [report] = await told(from, 1)
  if (!report) throw new Error('no report')
  t.equal(statusLines(report).filter(line => line === 'Action: failed').length, 50)
  t.match(report.raw.toString(), 'Content-Type: text/rfc822-headers')
  await lastMail()
  t.equal(reportsTo(from).length, 1)
})
