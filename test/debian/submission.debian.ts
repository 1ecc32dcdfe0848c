/** Common mail programs at the submission port: every feature that both sides support. */
import t, { type Test } from 'tap'
import { simpleParser, type ParsedMail } from 'mailparser'
import { createTransport } from 'nodemailer'
import { openSmtpSink } from '../support/program/debian.js'
import { dkimVerdicts, dkimZone, type PublishedDomain } from '../support/dkim.js'
import { msmtp, python, runProgram, swaks } from '../support/program/mail-programs.js'
import { initialise, routeTo, type Serving } from '../support/program/process.js'
import { servedAddresses } from '../support/smtp/submission.js'
import { until } from '../support/until.js'

interface Office {
  readonly server: Serving
  readonly key: string
  /** Ports: STARTTLS, implicit TLS. */
  readonly port: number
  readonly tlsPort: number
  /** The mail with this subject as it would have left, its signature checked. */
  readonly arrived: (t: Test, subject: string) => Promise<ParsedMail & { readonly raw: Buffer }>
}

async function openOffice(t: Test): Promise<Office> {
  const postroad = await initialise(t, { env: { POSTROAD_MTA_CAPTURE: 'true' } })
  const domain = await postroad.json<PublishedDomain>(
    ...['domain', 'add', 'sender.test', '--vouch', '--workspace', postroad.workspaceId],
  )
  const zone = dkimZone(domain)
  const server = await postroad.serve()
  const { submission, submissionTls } = servedAddresses(server)
  return {
    server,
    key: postroad.key,
    port: submission[0]?.port ?? 0,
    tlsPort: submissionTls[0]?.port ?? 0,
    async arrived(t, subject) {
      const { id } = await until(`"${subject}" in the local inbox`, async () => {
        const { body } = await server.get('/capture?limit=100')
        return (body.data as { id: number; subject: string }[]).find(mail => mail.subject === subject)
      })
      const { body } = await server.get(`/capture/${id}`)
      const raw = Buffer.from(body.data.raw as string, 'latin1')
      t.match(await dkimVerdicts(raw, zone), ['sender.test rsa-sha256 pass'], 'signed')
      return Object.assign(await simpleParser(raw), { raw })
    },
  }
}

t.test('swaks', async t => {
  const { key, port, tlsPort, arrived } = await openOffice(t)
  const login = ['--auth-user', 'apikey', '--auth-password', key]
  const letter = (subject: string) => [
    ...['--from', 'app@sender.test', '--to', 'ann@one.test'],
    ...['--header', `Subject: ${subject}`, '--body', 'Hello from swaks.'],
  ]
  for (const mechanism of ['PLAIN', 'LOGIN'])
    for (const [name, door] of [
      ['STARTTLS', ['--port', String(port), '--tls']],
      ['implicit TLS', ['--port', String(tlsPort), '--tls-on-connect']],
    ] as const) {
      const subject = `AUTH ${mechanism} over ${name}`
      const { status, out } = await swaks(...door, '--auth', mechanism, ...login, ...letter(subject))
      t.equal(status, 0, subject)
      t.match(out, /250 2\.0\.0 Accepted as [0-9a-f-]{36}/)
      t.match((await arrived(t, subject)).text, 'Hello from swaks.')
    }

  const secure = ['--port', String(tlsPort), '--tls-on-connect', '--auth', 'PLAIN']
  const many = await swaks(
    ...[...secure, ...login, '--pipeline', ...letter('PIPELINING')],
    ...['--to', 'a@one.test,b@two.test,c@three.test'],
  )
  t.equal(many.status, 0)
  t.equal(many.out.match(/250 2\.1\.5 /g)?.length, 3)
  await arrived(t, 'PIPELINING')

  const attached = await swaks(
    ...[...secure, ...login, ...letter('attachment')],
    ...['--attach-type', 'text/plain', '--attach', '@/etc/hostname'],
  )
  t.equal(attached.status, 0)
  t.equal((await arrived(t, 'attachment')).attachments.length, 1)

  const wrong = await swaks(...secure, '--auth-user', 'apikey', '--auth-password', 'no', ...letter('wrong'))
  t.not(wrong.status, 0)
  t.match(wrong.out, /535 5\.7\.8 /)
  const inClear = await swaks('--port', String(port), '--auth', 'PLAIN', ...login, ...letter('in clear'))
  t.not(inClear.status, 0, 'no login without TLS')
  t.notMatch(inClear.out, /250 2\.0\.0 Accepted/)
})

