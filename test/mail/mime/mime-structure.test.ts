/** The positions of MIME parts, in strict and lenient mode, within limits. */
import t from 'tap'
import {
  leavesOf,
  LENIENT,
  readMimeStructure,
  type MimeRules,
} from '../../../src/mail/mime/mime-structure.js'

const STRICT: MimeRules = {
  isLenient: false,
  maxDepth: 10,
  maxParts: 100,
  maxHeaderOctets: 10_000,
  maxFields: 100,
  maxFieldsOfAll: 1_000,
  opens: type => type.startsWith('multipart/') || type === 'message/rfc822',
}

function lines(...all: readonly string[]): Buffer {
  return Buffer.from(all.join('\r\n'), 'latin1')
}

function contents(message: Buffer, rules: MimeRules = LENIENT): string[] {
  return leavesOf(readMimeStructure(message, rules)).map(({ bodyStart, end }) =>
    message.toString('latin1', bodyStart, end),
  )
}

function multipart(boundary: string): string {
  return `Content-Type: multipart/mixed; boundary="${boundary}"`
}

t.test('parts, preamble and epilogue are reported by position', t => {
  const message = lines(
    multipart('b'),
    ...[
      '',
      'nobody reads this',
      '--b',
      'Content-Type: text/html',
      '',
      'one',
      '',
      '--b',
      '',
      'two',
      '--b--',
      'nor this',
    ],
  )
  const { parts, preamble, epilogue } = readMimeStructure(message, STRICT)
  const text = ({ start, end }: { start: number; end: number }) => message.toString('latin1', start, end)
  t.same(contents(message, STRICT), ['one\r\n', 'two'])
  t.same(
    parts.map(({ type }) => type.value),
    ['text/html', 'text/plain'],
  )
  t.equal(preamble && text(preamble), 'nobody reads this')
  t.equal(epilogue && text(epilogue), 'nor this')
  t.end()
})

t.test('boundaries with a common prefix differ, and an outer one ends unclosed inner multiparts', t => {
  const message = lines(
    multipart('edge'),
    ...['', '--edge', multipart('edge-in'), '', '--edge-in', '', '--edgy', '--edge', '', 'last', '--edge--'],
  )
  t.same(contents(message, STRICT), ['--edgy', 'last'])
  t.end()
})

t.test('an attached message is parsed if the rules say so', t => {
  const message = lines('Content-Type: message/rfc822', '', multipart('b'), '', '--b', '', 'x', '--b--')
  t.same(contents(message, STRICT), ['x'])
  t.equal(contents(message).length, 1)
  t.end()
})

t.test('common errors of mail systems are tolerated in lenient mode', t => {
  const moved = lines(multipart('b'), '', ' --b', '', 'one', ' --b', '', 'two', ' --b--')
  t.same(contents(moved), ['one', 'two'])
  t.same(contents(moved, STRICT).length, 1)
  const renamed = lines(multipart('b'), '', '--other', 'Content-Type: text/plain', '', 'one', '--other--')
  t.same(contents(renamed), ['one'])
  const bare = lines(multipart('b'), '', '--b', 'No header here', 'but text', '--b--')
  t.same(contents(bare), ['No header here\r\nbut text'])
  t.same(contents(Buffer.from('\n\nSubject: x\n\nbody\n')), ['body\n'])
  t.same(contents(Buffer.from(`${multipart('b')}\n\n--b\n\none\n--b--\n`)), ['one'])
  t.end()
})

t.test('strict mode rejects what exceeds the limits', t => {
  const nested = Array.from(
    { length: 12 },
    (_, level) => `${multipart(`n${level}`)}\r\n\r\n--n${level}\r\n`,
  ).join('')
  const refusals: readonly (readonly [string, string])[] = [
    [nested, 'levels deep'],
    [`${multipart('b')}\r\n\r\n${'--b\r\n\r\nx\r\n'.repeat(200)}`, 'more than 100 parts'],
    [`Subject: ${'x'.repeat(10_001)}\r\n\r\n`, 'longer than 10000 octets'],
    ['a: b\r\n'.repeat(101), 'more than 100 fields'],
    [
      `${multipart('b')}\r\n\r\n${`--b\r\n${'a: b\r\n'.repeat(90)}\r\n`.repeat(12)}`,
      'more than 1000 header fields',
    ],
  ]
  for (const [text, why] of refusals)
    t.throws(
      () => readMimeStructure(Buffer.from(text), STRICT),
      { code: 'validation_error', message: why },
      why,
    )
  t.end()
})

t.test('lenient mode omits what exceeds the limits and never throws', t => {
  const nested = Array.from(
    { length: 1_000 },
    (_, level) => `${multipart(`n${level}`)}\r\n\r\n--n${level}\r\n`,
  ).join('')
  t.equal(contents(Buffer.from(nested)).length, 1)
  const many = Buffer.from(`${multipart('b')}\r\n\r\n${'--b\r\n\r\nx\r\n'.repeat(100_000)}`)
  t.ok(contents(many).length <= LENIENT.maxParts)
  t.equal(contents(many)[0], 'x')
  const [only] = leavesOf(readMimeStructure(Buffer.from('a: b\n'.repeat(100_000)), LENIENT))
  t.ok((only?.fields.length ?? 0) <= LENIENT.maxFields + 1)
  for (const text of [
    '',
    '\r\n',
    '--',
    '--b',
    multipart('b'),
    `${multipart('')}\r\n\r\n--\r\n`,
    '\r'.repeat(1_000),
  ])
    t.doesNotThrow(() => contents(Buffer.from(text)), JSON.stringify(text.slice(0, 20)))
  t.end()
})
