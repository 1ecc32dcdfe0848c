/** The reader of large JSON bodies: it builds what JSON.parse builds, wherever the pieces are cut, and stops at its bounds. */
import t from 'tap'
import { AppError } from '../../src/core/errors.js'
import { JsonReader, type JsonBounds } from '../../src/http/body/json-reader.js'
import { readWholeJson } from '../../src/http/body/json-whole.js'
import { SeededRandom } from '../../src/world/fake-random.js'

const BOUNDS: JsonBounds = { values: 1_000 }

function read(octets: Buffer, pieceOctets: number, bounds = BOUNDS): unknown {
  const reader = new JsonReader(bounds)
  for (let at = 0; at < octets.length; at += pieceOctets) reader.write(octets.subarray(at, at + pieceOctets))
  return reader.end()
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

t.test(
  'wherever it is cut, a text is the value that JSON.parse makes of it, or refused as there',
  async t => {
    for (const text of TEXTS) {
      const expected = outcome(() => JSON.parse(text))
      const octets = Buffer.from(text)
      for (const pieceOctets of [1, 2, 3, 5, 7, 64, 10_000])
        t.equal(
          outcome(() => read(octets, pieceOctets)),
          expected,
          `${pieceOctets}: ${text.slice(0, 60)}`,
        )
      if (octets.length > 0)
        t.equal(
          outcome(() => readWholeJson(octets, BOUNDS)),
          expected,
          `whole: ${text}`,
        )
    }
  },
)

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
      const found = outcome(() => read(Buffer.from(broken), 1 + number(9)))
      const isHalfPair = /surrogate/.test(refusal(() => read(Buffer.from(broken), 10_000)))
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
  ] as const) {
    t.match(
      refusal(() => readWholeJson(octets, BOUNDS)),
      message,
    )
    for (const pieceOctets of [1, 3, 10_000])
      t.match(
        refusal(() => read(octets, pieceOctets)),
        message,
        `${pieceOctets}: ${octets.toString()}`,
      )
  }
})

t.test('a byte order mark at the beginning is passed over, and nowhere else', async t => {
  for (const pieceOctets of [1, 2, 100]) {
    t.same(read(Buffer.from('\ufeff{"a":1}'), pieceOctets), { a: 1 })
    t.match(
      refusal(() => read(Buffer.from('{\ufeff"a":1}'), pieceOctets)),
      /not valid JSON/,
    )
  }
})

t.test('depth, values and values of one entry are bounded before they are built', async t => {
  const nested = (levels: number) => Buffer.from('['.repeat(levels) + ']'.repeat(levels))
  t.ok(read(nested(100), 7))
  t.match(
    refusal(() => read(nested(101), 7)),
    /deeper than 100 levels/,
  )
  t.match(
    refusal(() => readWholeJson(nested(101), BOUNDS)),
    /deeper than 100 levels/,
  )
  const list = (entries: number) => Buffer.from(JSON.stringify(Array.from({ length: entries }, () => ({}))))
  t.ok(read(list(999), 50))
  t.match(
    refusal(() => read(list(1_000), 50)),
    /more than 1000 values/,
  )
  const bounds = { values: 1_000, entryValues: 10 }
  const messages = (...sizes: number[]) =>
    Buffer.from(JSON.stringify({ messages: sizes.map(size => Array.from({ length: size }, () => 0)) }))
  t.ok(read(messages(9, 9, 9), 5, bounds))
  t.match(
    refusal(() => read(messages(9, 10, 9), 5, bounds)),
    /more than 10 values in one entry/,
  )
  t.match(
    refusal(() => read(Buffer.from('[1,'.repeat(50)), 5, { values: 20 })),
    /more than 20 values/,
    'unended',
  )
})
