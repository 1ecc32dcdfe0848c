/** What a column of a spreadsheet holds: numbers, dates, yes and no, or text that must stay text. */
import t from 'tap'
import {
  ColumnTypes,
  converterOf,
  type TypeRules,
} from '../../../src/audience/transfer/reading/column-types.js'

function typeOf(
  cells: readonly string[],
  { name = 'Value', rules = {} }: { name?: string; rules?: TypeRules } = {},
) {
  const types = new ColumnTypes(name, undefined, rules)
  for (const [at, cell] of cells.entries()) types.see(cell, at + 2)
  return types.finish()
}

function valuesOf(cells: readonly string[], rules: TypeRules = {}) {
  const found = typeOf(cells, { rules })
  return cells.map(converterOf(found))
}

t.test(
  'numbers are read with the decimal mark that fits the whole column, with thousands and a currency',
  t => {
    t.same(valuesOf(['245,8', '12', '-3,5']), [245.8, 12, -3.5])
    t.same(valuesOf(['1.234,50 €', '12,00 €', '1.000.000,00 €']), [1_234.5, 12, 1_000_000])
    t.same(valuesOf(['$1,234.50', '-$5.00', '$.50']), [1_234.5, -5, 0.5])
    t.same(
      valuesOf(['1 234,5', '1\u00a0234,5', "1'234,5", '1\u202f234,5']),
      [1_234.5, 1_234.5, 1_234.5, 1_234.5],
    )
    t.same(valuesOf(['12,34,567.5', '1,00,000.0']), [1_234_567.5, 100_000])
    t.same(valuesOf(['EUR 5', 'EUR 7,5']), [5, 7.5])
    t.same(valuesOf(['1200 zł', '99,90 zł']), [1_200, 99.9])
    t.same(valuesOf(['5', '17', '0']), [5, 17, 0])
    t.match(typeOf(['245,8', '1.234,5']), { type: 'number', decimal: 'comma' })
    t.match(typeOf(['1.5', '0.125']), { type: 'number', decimal: 'point' })
    t.end()
  },
)

t.test('a mark that may be decimal or thousands in every cell leaves the column text, and asks', t => {
  t.match(typeOf(['1.234', '5']), { type: 'text', ambiguous: 'decimal', decimal: undefined })
  t.match(typeOf(['1,234', '17,500']), { type: 'text', ambiguous: 'decimal' })
  t.match(typeOf(['1.234', '5,5']), { type: 'number', decimal: 'comma', ambiguous: undefined })
  t.same(valuesOf(['1.234', '5'], { decimal: 'comma' }), [1_234, 5])
  t.same(valuesOf(['1.234', '5'], { decimal: 'point' }), [1.234, 5])
  t.match(typeOf(['1.234', '0.125']), { type: 'number', decimal: 'point' }, 'no group begins with 0')
  t.end()
})

t.test('codes and numbers of telephones stay text', t => {
  const columns = [
    ...[['01234', '99999'], ['+49 30 1234567'], ['4111111111111111'], ['1.5E+11'], ['50 %'], ['601 234 567']],
    ...[
      ['1.2.3', '1.2'],
      ['ABC 123'],
      ['12a'],
      ['5 €', '5 $'],
      ['--5'],
      ['1,23,4'],
      ['', ' '],
      ['NO', 'DE'],
      ['NO'],
    ],
  ]
  for (const cells of columns)
    t.match(typeOf(cells), { type: 'text', ambiguous: undefined }, cells.join(' | '))
  for (const name of ['Phone', 'ZIP', 'Téléphone', 'PLZ', 'Postal code'])
    t.equal(typeOf(['12345', '54321'], { name }).type, 'text', name)
  t.equal(typeOf(['999999999999999']).type, 'number', 'fifteen digits')
  t.end()
})

