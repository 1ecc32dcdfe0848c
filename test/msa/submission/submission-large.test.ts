/** Messages of many parts: they arrive whole, keep to the limit, and leave nothing behind when they are given up. */
import t from 'tap'
import { createHash } from 'node:crypto'
import { simpleParser, type ParsedMail } from 'mailparser'
import { dkimVerdicts, dkimZone } from '../../support/dkim.js'
import { idsOf, letter, openSubmissionTest, type SubmissionTest } from '../../support/smtp/submission.js'
import { until } from '../../support/until.js'

const MEGABYTE = 1_000_000
const LIMIT = { toml: '[limits]\nmessage_size = "1MB"' }

/** A mail of at least so many octets, no two lines of which are the same, dots and empty lines among them. */
function largeLetter(octets: number): { message: string; body: string } {
  const lines: string[] = []
  for (let length = 0, number = 0; length < octets; number++) {
    const line = `${number % 7 === 0 ? '.' : ''}${number % 11 === 0 ? '' : `${number} ${'x'.repeat(number % 70)}`}`
    lines.push(line)
    length += line.length + 2
  }
  const body = `${lines.join('\r\n')}\r\n`
  return { message: letter().replace('Hello.\r\n', body), body }
}

function hash(text: string): string {
  return createHash('sha256').update(text, 'latin1').digest('hex')
}

async function untilNothingIsLeft({ postroad }: SubmissionTest): Promise<void> {
  await until('the parts to be gone', () => postroad.rowCounts()['message_parts'] === 0)
}

t.test('a message of 5 MB arrives whole, by DATA and by BDAT', async t => {
  const { postroad, loggedIn, caught } = await openSubmissionTest(t)
  const client = await loggedIn()
  const { message, body } = largeLetter(5 * MEGABYTE)
  const [first = ''] = idsOf(await client.submit(message))
  t.ok((postroad.rowCounts()['message_parts'] ?? 0) >= 19, 'kept in parts')
  t.equal(hash((await caught(first)).body), hash(body))

  await client.say('MAIL FROM:<app@sender.test>')
  await client.say('RCPT TO:<ann@one.test>')
  const chunk = 700_001
  let reply = ''
  for (let at = 0; at < message.length; at += chunk) {
    const octets = message.slice(at, at + chunk)
    client.raw(`BDAT ${octets.length}${at + chunk < message.length ? '' : ' LAST'}\r\n${octets}`)
    reply = await client.reply()
    t.match(reply, /^250 /)
  }
  const [second = ''] = idsOf(reply)
  t.equal(hash((await caught(second)).body), hash(body))
})

t.test(
  'lines as long as the message are encoded and arrive as they were, with tracking as without',
  async t => {
    const { addDomain, loggedIn, caught } = await openSubmissionTest(t)
    const zone = dkimZone(await addDomain())
    const client = await loggedIn()
    const words = 'lorem ipsum dolor '.repeat(60_000)
    const markup = `<p>${words}</p><a href="https://shop.test/">x</a>`
    const pdf = Buffer.alloc(600_000, 'PDF')
    for (const [what, fields, body, isSo] of [
      ['text', [], words, (mail: ParsedMail) => mail.text?.trimEnd() === words.trimEnd()],
      [
        'HTML',
        ['Content-Type: text/html; charset=utf-8', 'X-Postroad-Track: opens,clicks'],
        markup,
        ({ html }: ParsedMail) => html !== false && html.includes(`<p>${words}</p>`) && html.includes('/c/'),
      ],
      [
        'base64',
        ['Content-Type: application/pdf', 'Content-Transfer-Encoding: base64'],
        pdf.toString('base64'),
        ({ attachments: [file] }: ParsedMail) => file?.content.equals(pdf) ?? false,
      ],
    ] as const) {
      const message = letter('MIME-Version: 1.0', ...fields).replace('Hello.\r\n', `${body}\r\n`)
      const [id = ''] = idsOf(await client.submit(message))
      const { raw } = await caught(id)
      const longest = Math.max(
        ...raw
          .toString('latin1')
          .split('\r\n')
          .map(({ length }) => length),
      )
      t.ok(longest <= 998, `${what}: the longest line has ${longest} octets`)
      t.ok(isSo(await simpleParser(raw)), what)
      for (const verdict of await dkimVerdicts(raw, zone)) t.match(verdict, /pass$/, what)
    }
  },
)

t.test('a message larger than the limit is refused: at MAIL where it says so, else at its end', async t => {
  const test = await openSubmissionTest(t, LIMIT)
  const client = await test.loggedIn()
  t.match(await client.say('MAIL FROM:<app@sender.test> SIZE=2000000'), /^552 5\.3\.4 /)
  t.match(await client.submit(largeLetter(1.5 * MEGABYTE).message), /^552 5\.3\.4 /)
  t.match(await client.submit(largeLetter(0.9 * MEGABYTE).message), /^250 /, 'the session continues')
  await until('the parts to be gone', () => (test.postroad.rowCounts()['message_parts'] ?? 0) <= 3)
  t.equal(test.postroad.rowCounts()['messages'], 1)
})

t.test('a message that is cut off leaves nothing behind', async t => {
  const test = await openSubmissionTest(t)
  const { message } = largeLetter(2 * MEGABYTE)
  const client = await test.loggedIn()
  await client.begin()
  client.raw(message.replace(/^\./gm, '..'))
  await until('parts', () => (test.postroad.rowCounts()['message_parts'] ?? 0) > 3)
  client.cut()
  await untilNothingIsLeft(test)
  t.match(test.postroad.rowCounts(), { messages: 0, message_contents: 0 })
})

t.test('a large message that is refused at its end leaves nothing behind', async t => {
  const test = await openSubmissionTest(t)
  const client = await test.loggedIn()
  const { message } = largeLetter(1 * MEGABYTE)
  t.match(await client.submit(message.replace('From: ', 'From: a@b.test\r\nFrom: ')), /^550 5\.6\.0 /)
  await untilNothingIsLeft(test)
  const bareLineFeed = `${message.slice(0, -1_000)}\n${message.slice(-1_000)}`
  t.match(await client.submit(bareLineFeed), /^550 5\.6\.0 /)
  await untilNothingIsLeft(test)
  t.match(test.postroad.rowCounts(), { messages: 0, message_contents: 0 })
})

t.test('a large message goes to each recipient whole', async t => {
  const { loggedIn, caught } = await openSubmissionTest(t)
  const client = await loggedIn()
  const { message, body } = largeLetter(0.6 * MEGABYTE)
  const to = ['a@one.test', 'b@two.test', 'c@three.test']
  for (const id of idsOf(await client.submit(message, { to })))
    t.equal(hash((await caught(id)).body), hash(body))
})
