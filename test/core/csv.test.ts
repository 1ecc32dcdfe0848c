/** Comma-separated values: what spreadsheets write, in pieces of any size, and no formula going out. */
import t from 'tap'
import { CsvReader, csvRow } from '../../src/core/csv.js'

function readAll(text: string, pieceSize = text.length || 1): string[][] {
  const reader = new CsvReader()
  const rows = []
  for (let at = 0; at < text.length; at += pieceSize)
    rows.push(...reader.read(text.slice(at, at + pieceSize)))
  rows.push(...reader.end())
  return rows.map(({ cells }) => [...cells])
}

t.test('quotes, line ends inside them, and both kinds of line ends', t => {
  const text = 'a,b\r\n"1,5","say ""hi"""\n"two\nlines",\n\n,x'
  const rows = [
    ['a', 'b'],
    ['1,5', 'say "hi"'],
    ['two\nlines', ''],
    ['', 'x'],
  ]
  for (const size of [1, 2, 3, 7, 100]) t.same(readAll(text, size), rows, `in pieces of ${size}`)
  t.end()
})

t.test('a byte order mark is passed over, semicolons separate where there is no comma', t => {
  t.same(readAll('\ufeffa;b\n1;2,5\n'), [
    ['a', 'b'],
    ['1', '2,5'],
  ])
  t.same(readAll(''), [])
  t.same(readAll('\n\n'), [])
  t.end()
})

t.test('rows know their line', t => {
  const reader = new CsvReader()
  const lines = [...reader.read('a\n"b\nb"\n\nc\n'), ...reader.end()].map(({ line }) => line)
  t.same(lines, [1, 2, 5])
  t.end()
})

t.test('what a spreadsheet would take for a formula is guarded, and comes back without the guard', t => {
  const cells = ['=1+1', '+1', '-1', '@example.com', '\tx', '\rx', "it's", "'quoted", 'plain', 'a,"b"\n']
  const row = csvRow(cells)
  t.match(row, /^'=1\+1,'\+1,'-1,'@example\.com,'\tx,"'\rx",it's,'quoted,plain,"a,""b""\n"$/)
  t.same(readAll(row)[0]!.slice(0, 4), cells.slice(0, 4))
  t.same(readAll(row)[0]!.slice(6), cells.slice(6))
  t.end()
})

t.test('a file that is none ends in an error that names the line', t => {
  t.throws(() => readAll('a\n"never closed'), { message: 'line 2: a quote is not closed' })
  t.throws(() => readAll('x'.repeat(100_000)), { message: 'line 1: a cell is too long' })
  t.throws(() => readAll(`a\n${','.repeat(1_000)}`), { message: 'line 2: too many cells' })
  t.end()
})
