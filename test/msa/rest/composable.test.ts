/**
 * Whatever the fields of a message let through can be built: thousands of messages made of odd text, each as the API reads it
 * and as a delivery thread then composes it.
 */
import t from 'tap'
import { AppError } from '../../../src/core/errors.js'
import type { ComposedContent } from '../../../src/mail/compose/compose.js'
import { isSevenBit } from '../../../src/mail/mime/transfer-encoding.js'
import { readContentFields } from '../../../src/msa/rest/content-fields.js'
import { readRecipientFields, readSenderFields } from '../../../src/msa/rest/address-fields.js'
import { SendBody } from '../../../src/msa/rest/send-schema.js'
import { openRenderer } from '../../../src/mta/render.js'
import { validator } from '../../../src/http/validate.js'
import { parseAddress } from '../../../src/mail/address.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { SeededRandom } from '../../../src/world/fake-random.js'
import { makeJob } from '../../support/smtp/mta.js'

const MESSAGES = 4_000

const PIECES = [
  ...Array.from('abcXYZ019 _-.,;:@<>()[]{}"\'\\/=?!#$%&*+^`|~'),
  ...[
    '\t',
    '\r',
    '\n',
    '\r\n',
    '\0',
    '\x1b',
    '\x7f',
    '\x85',
    '\xa0',
    '\u200b',
    '\u202e',
    '\u2028',
    '\ufeff',
    '\ufffd',
  ],
  ...[
    '\ud800',
    '\udc00',
    '\ud83d',
    '😀',
    'ü',
    'ß',
    'é',
    'e\u0301',
    'שלום',
    '漢字',
    'İ',
    'ﬀ',
    '\u{e0041}',
    '\uffff',
  ],
  ...[
    '=?utf-8?Q?=0D=0A?=',
    '=?utf-8?B?4pyT?=',
    '=?',
    '?=',
    '<b>',
    '</b>',
    '<!--',
    '--',
    '=_',
    '\r\n\r\n',
    '\n.\n',
  ],
  ...['word ', 'Subject: x', 'x'.repeat(80), 'ü'.repeat(80), 'a b '.repeat(30)],
]

const PLAIN = Array.from('abc ü漢😀."<,')

const LOCALS = [
  'ann',
  'ann+x',
  '"a b"',
  '"a,b"',
  '"a\\"b"',
  'jörg',
  '用户',
  'a..b',
  'x'.repeat(64),
  "o'brien",
  '',
]
const USUAL = ['ann@one.test', 'bob+x@BÜCHER.test', '"a,b"@two.test', "o'brien@xn--bcher-kva.test"]
const DOMAINS = [
  ...[
    'one.test',
    'ONE.Test',
    'bücher.test',
    'xn--bcher-kva.test',
    'xn--0.test',
    '☃.test',
    'ﬀ.test',
    'İ.test',
    'faß.test',
  ],
  ...[
    '例え.テスト',
    'a\u200d.test',
    '.test',
    'one',
    '127.0.0.1',
    '[127.0.0.1]',
    `${'y'.repeat(63)}.test`,
    'ü'.repeat(40) + '.test',
  ],
]

class MessageMaker {
  private readonly random: SeededRandom

  constructor(random: SeededRandom) {
    this.random = random
  }

  message(): unknown {
    const optional: Record<string, () => unknown> = {
      html: () => this.text(60),
      text: () => this.text(60),
      from_name: () => this.text(12),
      reply_to: () => this.mailbox(),
      cc: () => this.list(() => this.mailbox()),
      bcc: () => this.list(() => this.mailbox()),
      attachments: () => this.list(() => this.attachment()),
      headers: () =>
        Object.fromEntries(
          this.list(() => [this.pick(['X-A', 'X-B', 'References', this.text(3)]), this.text(30)]),
        ),
      tags: () => this.list(() => this.text(4)),
    }
    const chosen = Object.entries(optional).filter(() => this.chance(0.4))
    return {
      to: this.chance(0.5) ? this.mailbox() : [this.mailbox(), ...this.list(() => this.mailbox())],
      subject: this.chance(0.05) ? this.text(200) : this.text(20),
      from_email: this.mailbox(),
      text: 'Hello.',
      ...Object.fromEntries(chosen.map(([name, make]) => [name, make()])),
    }
  }

