/** Files that are chosen: the beginning of a CSV file before its import, and images of the library. */
import t from 'tap'
import { chosenImage, shownAt, type MediaImage } from '../../../src/console/web/lib/media'
import {
  mappingOf,
  previewOf,
  PREVIEW_ROWS,
  typesOf,
} from '../../../src/console/web/screens/imports/csv-preview'

const preview = (content: string | Uint8Array) => previewOf(new File([content as BlobPart], 'people.csv'))

t.test('a file is shown with its columns and first rows', async t => {
  t.same(await preview('Email,Name\nann@one.test,Ann\nbob@one.test,Bob\n'), {
    columns: ['Email', 'Name'],
    rows: [
      ['ann@one.test', 'Ann'],
      ['bob@one.test', 'Bob'],
    ],
    hasHeading: true,
  })
})

t.test('the delimiter is the one that the heading has most of', async t => {
  t.same((await preview('Email;Name;Town\na@one.test;A, B;Bonn\n')).rows, [['a@one.test', 'A, B', 'Bonn']])
  t.same((await preview('Email\tName\na@one.test\tAnn\n')).columns, ['Email', 'Name'])
  t.same(
    (await preview('"Name, first";Email\nAnn;a@one.test')).columns,
    ['Name, first', 'Email'],
    'not those in quotes',
  )
})

t.test('quotes hold delimiters, line breaks and quotes', async t => {
  const { rows } = await preview(
    'Email,Note\r\na@one.test,"one, two\r\nthree ""four"""\r\nb@one.test,5" disk\r\n',
  )
  t.same(rows, [
    ['a@one.test', 'one, two\r\nthree "four"'],
    ['b@one.test', '5" disk'],
  ])
})

t.test('a file of addresses alone needs no heading', async t => {
  t.same(await preview('ann@one.test\nbob@one.test\n'), {
    columns: ['email'],
    rows: [['ann@one.test'], ['bob@one.test']],
    hasHeading: false,
  })
})

t.test('charsets are told apart as spreadsheets write them', async t => {
  const names = async (octets: Uint8Array) => (await preview(octets)).rows.flat()
  const text = 'Name,Town\nJürgen,Köln\n'
  t.same(await names(Buffer.from(text, 'utf8')), ['Jürgen', 'Köln'])
  t.same(await names(Buffer.from(`\ufeff${text}`, 'utf8')), ['Jürgen', 'Köln'])
  t.same(await names(Buffer.from(`\ufeff${text}`, 'utf16le')), ['Jürgen', 'Köln'])
  t.same(await names(Buffer.from(text, 'latin1')), ['Jürgen', 'Köln'])
  t.same(
    (await preview(Buffer.from(`\ufeff${text}`, 'utf8'))).columns,
    ['Name', 'Town'],
    'without the mark before them',
  )
})

t.test('of a large file only what was read whole is shown', async t => {
  const row = (n: number) => `person${n}@one.test,${'x'.repeat(40_000)}`
  const { rows } = await preview(['Email,Note', ...Array.from({ length: 20 }, (_, n) => row(n))].join('\n'))
  t.ok(rows.length >= 5 && rows.length < PREVIEW_ROWS)
  t.ok(
    rows.every(([, note]) => note?.length === 40_000),
    'no row is cut off',
  )
})

t.test('a long file is shown by its first rows', async t => {
  const lines = Array.from({ length: 100 }, (_, n) => `person${n}@one.test,Ann`)
  t.equal((await preview(['Email,Name', ...lines].join('\n'))).rows.length, PREVIEW_ROWS)
})

t.test('a strange file has no columns or rows, but shows', async t => {
  for (const content of ['', '\n\n', '\u0000\u0001']) t.ok((await preview(content)).rows.length <= 1)
  t.same(
    (await preview('Email,Name\n\n  ,  \nann@one.test,Ann')).rows,
    [['ann@one.test', 'Ann']],
    'empty rows are left out',
  )
  t.same((await preview('Email,Name\nann@one.test,"never closed')).rows, [['ann@one.test', 'never closed']])
})

t.test('only columns that somebody decided on are named in the request', t => {
  const columns = ['Mail', 'Tariff', 'Notes', 'Town', 'Extra']
  const choices = [
    { becomes: 'auto', attribute: '', type: '' },
    { becomes: 'attribute', attribute: ' plan ', type: '' },
    { becomes: 'skip', attribute: '', type: '' },
    { becomes: 'attribute', attribute: '', type: '' },
  ]
  t.same(mappingOf(columns, choices), { Tariff: 'attributes.plan', Notes: null, Town: 'attributes.Town' })
  t.same(mappingOf(columns, [{ becomes: 'first_name', attribute: 'ignored', type: '' }]), {
    Mail: 'first_name',
  })
  t.end()
})

t.test('a type is asked for only where one was chosen, for columns that may be attributes', t => {
  const choice = (becomes: string, type: string) => ({ becomes, attribute: '', type })
  const choices = [
    choice('auto', 'number'),
    choice('attribute', 'date'),
    choice('skip', 'text'),
    choice('auto', ''),
  ]
  t.same(typesOf(['Spent', 'Born', 'Notes', 'Town'], choices), { Spent: 'number', Born: 'date' })
  t.end()
})

t.test('a padded quote is read, and a workbook has no columns to show', async t => {
  t.same((await preview('email, data\na@one.test, "{""a"": 1}"\n')).rows, [['a@one.test', '{"a": 1}']])
  t.same((await preview(new Uint8Array([0x50, 0x4b, 3, 4, 10, 13]))).columns, [])
  t.same((await preview(new Uint8Array([0xd0, 0xcf, 0x11, 0xe0, 44, 10, 44]))).columns, [])
})

const file = (width: number, name: string) => ({
  width,
  height: width / 2,
  url: `https://mail.shop.test/m/${name}`,
})
const IMAGE = {
  ...file(3_000, 'full.jpg'),
  alt_text: 'A red bicycle',
  variants: [file(300, '300.jpg'), file(600, '600.jpg'), file(1_200, '1200.jpg')],
} as unknown as MediaImage

t.test('an image is shown by its smallest file that is sharp, from the console’s own host', t => {
  t.equal(shownAt(IMAGE, 200), '/m/300.jpg')
  t.equal(shownAt(IMAGE, 301), '/m/600.jpg')
  t.equal(shownAt(IMAGE, 2_000), '/m/full.jpg')
  t.equal(shownAt({ ...IMAGE, variants: [] }, 200), '/m/full.jpg')
  t.end()
})

t.test('a mail gets an image of at most twice its width, with its alt text', t => {
  t.same(chosenImage(IMAGE), {
    url: 'https://mail.shop.test/m/1200.jpg',
    alt: 'A red bicycle',
    width: 1_200,
    height: 600,
  })
  const small = { ...IMAGE, ...file(700, 'full.jpg'), alt_text: null } as MediaImage
  t.match(chosenImage(small), { url: 'https://mail.shop.test/m/full.jpg', alt: '', width: 700 })
  t.end()
})
