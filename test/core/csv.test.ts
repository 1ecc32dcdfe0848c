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
      "'=was guarded",
      '\nx',
      '＝1',
      '＋1',
      '－1',
      '＠x',
      'plain',
      'a,"b"\n',
      '',
    ]
    const text = csvText([cells, ['next']])
    t.match(
      text,
      /^'=1\+1,'\+1,'-1,'@example\.com,'\tx,"'\rx",it's,'quoted,''=was guarded,"'\nx",'＝1,'＋1,'－1,'＠x,plain,"a,""b""\n",\nnext$/,
    )
    t.same(await readAll(text), [cells, ['next']])
  },
)

t.test('a quote that is never closed ends reading with its line', async t => {
  await t.rejects(readAll('a\n\n"never\nclosed'), { message: 'line 3: a quote is not closed' })
  await t.rejects(readAll(`a\n"${'x\n'.repeat(300_000)}`), { message: 'line 2: a quote is not closed' })
})

t.test(
  'a row past a bound is reported with its line and reason, and the rows behind it are read',
  async t => {
    const faults = async (middle: string, pieceSize?: number) =>
      (await rowsOf(`"a\na"\n${middle}\nlast,b\n`, pieceSize)).map(({ line, cells, fault }) => [
        line,
        fault ?? cells.join(),
      ])
    const wide = Array.from({ length: 199 }, () => 'x'.repeat(1_400)).join()
    for (const [middle, fault, lines] of [
      [','.repeat(10_000_000), 'the row has more than 200 cells', 1],
      ['"",'.repeat(1_000), 'the row has more than 200 cells', 1],
      ['x'.repeat(300_000), 'the row has a cell larger than 128 KB', 1],
      [`a,"${'x\n'.repeat(300_000)}",b`, 'the row has a cell larger than 128 KB', 300_001],
      [wide, 'the row is larger than 256 KB', 1],
    ] as const)
      for (const size of [7_001, 65_536, 20_000_000])
        t.same(await faults(middle, size), [
          [1, 'a\na'],
          [3, fault],
          [3 + lines, 'last,b'],
        ])
    const [row] = await rowsOf(','.repeat(10_000_000))
    t.equal(row?.cells.length, 200)
  },
)

t.test('line ends may be CR alone, and a line end may fall between two pieces', async t => {
  for (const size of [1, 2, 3, 100]) {
    t.same(
      (await rowsOf('a;b\r1;2\r\r"x\ry";3\rlast', size)).map(({ line, cells }) => [line, ...cells]),
      [
        [1, 'a', 'b'],
        [2, '1', '2'],
        [4, 'x\ry', '3'],
        [6, 'last'],
      ],
    )
    t.same(
      (await rowsOf('a\r\nb\r\n\r\nc\rd\n', size)).map(({ line, cells }) => [line, ...cells]),
      [
        [1, 'a'],
        [2, 'b'],
        [4, 'c'],
        [5, 'd'],
      ],
    )
  }
})

t.test('Excel’s first line names the separator and is no row', async t => {
  for (const [first, separator] of [
    ['sep=;\r\n', ';'],
    ['\ufeffSEP=|\n', '|'],
    ['"sep=,"\r', ','],
    ['sep=\t\n', '\t'],
  ] as const)
    for (const size of [1, 100])
      t.same(
        (await rowsOf(`${first}a${separator}"b,;"\n`, size)).map(({ line, cells }) => [line, ...cells]),
        [[2, 'a', 'b,;']],
      )
  t.same(await readAll('sep=;'), [])
  t.same(await readAll('sep,b\n'), [['sep', 'b']])
})

t.test('the separator is what the first line has most of outside of quotes', async t => {
  t.same(await readAll('mail;"Name, first";"x, y, z"\n1;2;3\n'), [
    ['mail', 'Name, first', 'x, y, z'],
    ['1', '2', '3'],
  ])
  t.same(await readAll('a\tb, c\td\n'), [['a', 'b, c', 'd']])
})

t.test('quotes around the beginning of a cell only are letters', async t => {
  t.same(await readAll('"a" b,"c"d,"e""f"\n"",""""\n'), [
    ['"a" b', '"c"d', 'e"f'],
    ['', '"'],
  ])
})

t.test('letters of several octets are read whole wherever a piece ends', async t => {
  for (const size of [1, 2, 3]) t.same(await readAll('Ünï,"日""本"\n', size), [['Ünï', '日"本']])
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
