import t from 'tap'
import {
  MalformedReply,
  MAX_LINE_BYTES,
  MAX_LINES,
  ReplyParser,
  toSmtpReply,
} from '../../../src/mta/smtp/smtp-connection.js'

/** Replies in the octets, however they are cut. */
function parse(...chunks: readonly string[]) {
  const parser = new ReplyParser()
  return chunks.flatMap(chunk => parser.push(Buffer.from(chunk, 'utf8'))).map(toSmtpReply)
}

t.test('a reply has a code, an enhanced code and text', async t => {
  t.same(parse('250 2.1.0 Sender Ok\r\n'), [{ code: 250, enhanced: '2.1.0', text: 'Sender Ok' }])
  t.same(parse('250 Ok\r\n'), [{ code: 250, text: 'Ok' }])
  t.same(parse('250\r\n'), [{ code: 250, text: '' }])
  t.same(parse('250 \r\n'), [{ code: 250, text: '' }])
})

t.test('replies are parsed alike however their octets are split', async t => {
  const octets = '220-mx.example\r\n220 wélcome\r\n550-5.1.1 no\r\n550 5.1.1 such user\r\n'
  const whole = parse(octets)
  t.same(whole, [
    { code: 220, text: 'mx.example wélcome' },
    { code: 550, enhanced: '5.1.1', text: 'no such user' },
  ])
  const parser = new ReplyParser()
  const cut = [...Buffer.from(octets)].flatMap(octet => parser.push(Buffer.from([octet])))
  t.same(cut.map(toSmtpReply), whole)
})

t.test('a code in the middle of the text is ignored', async t => {
  t.same(parse('550 remote said 5.1.1 unknown\r\n'), [{ code: 550, text: 'remote said 5.1.1 unknown' }])
})

t.test('lines ending in a bare LF are accepted', async t => {
  t.same(parse('220-a\n220 b\n'), [{ code: 220, text: 'a b' }])
})

t.test('if line codes differ, the last one counts', async t => {
  t.same(parse('250-ok so far\r\n550 no\r\n'), [{ code: 550, text: 'ok so far no' }])
})

t.test('control characters are removed from the text', async t => {
  t.same(parse('550 a\u001b[31mb\u0000c\rd\r\n'), [{ code: 550, text: 'a [31mb c d' }])
})

t.test('a thousand characters of the text are kept', async t => {
  const [reply] = parse(`550-${'x'.repeat(900)}\r\n550 ${'y'.repeat(900)}\r\n`)
  t.equal(reply?.text.length, 1_000)
})

for (const line of ['', 'hello', '25 ok', '2500 ok', '250ok', '150 wait', '650 what', ' 250 ok', '250_ok'])
  t.test(`"${line}" is not a reply`, async t => {
    t.throws(() => parse(`${line}\r\n`), MalformedReply)
  })

t.test('a line is accepted up to its maximum length and rejected beyond, even before its end', async t => {
  t.equal(parse(`250 ${'x'.repeat(MAX_LINE_BYTES - 5)}\r\n`).length, 1)
  t.throws(() => parse(`250 ${'x'.repeat(MAX_LINE_BYTES)}\r\n`), MalformedReply)
  t.throws(() => parse('250 ', 'x'.repeat(MAX_LINE_BYTES)), MalformedReply)
})

t.test('a reply is accepted up to its maximum number of lines and rejected beyond', async t => {
  t.equal(parse(`${'250-x\r\n'.repeat(MAX_LINES - 1)}250 end\r\n`).length, 1)
  t.throws(() => parse('250-x\r\n'.repeat(MAX_LINES + 1)), MalformedReply)
})
