/** Sending to non-ASCII addresses (RFC 6531): which header each recipient gets, and what servers must support. */
import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { dkimRecord, publicKeyText } from '../../src/mail/dkim/dkim-record.js'
import type { DkimKey } from '../../src/mail/dkim/dkim-sign.js'
import type { DeliveryJob } from '../../src/queue/delivery-agent.js'
import { dkimVerdicts } from '../support/dkim.js'
import { scriptedServer } from '../support/smtp/scripted-server.js'
import { goOn, LETTER, makeJob, testMta } from '../support/smtp/mta.js'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const key: DkimKey = {
  domain: 'sender.example',
  selector: 's1',
  algorithm: 'ed25519',
  privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
}
const zone = new Map([['s1._domainkey.sender.example', dkimRecord('ed25519', publicKeyText(publicKey))]])

const takes = (mailFrom: string, recipient: string, ...extensions: string[]) => `
  S 220 mx.example ESMTP
  C EHLO ...
  S 250-mx.example
  ${extensions.map(extension => `S 250-${extension}\n`).join('')}
  S 250 HELP
  C ${mailFrom}
  S 250 ok
  C RCPT TO:<${recipient}>
  S 250 ok
  C DATA
  S 354 go on
  M
  S 250 ok`

const MAIL = 'MAIL FROM:<b+token@bounce.sender.example>'

/** Delivers to a server that says what it offers. @returns the header as it arrived, unfolded */
async function headerOf(
  t: Parameters<typeof scriptedServer>[0],
  script: string,
  job: Partial<DeliveryJob>,
): Promise<string> {
  const mx = await scriptedServer(t, script)
  const { agent } = testMta(t, { '192.0.2.25': mx })
  t.match(await agent.deliver(makeJob({ signingKeys: [key], ...job }), goOn), { kind: 'delivered' })
  const [message = Buffer.alloc(0)] = mx.messages
  t.same(await dkimVerdicts(message, zone), ['sender.example ed25519-sha256 pass'])
  const text = message.toString('utf8').replace(/\r\n[ \t]+/g, ' ')
  return text.slice(0, text.indexOf('\r\n\r\n'))
}

const withCopies = {
  content: {
    ...LETTER,
    addressees: {
      to: [{ address: 'ann@example.com' }, { address: 'jürgen@example.com' }],
      cc: [{ address: 'jörg@example.com' }],
      hasCopies: true,
    },
  },
}
const relayed = {
  content: {
    kind: 'relayed' as const,
    subject: 'Grüße',
    message: Buffer.from(
      [
        'From: Shop <shop@sender.example>',
        'To: ann@example.com, Jürgen <jürgen@example.com>',
        'Cc: jörg@example.com',
        'Subject: Grüße',
        'Content-Type: text/plain; charset=utf-8',
        'Content-Transfer-Encoding: 8bit',
        '',
        'Köln',
        '',
      ].join('\r\n'),
    ),
  },
}

t.test(
  'a server without SMTPUTF8 accepts mail for an ASCII address whose header names a non-ASCII one',
  async t => {
    for (const job of [withCopies, relayed]) {
      const header = await headerOf(t, takes(MAIL, 'ann@example.com'), {
        recipient: 'ann@example.com',
        ...job,
      })
      t.match(header, /^To: ann@example\.com, =\?UTF-8\?Q\?j=C3=BCrgen=40example=2Ecom\?=:;\r$/m)
      t.notMatch(header, /[^\t\r\n -~]/)
    }
  },
)

t.test('an ASCII recipient gets the ASCII header even from an SMTPUTF8 server', async t => {
  const script = takes(MAIL, 'ann@example.com', 'SMTPUTF8', '8BITMIME')
  t.notMatch(await headerOf(t, script, { recipient: 'ann@example.com', ...relayed }), /[^\t\r\n -~]/)
})

t.test('a non-ASCII recipient is shown in UTF-8, signed and delivered so', async t => {
  const recipient = 'jürgen@example.com'
  const script = takes(`${MAIL} BODY=8BITMIME SMTPUTF8`, recipient, 'SMTPUTF8', '8BITMIME')
  t.match(await headerOf(t, script, { recipient }), /^To: jürgen@example\.com\r$/m)
  const composed = await headerOf(t, script, { recipient, ...withCopies })
  t.match(composed, /^To: ann@example\.com, jürgen@example\.com\r\nCc: jörg@example\.com\r$/m)
  const header = await headerOf(t, script, { recipient, ...relayed })
  t.match(header, /^To: ann@example\.com, =\?UTF-8\?.*\?= <jürgen@example\.com>\r\nCc: jörg@example\.com\r$/m)
})

t.test('SMTPUTF8 implies 8BITMIME', async t => {
  const recipient = 'jürgen@example.com'
  t.match(await headerOf(t, takes(`${MAIL} SMTPUTF8`, recipient, 'SMTPUTF8'), { recipient }), /^To: jürgen@/m)
})