  private mailbox(): string {
    const isOdd = this.chance(0.15)
    const address = isOdd ? `${this.pick(LOCALS)}@${this.pick(DOMAINS)}` : this.pick(USUAL)
    if (this.chance(0.5)) return address
    const name = this.text(8)
    return this.pick([
      `${name} <${address}>`,
      `"${name.replace(/["\\]/g, '\\$&')}" <${address}>`,
      `${address} (${name})`,
    ])
  }

  private attachment(): object {
    const type = this.pick([
      undefined,
      'text/plain',
      'message/rfc822',
      'image/png; name="a b"',
      'multipart/x',
      this.text(4),
    ])
    const octets = Buffer.from(this.chance(0.5) ? `From: a@b.test\n\n${this.text(30)}` : this.text(30))
    return {
      filename: `${this.text(6)}${this.pick(['', '.eml', '.pdf', '.mht'])}`,
      content: octets.toString(this.pick(['base64', 'base64url'])),
      ...(type === undefined ? {} : { content_type: type }),
      ...(this.chance(0.3) ? { content_id: this.text(3) } : {}),
    }
  }

  /** Mostly plain pieces, so that many a text passes. */
  private text(most: number): string {
    const isOdd = this.chance(0.2)
    const pieces = Array.from({ length: 1 + this.number(most) }, () =>
      isOdd ? this.pick(PIECES) : this.pick(PLAIN),
    )
    return pieces.join('')
  }

  private list<T>(make: () => T): T[] {
    return Array.from({ length: this.number(4) }, make)
  }

  private pick<T>(from: readonly T[]): T {
    return from[this.number(from.length)] as T
  }

  private chance(part: number): boolean {
    return this.random.fraction() < part
  }

  private number(below: number): number {
    return Math.floor(this.random.fraction() * below)
  }
}

const check = validator(SendBody, 'body')

/** As `send-email.ts` reads it. @returns undefined for what is refused */
function read(message: unknown): { recipients: readonly string[]; content: ComposedContent } | undefined {
  try {
    const body = check(message)
    const { recipients, addressees } = readRecipientFields(body)
    const { fromAddress = '', name, replyTo } = readSenderFields(body)
    const { subject, html, text, others, attached } = readContentFields(body, 1_000_000)
    const { headers, attachments = [] } = others
    let start = 0
    const content: ComposedContent = {
      kind: 'composed',
      from: name === undefined || name === '' ? { address: fromAddress } : { name, address: fromAddress },
      subject: subject.source,
      ...(replyTo ? { replyTo } : {}),
      ...(html === undefined ? {} : { html }),
      ...(text === undefined ? {} : { text }),
      ...(headers ? { headers } : {}),
      ...(addressees ? { addressees } : {}),
      ...(addressees?.hasCopies ? { mailId: 'mail' } : {}),
      attachments: attachments.map(({ size, ...facts }) => ({
        ...facts,
        octets: (attached ?? Buffer.alloc(0)).subarray(start, (start += size)),
      })),
    }
    return { recipients: recipients.filter(text => parseAddress(text) !== undefined), content }
  } catch (error) {
    if (error instanceof AppError && /^(validation_error|no_content)$/.test(error.code)) return undefined
    throw error
  }
}

t.test('every message that is accepted can be built, in 7-bit lines', async t => {
  const render = openRenderer({ clock: new FakeClock(), hostname: 'mail.one.test' })
  const maker = new MessageMaker(new SeededRandom(11))
  let built = 0
  const faults: unknown[] = []
  for (let round = 0; round < MESSAGES; round += 1) {
    const message = maker.message()
    const accepted = read(message)
    for (const recipient of accepted?.recipients ?? []) {
      const rendering = await render(makeJob({ recipient, content: accepted!.content }))
      built += 1
      // A recipient beyond ASCII is only offered to servers that take such headers as well.
      const isCarried =
        rendering.kind === 'rendered' &&
        (rendering.needsSmtpUtf8 || parseAddress(recipient)?.needsSmtpUtf8 || isSevenBit(rendering.message))
      if (!isCarried) faults.push({ message, why: 'summary' in rendering ? rendering.summary : 'not 7-bit' })
    }
  }
  t.same(faults.slice(0, 3), [])
  t.ok(built > MESSAGES / 2, `${built} were built`)
})
