import t from 'tap'
import { generateKeyPairSync } from 'node:crypto'
import { createRequire } from 'node:module'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { composeMessage } from '../../src/mail/compose/compose.js'
import { dkimRecord, publicKeyText } from '../../src/mail/dkim/dkim-record.js'
import { signMessage, type DkimKey } from '../../src/mail/dkim/dkim-sign.js'

const signedAt = Date.UTC(2026, 0, 15, 12)
const zone = new Map<string, string>()

function newKey(algorithm: 'rsa' | 'ed25519', selector: string): DkimKey {
  const { privateKey, publicKey } =
    algorithm === 'rsa' ? generateKeyPairSync('rsa', { modulusLength: 2048 }) : generateKeyPairSync('ed25519')
  const domain = 'example.com'
  zone.set(`${selector}._domainkey.${domain}`, dkimRecord(algorithm, publicKeyText(publicKey)))
  return {
    domain,
    selector,
    algorithm,
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

const rsa = newKey('rsa', 'r1')
const ed25519 = newKey('ed25519', 'e1')

/** Asks mailauth, which finds the keys in `zone`. */
async function verdicts(message: Buffer | string): Promise<string[]> {
  const resolver = async (name: string, type: string): Promise<string[][]> => {
    const record = type === 'TXT' ? zone.get(name) : undefined
    if (record === undefined) throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
    return [[record]]
  }
  const { results } = await dkimVerify(Buffer.from(message), {
    resolver,
    curTime: new Date(signedAt + 60_000),
  })
  // Its type declarations leave out the algorithm.
  const signatures = results as { status: { result: string }; selector?: string; algo?: string }[]
  return signatures.map(({ status, algo, selector }) => `${selector ?? ''} ${algo ?? ''} ${status.result}`)
}

const bothPass = ['r1 rsa-sha256 pass', 'e1 ed25519-sha256 pass']

function mail(body: string, fields: readonly string[] = []): Buffer {
  const head = [
    'From: Ann <ann@example.com>',
    'To: bob@example.net',
    'Subject: Hello',
    'Date: Thu, 15 Jan 2026 12:00:00 +0000',
    'Message-ID: <1@example.com>',
    ...fields,
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}

const corpus: Readonly<Record<string, Buffer>> = {
  'an empty body': mail(''),
  'a body of one empty line': mail('\r\n'),
  'a body of empty lines': mail('\r\n\r\n\r\n'),
  'a body of white space': mail(' \t\r\n \r\n'),
  'one line without its CRLF': mail('Hello'),
  'one line with trailing white space instead of its CRLF': mail('Hello \t '),
  'trailing empty lines': mail('Hello\r\n\r\n\r\n\r\n'),
  'trailing lines of white space': mail('Hello\r\n \r\n\t\r\n'),
  'leading empty lines': mail('\r\n\r\nHello\r\n'),
  'tabs and runs of white space': mail('a\t\tb  \t c \r\n\tindented\r\n   also\r\n'),
  'dots at line starts': mail('.\r\n..\r\n.hidden\r\n'),
  'vertical tabs and form feeds': mail('a\v\vb\f\fc \v\r\n'),
  'lines of 998 octets': mail(`${'x'.repeat(998)}\r\n${'y '.repeat(499)}\r\n`),
  'a long folded header': mail('Hello\r\n', [
    `References: ${'<aaaaaaaaaaaaaaaa@example.com>\r\n\t '.repeat(60)}<b@c>`,
  ]),
  'a header in UTF-8': mail('Hello\r\n', ['Cc: Jörg <jörg@example.net>', 'Sender: jürgen@example.com']),
  'an empty header field': mail('Hello\r\n', ['Reply-To:', 'Cc: ']),
  'fields that occur several times': mail('Hello\r\n', [
    'Cc: a@example.net',
    'Cc: b@example.net',
    'List-Id: <x>',
  ]),
  'odd spacing around colons': mail('Hello\r\n', ['Reply-To \t:\t ann@example.com \t']),
}
for (const [what, message] of Object.entries(corpus))
  t.test(`signatures over ${what} verify`, async t => {
    const signed = await signMessage(message, [rsa, ed25519], signedAt)
    t.same(await verdicts(signed), bothPass)
    t.ok(signed.subarray(-message.length).equals(message), 'the message itself is unchanged')
  })

/** A signer nobody here wrote; it has no type declarations. */
const dkimSigner = createRequire(import.meta.url)('dkim-signer') as {
  DKIMSign(message: string, options: Readonly<Record<string, string>>): string
}
/** It hashes empty bodies as one line end, and drops VT and FF. */
const dkimSignerIsWrongAbout = /^an? (?:empty )?body|vertical tabs/

t.test('dkim-signer computes the same body hash', async t => {
  const bodyHash = (signed: string) => /bh=([^;]+);/.exec(signed.replace(/\r\n\s+/g, ''))?.[1]
  for (const [what, message] of Object.entries(corpus)) {
    if (dkimSignerIsWrongAbout.test(what)) continue
    const ours = (await signMessage(message, [rsa], signedAt)).toString()
    const theirs = dkimSigner.DKIMSign(message.toString(), {
      domainName: rsa.domain,
      keySelector: rsa.selector,
      privateKey: rsa.privateKey,
    })
    t.equal(bodyHash(ours), bodyHash(theirs), what)
  }
})

t.test(
  'signatures over composed mail verify: UTF-8 subject, NBSP in long HTML lines, emoji, list fields',
  async t => {
    const message = await composeMessage(
      {
        kind: 'composed',
        from: { name: 'Grüße, "Ann" \u{1f600}', address: 'ann@example.com' },
        replyTo: { address: 'help@example.com' },
        subject: 'Ünïcödé '.repeat(30),
        html: `<p>${'x\u00a0y  '.repeat(3_000)}</p>\n.\n..\n \n\n`,
        headers: [
          { name: 'List-Unsubscribe', value: '<https://example.com/u/abc>, <mailto:u+abc@example.com>' },
          { name: 'List-Unsubscribe-Post', value: 'List-Unsubscribe=One-Click' },
        ],
      },
      { to: 'bob@example.net', date: signedAt, messageId: '1@example.com' },
    )
    t.same(await verdicts(await signMessage(message, [rsa, ed25519], signedAt)), bothPass)
  },
)

t.test('each key adds one signature, in order; without keys nothing changes', async t => {
  const message = corpus['dots at line starts']!
  t.same(await verdicts(await signMessage(message, [ed25519, rsa], signedAt)), bothPass.toReversed())
  t.same(await verdicts(await signMessage(message, [rsa], signedAt)), bothPass.slice(0, 1))
  t.equal(await signMessage(message, [], signedAt), message)
})

t.test('the signature has a timestamp, covers the whole body and is folded at 78', async t => {
  const signed = (await signMessage(mail('Hello\r\n'), [rsa, ed25519], signedAt)).toString()
  const fields = signed.slice(0, signed.indexOf('From: '))
  t.match(fields, /t=1768478400;/)
  t.notMatch(fields, /[;\s]l=/)
  for (const line of fields.split('\r\n')) t.ok(line.length <= 78, line)
})

const signed = await signMessage(
  mail('Hello\r\n', ['MIME-Version: 1.0', 'Content-Type: text/plain']),
  [rsa, ed25519],
  signedAt,
)
for (const field of [
  'From: Eve <eve@example.com>',
  'Subject: You won',
  'To: eve@example.net',
  'Date: Fri, 16 Jan 2026 12:00:00 +0000',
  'Message-ID: <2@example.com>',
  'Cc: eve@example.net',
  'Reply-To: eve@example.net',
  'List-Unsubscribe: <https://evil.example/>',
  'List-Unsubscribe-Post: List-Unsubscribe=One-Click',
  'MIME-Version: 1.0',
  'Content-Type: text/html',
  'Content-Transfer-Encoding: base64',
])
  t.test(`adding "${field}" in transit breaks the signatures`, async t => {
    const text = signed.toString()
    const atEnd = text.replace('\r\n\r\n', `\r\n${field}\r\n\r\n`)
    for (const changed of [`${field}\r\n${text}`, atEnd]) {
      const results = await verdicts(changed)
      t.equal(results.length, 2)
      t.notOk(
        results.some(result => result.endsWith('pass')),
        results.join(),
      )
    }
  })

t.test('fields added by relays do not break the signatures', async t => {
  const relayed = `Received: from a by b; Thu, 15 Jan 2026 12:00:01 +0000\r\nX-Spam: no\r\n${signed.toString()}`
  t.same(await verdicts(relayed), bothPass)
})

t.test('a changed body breaks the signatures', async t => {
  const results = await verdicts(signed.toString().replace('\r\n\r\nHello', '\r\n\r\nHullo'))
  t.equal(results.length, 2)
  t.notOk(
    results.some(result => result.endsWith('pass')),
    results.join(),
  )
})

t.test('a message with 8-bit octets, bare line endings, long lines or no From is not signed', async t => {
  await t.rejects(signMessage(mail('caf\u00e9\r\n'), [rsa], signedAt), /7-bit/)
  await t.rejects(signMessage(mail('a\nb\r\n'), [rsa], signedAt), /bare CR or LF/)
  await t.rejects(signMessage(mail('x'.repeat(999)), [rsa], signedAt), /998/)
  await t.rejects(signMessage(Buffer.from('To: a@example.com\r\n\r\n'), [rsa], signedAt), /no From/)
})

t.test('an unusable key is named without being disclosed', async t => {
  const broken = { ...rsa, privateKey: '-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n' }
  await t.rejects(signMessage(mail(''), [broken], signedAt), {
    message: 'DKIM key r1 of example.com cannot be read',
  })
  const wrong = { ...ed25519, privateKey: rsa.privateKey }
  await t.rejects(signMessage(mail(''), [wrong], signedAt), {
    message: 'DKIM key e1 of example.com is not of type ed25519',
  })
})
