/** Request bodies in JSON: whole or in pieces, they are the value that JSON.parse builds, within bounds. */
import t from 'tap'
import { AppError } from '../../src/core/errors.js'
import { parseJson, parseScanned } from '../../src/http/body/json.js'
import type { JsonBounds } from '../../src/http/body/json-scan.js'
import { SeededRandom } from '../../src/world/fake-random.js'

const BOUNDS: JsonBounds = { values: 1_000 }

function readScanned(octets: Buffer, bounds = BOUNDS): unknown {
  return parseScanned(octets, bounds).value
}

function outcome(run: () => unknown): unknown {
  try {
    return JSON.stringify({ value: run() })
  } catch (error) {
    if (error instanceof AppError) return 'refused'
    if (error instanceof SyntaxError) return 'refused'
    throw error
  }
}

function refusal(run: () => unknown): string {
  try {
    run()
    return 'taken'
  } catch (error) {
    return (error as Error).message
  }
}

const TEXTS = [
  '{}',
  '[]',
  ' [ 1 , -0.5e-3 , 1E5, true,false , null ] ',
  '{"a":{"b":[[],{}]},"":"\\u00e9\\ud83d\\ude00\\"\\\\\\/\\b\\f\\n\\r\\t"}',
  '{"text":"Grüße, 日本語, 😀","a":1,"a":2}',
  '{"__proto__":{"x":1},"constructor":2}',
  `{"long":"${'plain text, then ümlaut and \\"quotes\\" and \\\\\\\\ '.repeat(20)}"}`,
  `"${'\\\\'.repeat(300)}"`,
  '"unended',
  '"bad \\x escape"',
  '"half an escape \\u12"',
  '"a control \n"',
  '{"a" 1}',
  '{"a":1,}',
  '{,}',
  '[1,]',
  '[,1]',
  '[1 2]',
  '{"a":1]',
  '[1}',
  '{1:2}',
  '{"a":1}}',
  '01',
  '1.',
  '+1',
  '-',
  'nul',
  'truex',
  'NaN',
  '',
  ' ',
  '[',
  '{"a":',
]

t.test('a body is the value that JSON.parse makes of it, or refused as there', async t => {
  for (const text of TEXTS) {
    const expected = outcome(() => JSON.parse(text))
    const octets = Buffer.from(text)
    for (const read of [readScanned, parseJson])
      t.equal(
        outcome(() => read(octets, BOUNDS)),
        expected,
        text.slice(0, 60),
      )
  }
})

t.test('a large body is the same value, wherever it is cut into pieces', async t => {
  const long = 'ü"\\'.repeat(20_000)
  const many = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ index, text: 'x'.repeat(20) }))
  const names = (count: number) =>
    Object.fromEntries(many(count).map(entry => [`name ${entry.index}`, entry]))
  const bodies: unknown[] = [
    { first: 1, list: many(5_000), between: [1, 2], other: names(5_000), last: null },
    { list: many(5_000), other: many(5_000) },
    { a: long, b: [long, long], c: { long, d: [[]] }, e: {}, f: [] },
    { list: [{ deep: { long: '→\n'.repeat(70_000) } }, long], text: '😀\u0001'.repeat(90_000) },
    names(9_000),
    many(9_000),
    long,
  ]
  const bounds = { values: 1_000_000 }
  for (const body of bodies)
    for (const space of [0, 1]) {
      const text = JSON.stringify(body, undefined, space).replaceAll('😀', '\\ud83d\\ude00')
      t.ok(JSON.stringify(readScanned(Buffer.from(text), bounds)) === JSON.stringify(body))
    }
  const entries = JSON.stringify(many(5_000))
  const twice = `{"a":${entries},"b":0,"a":[1],"b":${entries},"b":${entries},"__proto__":${entries},"__proto__":{"x":1}}`
  const { pieces } = parseScanned(Buffer.from(twice), bounds).scanned
  t.ok(pieces.length > 10)
  t.ok(JSON.stringify(readScanned(Buffer.from(twice), bounds)) === JSON.stringify(JSON.parse(twice)))
  t.equal(({} as { x?: unknown }).x, undefined)
})

