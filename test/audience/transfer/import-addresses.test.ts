/** Addresses as people's files hold them, and files that are no text. */
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { listContacts } from '../../../src/audience/contacts/contact-page-store.js'
import { rejectedValue } from '../../../src/audience/transfer/import.js'
import { eraseFromImports, listRejections } from '../../../src/audience/transfer/import-store.js'
import { Importer } from '../../../src/audience/transfer/importer.js'
import type { Database } from '../../../src/db/database.js'
import { eachDatabase } from '../../support/db/database.js'
import { imported, NEVER, partsOf, receive, receiveOctets } from '../../support/imports.js'
import { createHash } from 'node:crypto'

async function namesIn({ reader }: Database) {
  const { items } = await listContacts(reader, 'w1', {}, { limit: 100, offset: 0 }, () => {})
  return Object.fromEntries(items.map(({ email, firstName, lastName }) => [email, [firstName, lastName]]))
}

eachDatabase(
  t,
  'addresses are read as spreadsheets hold them, with the name beside them if there is no other',
  async (t, database) => {
    const rows = [
      '\u00a0nb@x.example\u200b',
      '<angle@x.example>',
      'Ann Lee <named@x.example>',
      '"""Lee, Bob"" <comma@x.example>"',
      'mailto:link@x.example?subject=Hi',
      'same@x.example <same@x.example>',
    ]
    const parts = partsOf(database)
    const text = `E-mail;Plan\n${rows.map(row => `${row};pro`).join('\n')}\n`
    t.match(await imported(parts, text), { created: 6, rejected: 0 })
    t.same(await namesIn(database), {
      'nb@x.example': [null, null],
      'angle@x.example': [null, null],
      'named@x.example': ['Ann', 'Lee'],
      'comma@x.example': ['Bob', 'Lee'],
      'link@x.example': [null, null],
      'same@x.example': [null, null],
    })
    await imported(parts, 'Email,First name\nAnn Lee <owned@x.example>,Anna\n', {}, 'w1')
    t.same((await namesIn(database))['owned@x.example'], ['Anna', null], 'a name of its own comes first')
    t.match(await imported(parts, 'Ann Lee <first@x.example>\nb@x.example\n'), { created: 2, rejected: 0 })
  },
)

eachDatabase(t, 'a rejected address is shown beside a reason in plain words', async (t, database) => {
  const long = `${'x'.repeat(300)}@x.example`
  const rows = ['a..b@x.example', 'a,b@x.example', 'a@b@x.example', '@x.example', 'a@nowhere', long]
  const { seq, options } = await imported(partsOf(database), `email\n"${rows.join('"\n"')}"\n`)
  const rejections = await listRejections(database.reader, seq, 0, 10)
  t.same(
    rejections.map(({ reason, cells }) => [reason, rejectedValue(options.columns, cells)]),
    [
      ['the address has a dot at the beginning, at the end, or next to another dot', rows[0]],
      ['the address has the character , before the @, where it is not allowed', rows[1]],
      ['the address has more than one @', rows[2]],
      ['the address has nothing before the @', rows[3]],
      ['the address has no valid domain', rows[4]],
      ['the address is longer than 254 octets', `${'x'.repeat(200)}…`],
    ],
  )
})

eachDatabase(
  t,
  'a rejected row of an erased person is dropped however it wrote the address',
  async (t, database) => {
    const parts = partsOf(database)
    const seq = await receive(parts, 'email,subscribed\nAnn <Ann@x.example>,perhaps\nmailto:ann@x.example,\n')
    const hash = createHash('sha256').update('ann@x.example').digest('hex')
    await database.write(tx => eraseFromImports(tx.db, ['w1'], hash))
    await new Importer(parts).finish(seq, NEVER)
    t.match(await listRejections(database.reader, seq, 0, 10), [
      { reason: 'the address was erased', cells: [] },
      { reason: 'the address was erased', cells: [] },
    ])
  },
)

eachDatabase(t, 'a workbook or another file that is no text is refused by its name', async (t, database) => {
  const zip = (first: string) => Buffer.from(`PK\x03\x04\x14\0\0\0\0\0${'\0'.repeat(20)}${first}`, 'latin1')
  const files: [Buffer, RegExp][] = [
    [Buffer.from('d0cf11e0a1b11ae10000', 'hex'), /^this is an old Excel workbook \(\.xls\); save it as CSV$/],
    [
      zip('mimetypeapplication/vnd.oasis.opendocument.spreadsheet'),
      /^this is an OpenDocument spreadsheet \(\.ods\); save it as CSV$/,
    ],
    [zip('letter.txt'), /ZIP archive; unpack it/],
    [Buffer.from('%PDF-1.7\n'), /PDF document/],
    [Buffer.from('<html><table><tr><td>a@x.example</td></tr></table></html>'), /save it as CSV/],
    [gzipSync('email\na@x.example\n'), /gzip archive; unpack it/],
  ]
  const parts = partsOf(database)
  for (const [file, message] of files)
    await t.rejects(receiveOctets(parts, file), { code: 'validation_error', path: 'file', message })
})
