/** What becomes of the header of relayed mail: what is added, what is taken away, what is refused, and what stays. */
import t from 'tap'
import { idsOf, letter, openSubmissionTest } from '../../support/smtp/submission.js'

/** One for all tests; its domain signs. */
const office = openSubmissionTest(t).then(async test => {
  await test.addDomain()
  return test
})

t.test('Received, Date and Message-ID are added where they belong', async t => {
  const { postroad, loggedIn, open, caught } = await office
  const client = await loggedIn()
  const [id = ''] = idsOf(await client.submit(letter()))
  const { header } = await caught(id)
  t.match(
    header,
    /^Received: from client\.example \(\[127\.0\.0\.1\]\)\r\n \(using TLSv1\.3 with cipher \w+\)\r\n by mx\.postroad\.test with ESMTPSA id [0-9a-f-]+;\r\n Mon, 05 Jan 2026 10:00:00 \+0000\r\n/m,
  )
  t.match(header, /^Date: Mon, 05 Jan 2026 10:00:00 \+0000\r$/m)
  t.match(header, /^Message-ID: <[0-9a-f-]{36}@mx\.postroad\.test>\r$/m)

  const date = 'Date: Thu, 1 Jan 1998 00:00:00 -0800 (PST)'
  const [second = ''] = idsOf(await client.submit(letter(date, 'Message-Id: <1@app.test>')))
  const kept = (await caught(second)).header
  t.match(kept, `${date}\r\n`)
  t.equal(kept.match(/^(Date|Message-ID):/gim)?.length, 2)

  const secure = await open('STARTTLS')
  await secure.login(postroad.key)
  const [third = ''] = idsOf(await secure.submit(letter(), { mail: 'SMTPUTF8' }))
  t.match((await caught(third)).header, / with UTF8SMTPSA id /)
})

t.test(
  'Bcc, Return-Path and the control fields are removed; everything else is unchanged and in order',
  async t => {
    const { loggedIn, caught } = await office
    const client = await loggedIn()
    const kept = [
      'Received: from older by old.test; Mon, 05 Jan 2026 09:00:00 +0000',
      'From: App <app@sender.test>',
      'to:  Ann  <ann@one.test>,\r\n\tBob <bob@two.test>',
      'X-App:   kept   as  it is ',
      'Date: Mon, 05 Jan 2026 09:59:00 +0000',
      'Message-ID: <1@app.test>',
      'List-Unsubscribe: <https://sender.test/u>',
      'Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=',
    ]
    const removed = [
      'Bcc: secret@three.test,\r\n other@three.test',
      'Return-Path: <evil@three.test>',
      'X-Postroad-Tag: news, weekly',
      'x-postroad-track: none',
      'X-Postroad-Footer: no',
    ]
    const lines = kept.flatMap((field, index) => [field, ...removed.slice(index, index + 1)])
    const [id = ''] = idsOf(await client.submit([...lines, '', 'Hello.', ''].join('\r\n')))
    const { header, body } = await caught(id)
    const end = header.indexOf(kept[0] ?? '')
    t.equal(header.slice(end), kept.map(field => `${field}\r\n`).join(''))
    t.equal(body, 'Hello.\r\n')
  },
)

t.test('a wish that cannot be read or kept is refused, not passed over', async t => {
  const { postroad, loggedIn } = await office
  const before = postroad.rowCounts()['messages']
  const client = await loggedIn()
  for (const [field, reply] of [
    ['X-Postroad-Track: everything', /X-Postroad-Track must be/],
    ['X-Postroad-Tag: ', /X-Postroad-Tag is empty/],
    ['X-Postroad-Template: welcome', /X-Postroad-Template is not the id of a template/],
    ['X-Postroad-Template: 01890a5d-ac96-774b-bcce-b302099a8057', /no template has this id/],
    ['X-Postroad-Data: {"name": "Ann"}', /requires X-Postroad-Template/],
    ['X-Postroad-Data: {broken', /X-Postroad-Data is not JSON/],
    ['X-Postroad-Trak: none', /X-Postroad-Trak is not a known X-Postroad field/],
  ] as const) {
    const answer = await client.submit(letter(field))
    t.match(answer, /^550 5\.6\.0 /)
    t.match(answer, reply)
  }
  t.equal(postroad.rowCounts()['messages'], before)
})

