/** Comma-separated values: what spreadsheets write, in pieces of any size, and no formula going out. */
import t from 'tap'
import { csvText, readCsv, type CsvRow } from '../../src/core/csv.js'

async function rowsOf(text: string, pieceSize = 100_000): Promise<CsvRow[]> {
  const octets = Buffer.from(text)
  const pieces = Array.from({ length: Math.ceil(octets.length / pieceSize) }, (_, index) =>
    octets.subarray(index * pieceSize, (index + 1) * pieceSize),
  )
  const rows: CsvRow[] = []
  for await (const some of readCsv(pieces)) rows.push(...some)
  return rows
}

async function readAll(text: string, pieceSize?: number): Promise<(readonly string[])[]> {
  return (await rowsOf(text, pieceSize)).map(({ cells }) => cells)
}

t.test('quotes, line ends inside them, and both kinds of line ends', async t => {
  const text = 'a,b\r\n"1,5","say ""hi"""\n"two\nlines",\n\n,x\n"Jürgen",ü'
  const rows = [
    ['a', 'b'],
    ['1,5', 'say "hi"'],
    ['two\nlines', ''],
    ['', 'x'],
    ['Jürgen', 'ü'],
  ]
  for (const size of [1, 2, 3, 7, 100]) t.same(await readAll(text, size), rows, `in pieces of ${size}`)
})

t.test('a byte order mark is passed over, semicolons separate where there is no comma', async t => {
  t.same(await readAll('\ufeffa;b\n1;2,5\n'), [
    ['a', 'b'],
    ['1', '2,5'],
  ])
  t.same(await readAll('\ufeff"a",b\n', 1), [['a', 'b']])
  t.same(await readAll('a;b', 1), [['a', 'b']])
  t.same(await readAll(''), [])
  t.same(await readAll('\n\n'), [])
})

t.test('quotes in the middle of a cell are letters like others, and rows may be of any width', async t => {
  t.same(await readAll('5" nails,a\nx\n1,2,3\n'), [['5" nails', 'a'], ['x'], ['1', '2', '3']])
})

t.test('rows know their line', async t => {
  const text = 'a\n"b\nb"\n\n"c\r\nc\r\nc"\r\n\r\nd\n'
  for (const size of [1, 5, 1_000])
    t.same(
      (await rowsOf(text, size)).map(({ line }) => line),
      [1, 2, 5, 9],
    )
})

t.test(
  'what a spreadsheet would take for a formula is guarded, and comes back without the guard',
  async t => {
    const cells = [
      '=1+1',
      '+1',
      '-1',
      '@example.com',
      '\tx',
      '\rx',
      "it's",
      "'quoted",
      'plain',
      'a,"b"\n',
      '',
    ]
    const text = csvText([cells, ['next']])
    t.match(text, /^'=1\+1,'\+1,'-1,'@example\.com,'\tx,"'\rx",it's,'quoted,plain,"a,""b""\n",\nnext$/)
    t.same(await readAll(text), [cells, ['next']])
  },
)

t.test('a file that is none ends in an error that names the line', async t => {
  await t.rejects(readAll('a\n\n"never\nclosed'), { message: 'line 3: a quote is not closed' })
  await t.rejects(readAll(`"a\na"\n${'x'.repeat(300_000)}\n`), { message: 'line 3: a row is too long' })
  await t.rejects(readAll(`"${'x\n'.repeat(300_000)}`), { message: 'line 1: a row is too long' })
  await t.rejects(readAll(`a\n${','.repeat(1_000)}`), { message: 'line 2: too many cells' })
})

t.test('a file of any size is read piece by piece', async t => {
  const line = Buffer.from('ann@example.com,"said ""hi"""\n'.repeat(100))
  let given = 0
  function* pieces() {
    for (; given < 500; given += 1) yield line
  }
  let rows = 0
  for await (const some of readCsv(pieces())) {
    if (rows === 0 && some.length > 0) t.ok(given < 10, 'the first rows come before the rest was asked for')
    rows += some.length
  }
  t.equal(rows, 50_000)
})