t.test('dates are read in the order that fits the whole column', t => {
  t.same(valuesOf(['01.03.2024', '31.12.1999']), ['2024-03-01', '1999-12-31'])
  t.same(valuesOf(['3/1/24', '12/31/99']), ['2024-03-01', '1999-12-31'])
  t.same(valuesOf(['31/12/2024', '1/2/2024']), ['2024-12-31', '2024-02-01'])
  t.same(valuesOf(['2024-03-01', '2024/3/5', '2024.12.24']), ['2024-03-01', '2024-03-05', '2024-12-24'])
  t.same(valuesOf(['01-12-2024', '13-12-2024']), ['2024-12-01', '2024-12-13'])
  t.same(valuesOf(['01.03.2024 14:05', '02.03.2024 00:00:00']), ['2024-03-01T14:05:00', '2024-03-02'])
  t.same(valuesOf(['2024-03-01T10:00:00.000Z', '2024-03-01 10:00:00+02:00']), [
    '2024-03-01T10:00:00Z',
    '2024-03-01T10:00:00+02:00',
  ])
  t.same(valuesOf(['3/1/2024 1:05 PM', '3/31/2024 12:30 AM']), ['2024-03-01T13:05:00', '2024-03-31T00:30:00'])
  t.match(typeOf(['31/12/2024']), { type: 'date', dateFormat: 'DMY' })
  t.end()
})

t.test('months are read by name in the larger languages', t => {
  const cells = [
    ...['1. März 2024', '1 mars 2024', 'March 1, 2024', 'Mar 1st, 2024', '1 de marzo de 2024', '1-Mar-24'],
    ...[
      '1º de março de 2024',
      '1 marca 2024',
      '1 марта 2024 г.',
      '1 Mart 2024',
      '1 maart 2024',
      '1 marzo 2024',
    ],
    ...['2024年3月1日', '1er mars 2024', '2024 March 1', '1. MÄRZ 2024'],
  ]
  for (const cell of cells) t.same(valuesOf([cell]), ['2024-03-01'], cell)
  t.same(valuesOf(['1. März 2024', '24.12.2024']), ['2024-03-01', '2024-12-24'])
  t.end()
})

t.test('dates whose order is in doubt leave the column text, and ask', t => {
  t.match(typeOf(['3/1/24', '4/5/24']), { type: 'text', ambiguous: 'date_format' })
  t.match(typeOf(['3/3/24', '5/5/2024']), { type: 'date', ambiguous: undefined }, 'both read alike')
  t.same(valuesOf(['3/1/24'], { dateOrder: 'DMY' }), ['2024-01-03'])
  t.same(valuesOf(['3/1/24'], { dateOrder: 'MDY' }), ['2024-03-01'])
  t.equal(
    typeOf(['12/31/2024'], { rules: { dateOrder: 'DMY' } }).type,
    'text',
    'not in the order that was given',
  )
  for (const none of [
    '30.02.2024',
    '2023-02-29',
    '1.13.2024',
    '24:00',
    '1. Foo 2024',
    '2024-03-01 25:00',
    '1/2/3',
  ])
    t.equal(typeOf([none, '']).type, 'text', none)
  t.end()
})

t.test('yes and no are read in several languages', t => {
  t.same(valuesOf(['ja', 'Nein', 'JA']), [true, false, true])
  t.same(valuesOf(['VRAI', 'FAUX']), [true, false])
  t.same(valuesOf(['sí', 'no']), [true, false])
  t.same(valuesOf(['да', 'нет']), [true, false])
  t.same(valuesOf(['はい', 'いいえ']), [true, false])
  t.same(valuesOf(['Y', 'N']), [true, false])
  t.same(valuesOf(['true', 'true']), [true, true])
  t.equal(typeOf(['yes', 'perhaps']).type, 'text')
  t.equal(typeOf(['1', '0']).type, 'number')
  t.end()
})

t.test('a column that is mostly numbers or dates stays text, and the first cell that is none is named', t => {
  t.match(typeOf(['5', '7,5', 'n/a', '9']), {
    type: 'text',
    almost: { type: 'number', cell: 'n/a', line: 4 },
  })
  t.match(typeOf(['unknown', '01.03.2024', '02.03.2024']), {
    type: 'text',
    almost: { type: 'date', cell: 'unknown', line: 2 },
  })
  t.equal(typeOf(['Bonn', 'Paris', '5']).almost, undefined)
  const late = typeOf([...Array.from({ length: 5_000 }, () => '5'), 'x'])
  t.match(late, { type: 'text', almost: { type: 'number', cell: 'x', line: 5_002 } })
  t.end()
})

t.test('examples show cells as written and what they become', t => {
  t.same(typeOf(['1.234,50 €', '1.234,50 €', '5,00 €']).examples, [
    { cell: '1.234,50 €', value: '1234.5' },
    { cell: '5,00 €', value: '5' },
  ])
  t.end()
})