t.test('a mail that an appliance has sent before is taken again, but not for ever', async t => {
  const { loggedIn, caught } = await office
  const client = await loggedIn()
  const hops = (count: number) => Array.from({ length: count }, () => 'Received: from a.test by b.test')
  const [id = ''] = idsOf(await client.submit(letter('X-Postroad-ID: r1-1-former-token', ...hops(49))))
  const { header } = await caught(id)
  t.equal(header.match(/^X-Postroad-ID:/gm)?.length, 1)
  t.notMatch(header, 'former')
  t.match(await client.submit(letter(...hops(50))), /^554 5\.4\.6 .*loop/)
})

t.test('a header that two readers would read differently is refused', async t => {
  const { postroad, loggedIn } = await office
  const before = postroad.rowCounts()['messages']
  const client = await loggedIn()
  for (const [message, reply] of [
    ['Subject: nobody\r\n\r\nHello.\r\n', /^550 5\.1\.7 .*no From/],
    [letter('From: nobody'), /^550 5\.6\.0 /],
    [letter('From: <>'), /^550 5\.6\.0 /],
    [letter('From: a@sender.test', 'From: b@evil.test'), /^550 5\.6\.0 .*more than one From/],
    [letter('Subject: first'), /^550 5\.6\.0 .*more than one Subject/],
    [letter('no colon here'), /^550 5\.6\.0 .*without a colon/],
    [letter('From : app@sender.test'), /^550 5\.6\.0 .*field name/],
    [` folded\r\n${letter()}`, /^550 5\.6\.0 .*folded line/],
    [letter(...Array.from({ length: 1_001 }, (_, index) => `X-${index}: x`)), /^550 5\.6\.0 .*1000 fields/],
    [letter(`X-Long: ${`${'x'.repeat(900)}\r\n `.repeat(80)}x`), /^550 5\.6\.0 .*65536 octets/],
    ['', /^550 5\.1\.7 /],
  ] as const)
    t.match(await client.submit(message), reply)
  t.equal(postroad.rowCounts()['messages'], before)
  t.match(await client.submit(letter()), /^250 /, 'the session continues')
})

t.test('signed and encrypted mail keeps its body to the octet', async t => {
  const { loggedIn, caught } = await office
  const client = await loggedIn()
  const head = (type: string) => `From: app@sender.test\r\nMIME-Version: 1.0\r\nContent-Type: ${type}\r\n\r\n`
  const body = [
    'preamble  ',
    '--x',
    'Content-Type: text/plain; charset=utf-8',
    '',
    'line with a blank at its end ',
    '.',
    '..',
    'From the start',
    '',
    '--x',
    'Content-Type: application/pgp-signature',
    '',
    '-----BEGIN PGP SIGNATURE-----',
    '',
    '--x--',
    '',
    '',
  ].join('\r\n')
  for (const type of [
    'multipart/signed; micalg=pgp-sha256; protocol="application/pgp-signature"; boundary=x',
    'multipart/encrypted; protocol="application/pgp-encrypted"; boundary=x',
  ]) {
    const [id = ''] = idsOf(await client.submit(`${head(type)}${body}`))
    t.equal((await caught(id)).body, body)
  }
})

t.test('8-bit text leaves as 7-bit text that says the same', async t => {
  const { loggedIn, caught } = await office
  const client = await loggedIn()
  const mail = letter('MIME-Version: 1.0', 'Content-Type: text/plain; charset=utf-8').replace(
    'Hello.',
    'Grüße aus Köln, wo es heute wieder einmal regnet',
  )
  const [id = ''] = idsOf(await client.submit(mail, { mail: 'BODY=8BITMIME' }))
  const { raw, header, body } = await caught(id)
  t.notMatch(raw.toString('latin1'), /[^\x00-\x7f]/) // eslint-disable-line no-control-regex -- ASCII is meant
  t.match(header, /^Content-Transfer-Encoding: quoted-printable\r$/m)
  t.equal(body, 'Gr=C3=BC=C3=9Fe aus K=C3=B6ln, wo es heute wieder einmal regnet\r\n')
})