t.test('msmtp', async t => {
  const { server, key, port, tlsPort, arrived } = await openOffice(t)
  const mail = (subject: string) =>
    `From: App <app@sender.test>\nTo: Ann <ann@one.test>\nSubject: ${subject}\n\nHello from msmtp.\n.\nGrüße\n`
  for (const mechanism of ['plain', 'login'])
    for (const [name, door] of [
      ['STARTTLS', { port, isImplicitTls: false }],
      ['implicit TLS', { port: tlsPort, isImplicitTls: true }],
    ] as const) {
      const subject = `${mechanism} over ${name}`
      const { status, err } = await msmtp(t, { ...door, mechanism, key }, mail(subject), 'ann@one.test')
      t.equal(status, 0, `${subject} ${err}`)
      t.equal((await arrived(t, subject)).text?.trimEnd(), 'Hello from msmtp.\n.\nGrüße')
    }
  const account = { port: tlsPort, isImplicitTls: true, mechanism: 'plain', key }
  const dsn = ['--dsn-notify=failure,delay', '--dsn-return=headers']
  const reported = await msmtp(t, account, mail('DSN'), ...dsn, '--', 'ann@one.test', 'bob@two.test')
  t.equal(reported.status, 0, reported.err)
  await arrived(t, 'DSN')

  const wrong = await msmtp(t, { ...account, key: 'no' }, mail('wrong'), 'ann@one.test')
  t.not(wrong.status, 0)
  t.match(wrong.err, /535 5\.7\.8|authentication failed/)
  t.match(await server.get('/health'), { status: 200 })
})

t.test("Python's smtplib", async t => {
  const { key, port, tlsPort, arrived } = await openOffice(t)
  const { status, out, err } = await python(PYTHON, String(port), String(tlsPort), key)
  t.equal(status, 0, err)
  t.same(JSON.parse(out), {
    partly: { 'nobody@localhost': 553 },
    wrong: 535,
    clear: 'SMTPNotSupportedError',
    large: 552,
  })
  for (const subject of ['starttls', 'implicit', 'several recipients']) await arrived(t, subject)
  const international = await arrived(t, 'Grüße aus Köln')
  t.match(international.from, { value: [{ name: 'Jürgen', address: 'app@sender.test' }] })
  t.equal(international.text?.trimEnd(), 'Größe 42 ✓')
  const [attachment] = (await arrived(t, 'three megabytes')).attachments
  const octets = Buffer.from(Array.from({ length: 3_000_000 }, (_, at) => at % 250))
  t.ok(attachment?.content.equals(octets), 'three megabytes, each octet unchanged')
})

const PYTHON = `
import json, smtplib, ssl, sys
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
port, tls_port, key = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
anyone = ssl._create_unverified_context()

def mail(subject, text='Hello from Python.\\n', policy=SMTP):
    m = EmailMessage(policy=policy)
    m['From'], m['To'], m['Subject'] = 'Jürgen <app@sender.test>', 'ann@one.test', subject
    m.set_content(text, cte='8bit' if policy is SMTPUTF8 else None)
    return m

def secure():
    s = smtplib.SMTP_SSL('127.0.0.1', tls_port, context=anyone)
    s.login('apikey', key)
    return s

with smtplib.SMTP('127.0.0.1', port) as s:
    s.starttls(context=anyone)
    s.login('apikey', key)
    s.send_message(mail('starttls'))
told = {}
with secure() as s:
    s.send_message(mail('implicit'))
    s.send_message(mail('Grüße aus Köln', 'Größe 42 ✓\\n', SMTPUTF8), mail_options=['SMTPUTF8', 'BODY=8BITMIME'])
    partly = s.send_message(mail('several recipients'), to_addrs=['ann@one.test', 'nobody@localhost', 'bob@two.test'],
        mail_options=['RET=HDRS', 'ENVID=order+2B17'], rcpt_options=['NOTIFY=FAILURE'])
    told['partly'] = {address: code for address, (code, _) in partly.items()}
    m = mail('three megabytes')
    m.add_attachment(bytes(range(250)) * 12_000, maintype='application', subtype='octet-stream', filename='a.bin')
    s.send_message(m)
    m = mail('too large')
    m.add_attachment(b'x' * 30_000_000, maintype='application', subtype='octet-stream', filename='a.bin')
    try: s.send_message(m)
    except smtplib.SMTPSenderRefused as e: told['large'] = e.smtp_code
with smtplib.SMTP_SSL('127.0.0.1', tls_port, context=anyone) as s:
    try: s.login('apikey', 'wrong')
    except smtplib.SMTPAuthenticationError as e: told['wrong'] = e.smtp_code
with smtplib.SMTP('127.0.0.1', port) as s:
    try: s.login('apikey', key)
    except smtplib.SMTPNotSupportedError as e: told['clear'] = type(e).__name__
print(json.dumps(told))
`