t.test('broken at any place, it is refused where JSON.parse refuses it', async t => {
  const random = new SeededRandom(20_261_122)
  const number = (below: number) => Math.floor(random.fraction() * below)
  const breaks = ['', '"', ',', '}', '[', '0', '\\', ' ', '-', 'e', ':']
  const differing: string[] = []
  for (const text of TEXTS)
    for (let count = 0; count < 40; count += 1) {
      const at = number(text.length + 1)
      const broken = text.slice(0, at) + (breaks[number(breaks.length)] ?? '') + text.slice(at + number(2))
      // Half a pair has no octets.
      if (Buffer.from(broken).toString() !== broken) continue
      const expected = outcome(() => JSON.parse(broken))
      const found = outcome(() => readScanned(Buffer.from(broken)))
      const isHalfPair = /surrogate/.test(refusal(() => readScanned(Buffer.from(broken))))
      if (found !== expected && !isHalfPair) differing.push(broken)
    }
  t.same(differing, [])
})

t.test('what no value can carry on is refused, in one piece and in many', async t => {
  for (const [octets, message] of [
    [Buffer.from('{"a":"\xff"}', 'latin1'), /UTF-8/],
    [Buffer.from([0x22, 0xe2, 0x82, 0x22]), /UTF-8|JSON/],
    [Buffer.from('{"a":"\\ud800"}'), /unpaired surrogate/],
    [Buffer.from('{"\\udc00":1}'), /unpaired surrogate/],
    [Buffer.from('{"a":1e400}'), /out of range/],
    [Buffer.from(`{"${'n'.repeat(1_001)}":1}`), /field name longer than 1000/],
    [Buffer.from('{"a":1,\n"b" 2}'), /not valid JSON \(at byte 12\)/],
  ] as const)
    for (const read of [readScanned, parseJson])
      t.match(
        refusal(() => read(octets, BOUNDS)),
        message,
      )
})

t.test('a byte order mark at the beginning is passed over, and nowhere else', async t => {
  for (const read of [readScanned, parseJson]) {
    t.same(read(Buffer.from('\ufeff{"a":1}'), BOUNDS), { a: 1 })
    t.same(read(Buffer.from('\ufeff[1]'), BOUNDS), [1])
    t.match(
      refusal(() => read(Buffer.from('{\ufeff"a":1}'), BOUNDS)),
      /not valid JSON/,
    )
  }
})

t.test('depth, values and values of one entry are bounded before they are built', async t => {
  const nested = (levels: number) => Buffer.from('['.repeat(levels) + ']'.repeat(levels))
  const list = (entries: number) => Buffer.from(JSON.stringify(Array.from({ length: entries }, () => ({}))))
  const bounds = { values: 1_000, entryValues: 10 }
  const messages = (...sizes: number[]) =>
    Buffer.from(JSON.stringify({ messages: sizes.map(size => Array.from({ length: size }, () => 0)) }))
  for (const read of [readScanned, parseJson]) {
    t.ok(read(nested(100), BOUNDS))
    t.match(
      refusal(() => read(nested(101), BOUNDS)),
      /deeper than 100 levels/,
    )
    t.match(
      refusal(() => read(nested(1_000_000), BOUNDS)),
      /deeper than 100 levels/,
    )
    t.ok(read(list(999), BOUNDS))
    t.match(
      refusal(() => read(list(1_000), BOUNDS)),
      /more than 1000 values/,
    )
    t.ok(read(messages(9, 9, 9), bounds))
    t.match(
      refusal(() => read(messages(9, 10, 9), bounds)),
      /more than 10 values in one entry/,
    )
    t.match(
      refusal(() => read(Buffer.from('[1,'.repeat(50)), { values: 20 })),
      /more than 20 values/,
      'unended',
    )
  }
})
