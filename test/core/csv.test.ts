/** CSV as spreadsheets write it, in pieces of any size, and without formulas on export. */
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

t.test('quotes, line breaks inside quotes, and both kinds of line endings are read', async t => {
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

t.test('a byte order mark is skipped, and semicolons separate if there is no comma', async t => {
  t.same(await readAll('\ufeffa;b\n1;2,5\n'), [
    ['a', 'b'],
    ['1', '2,5'],
  ])
  t.same(await readAll('\ufeff"a",b\n', 1), [['a', 'b']])
  t.same(await readAll('a;b', 1), [['a', 'b']])
  t.same(await readAll(''), [])
  t.same(await readAll('\n\n'), [])
})

t.test('spaces around a quoted cell are no part of it', async t => {
  const text = 'a, "{""a"": 1}" ,  "x, y"\n "p\nq" ,b c, d\n "e" f,"g" "h", i "j"\n  ,""  \n'
  const rows = [
    ['a', '{"a": 1}', 'x, y'],
    ['p\nq', 'b c', ' d'],
    [' "e" f', '"g" "h"', ' i "j"'],
    ['  ', ''],
  ]
  for (const size of [1, 2, 3, 100]) t.same(await readAll(text, size), rows, `in pieces of ${size}`)
})

t.test('quotes inside a cell are literal, and rows may have any width', async t => {
  t.same(await readAll('5" nails,a\nx\n1,2,3\n'), [['5" nails', 'a'], ['x'], ['1', '2', '3']])
})

t.test('rows have line numbers', async t => {
  const text = 'a\n"b\nb"\n\n"c\r\nc\r\nc"\r\n\r\nd\n'
  for (const size of [1, 5, 1_000])
    t.same(
      (await rowsOf(text, size)).map(({ line }) => line),
      [1, 2, 5, 9],
    )
})

t.test('formulas are written with a guard and read without it', async t => {
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
})

t.test('an unclosed quote aborts reading and names the line', async t => {
  await t.rejects(readAll('a\n\n"never\nclosed'), { message: 'line 3: a quote is not closed' })
  await t.rejects(readAll(`a\n"${'x\n'.repeat(300_000)}`), { message: 'line 2: a quote is not closed' })
})

t.test('an oversized row is reported with line and reason, and later rows are read', async t => {
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
})

t.test('lines may end in CR, and a CRLF may be split between pieces', async t => {
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

t.test("Excel's sep= line names the separator and is not a row", async t => {
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

t.test('the separator is the most frequent one in the first line outside quotes', async t => {
  t.same(await readAll('mail;"Name, first";"x, y, z"\n1;2;3\n'), [
    ['mail', 'Name, first', 'x, y, z'],
    ['1', '2', '3'],
  ])
  t.same(await readAll('a\tb, c\td\n'), [['a', 'b, c', 'd']])
})

t.test('quotes around only the start of a cell are literal', async t => {
  t.same(await readAll('"a" b,"c"d,"e""f"\n"",""""\n'), [
    ['"a" b', '"c"d', 'e"f'],
    ['', '"'],
  ])
})

t.test('multi-octet characters survive any split', async t => {
  for (const size of [1, 2, 3]) t.same(await readAll('Ünï,"日""本"\n', size), [['Ünï', '日"本']])
})

t.test('a file of any size is read in pieces', async t => {
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