t.test('footer and tracking work with mail from swaks, smtplib and OpenSSL', async t => {
  const { key, port, tlsPort, arrived } = await openOffice(t)
  const wishes = ['--header', 'X-Postroad-Track: opens,clicks', '--header', 'X-Postroad-Footer: yes']
  const { status, out } = await swaks(
    ...['--port', String(port), '--tls', '--auth', 'PLAIN', '--auth-user', 'apikey', '--auth-password', key],
    ...['--from', 'app@sender.test', '--to', 'ann@one.test', '--header', 'Subject: by swaks', ...wishes],
    ...['--header', 'MIME-Version: 1.0', '--header', 'Content-Type: text/html; charset=utf-8'],
    ...['--body', '<body><a href="http://a.test/?x=1&y=2">a</a></body>'],
  )
  t.equal(status, 0, out)
  const added =
    /^<body><a href="https:[^"]+\/c\/[^"]+">a<\/a><table [^]*\/u\/[^]*<img src="https:[^"]+\/o\/[^>]+><\/body>/
  t.match((await arrived(t, 'by swaks')).html, added)

  const told = await python(TRACKED, String(tlsPort), key)
  t.equal(told.status, 0, told.err)
  t.match(told.out, /signed or encrypted by its author/)
  const alternative = await arrived(t, 'by smtplib')
  t.match(alternative.html, added)
  t.match(alternative.text, /^Grüße\n\nUnsubscribe: https:/)
  t.match(alternative.attachments, [
    { filename: 'a.html', content: Buffer.from('<a href="http://a.test/">a</a></body>\n') },
  ])
  // OpenSSL itself says whether the signature is still good.
  const { raw } = await arrived(t, 'by OpenSSL')
  const verified = await python(VERIFIED, raw.toString('base64'))
  t.equal(verified.status, 0, verified.err)
  t.match(verified.out, /Verification successful/)
})

const TRACKED = `
import smtplib, ssl, subprocess, sys, tempfile
from email.message import EmailMessage
from email.policy import SMTP
tls_port, key = int(sys.argv[1]), sys.argv[2]
m = EmailMessage(policy=SMTP)
m['From'], m['To'], m['Subject'] = 'app@sender.test', 'ann@one.test', 'by smtplib'
m['X-Postroad-Track'], m['X-Postroad-Footer'] = 'opens, clicks', 'yes'
m.set_content('Grüße\\n', charset='iso-8859-1')
m.add_alternative('<body><a href="http://a.test/">a</a></body>\\n', subtype='html', cte='base64')
m.add_attachment(b'<a href="http://a.test/">a</a></body>\\n', maintype='text', subtype='html', filename='a.html')
with tempfile.TemporaryDirectory() as at:
    run = lambda *args, **how: subprocess.run(['openssl', *args], cwd=at, check=True, capture_output=True, **how)
    run('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=app@sender.test', '-keyout', 'k', '-out', 'c')
    body = b'Content-Type: text/html\\r\\n\\r\\n<body><a href="http://a.test/">a</a></body>\\r\\n'
    signed = run('cms', '-sign', '-signer', 'c', '-inkey', 'k', '-crlfeol', input=body).stdout
head = b'From: app@sender.test\\r\\nSubject: by OpenSSL\\r\\nX-Postroad-Track: opens,clicks\\r\\nX-Postroad-Footer: yes\\r\\n'
with smtplib.SMTP_SSL('127.0.0.1', tls_port, context=ssl._create_unverified_context()) as s:
    s.login('apikey', key)
    s.send_message(m)
    s.mail('app@sender.test'); s.rcpt('ann@one.test')
    print(s.data(head + signed.replace(b'\\r\\n', b'\\n').replace(b'\\n', b'\\r\\n')))
`

const VERIFIED = `
import base64, subprocess, sys
print(subprocess.run(['openssl', 'cms', '-verify', '-noverify', '-out', '/dev/null'], input=base64.b64decode(sys.argv[1]), check=True, capture_output=True).stderr.decode())
`

t.test('nodemailer', async t => {
  const { key, port, tlsPort, arrived } = await openOffice(t)
  const usual = { host: '127.0.0.1', auth: { user: 'apikey', pass: key }, tls: { rejectUnauthorized: false } }
  const letter = { from: 'App <app@sender.test>', to: 'Ann <ann@one.test>', text: 'Hello from nodemailer.' }
  for (const [subject, door] of [
    ['requireTLS', { port, requireTLS: true }],
    ['secure', { port: tlsPort, secure: true }],
    ['LOGIN', { port: tlsPort, secure: true, authMethod: 'LOGIN' }],
  ] as const) {
    const transport = createTransport({ ...usual, ...door })
    const { response } = await transport.sendMail({ ...letter, subject })
    t.match(response, /^250 2\.0\.0 Accepted as /)
    t.match((await arrived(t, subject)).text, letter.text)
  }
  const transport = createTransport({ ...usual, port: tlsPort, secure: true, pool: true, maxConnections: 5 })
  t.teardown(() => transport.close())
  const { accepted } = await transport.sendMail({
    ...letter,
    subject: 'Alles zusammen ✓',
    cc: 'bob@two.test',
    bcc: 'secret@three.test',
    html: '<p>Größe <img src="cid:dot"></p>',
    attachments: [
      { filename: 'Übersicht.bin', content: Buffer.from(Array.from({ length: 256 }, (_, octet) => octet)) },
      { filename: 'dot.png', content: Buffer.from('89504e470d0a1a0a', 'hex'), cid: 'dot' },
    ],
    dsn: { id: 'order+17', return: 'headers', notify: ['failure', 'delay'], recipient: 'app@sender.test' },
  })
  t.same(accepted, ['ann@one.test', 'bob@two.test', 'secret@three.test'])
  const all = await arrived(t, 'Alles zusammen ✓')
  t.notMatch(JSON.stringify(all), 'secret@three.test')
  t.match(all.html, 'Größe')
  t.same(
    all.attachments.map(({ filename, content }) => [filename, content.length]),
    [
      ['dot.png', 8],
      ['Übersicht.bin', 256],
    ],
  )
  const replies = await Promise.all(
    Array.from({ length: 100 }, (_, index) => transport.sendMail({ ...letter, subject: `pooled ${index}` })),
  )
  t.equal(new Set(replies.map(({ response }) => response)).size, 100, 'each with its own id')
  const wrong = createTransport({
    ...usual,
    port: tlsPort,
    secure: true,
    auth: { user: 'apikey', pass: 'no' },
  })
  await t.rejects(wrong.sendMail({ ...letter, subject: 'wrong' }), { responseCode: 535, code: 'EAUTH' })
})

const MESSAGES = 2_000

t.test(`smtp-source: ${MESSAGES} mails in 20 sessions from a trusted network, each arrives once`, async t => {
  const sink = await openSmtpSink(t)
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  await postroad.run('workspace', 'set', postroad.workspaceId, 'hourly_limit=0', 'daily_limit=0')
  const keys = await postroad.json<{ id: string; name: string }[]>('key', 'list')
  const key = keys.find(({ name }) => name === 'of the tests')
  postroad.writeConfig(`[[submission.trusted_networks]]\nnetwork = "127.0.0.1"\nkey = "${key?.id ?? ''}"`)
  const server = await postroad.serve()
  const [address] = servedAddresses(server).submission
  const { status, err } = await runProgram('smtp-source', [
    ...['-s', '20', '-m', String(MESSAGES), '-l', '2000', '-N', '-d'],
    ...['-f', 'printer@sender.test', '-t', 'user@one.test', `127.0.0.1:${address?.port ?? 0}`],
  ])
  t.equal(status, 0, err)
  t.equal(postroad.rowCounts()['messages'], MESSAGES)
  await until('an empty queue', async () => (await postroad.json<unknown[]>('queue', 'list')).length === 0)
  const recipients = sink.mails().map(({ envelope }) => /^X-Rcpt-Args: (.*)$/m.exec(envelope)?.[1])
  t.equal(recipients.length, MESSAGES)
  t.equal(new Set(recipients).size, MESSAGES)
})
