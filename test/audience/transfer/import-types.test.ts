/** Attributes that an import stores as numbers, dates and booleans, on both databases. */
import t from 'tap'
import { listContacts } from '../../../src/audience/contacts/contact-page-store.js'
import { createContact } from '../../../src/audience/contacts/contacts.js'
import { findImportBySeq, listRejections } from '../../../src/audience/transfer/import-store.js'
import { Importer } from '../../../src/audience/transfer/importer.js'
import type { Database } from '../../../src/db/database.js'
import { eachDatabase } from '../../support/db/database.js'
import { imported, NEVER, partsOf, receive } from '../../support/imports.js'

async function attributesIn({ reader }: Database) {
  const { items } = await listContacts(reader, 'w1', {}, { limit: 100, offset: 0 }, () => {})
  return Object.fromEntries(items.map(({ email, attributes }) => [email.split('@')[0], attributes]))
}

const PEOPLE =
  'E-Mail;Umsatz;Seit;Aktiv?;PLZ;Telefon;Ort\n' +
  'a@x.example;1.234,50 €;01.03.2024;ja;01067;+49 30 1234;Bonn\n' +
  'b@x.example;245,80 €;31.12.1999;nein;53111;0170 1234567;5\n' +
  'c@x.example;;;;;;\n'

eachDatabase(
  t,
  'columns of numbers, dates and yes or no become that, and codes stay text',
  async (t, database) => {
    const parts = partsOf(database)
    const done = await imported(parts, PEOPLE)
    t.match(done, { status: 'completed', created: 3, rejected: 0 })
    t.same(await attributesIn(database), {
      a: {
        Umsatz: 1_234.5,
        Seit: '2024-03-01',
        'Aktiv?': true,
        PLZ: '01067',
        Telefon: '+49 30 1234',
        Ort: 'Bonn',
      },
      b: {
        Umsatz: 245.8,
        Seit: '1999-12-31',
        'Aktiv?': false,
        PLZ: '53111',
        Telefon: '0170 1234567',
        Ort: '5',
      },
      c: {},
    })
    t.match(done.options.columns, [
      { name: 'E-Mail', found: undefined },
      {
        name: 'Umsatz',
        found: { type: 'number', decimal: 'comma', examples: [{ cell: '1.234,50 €', value: '1234.5' }, {}] },
      },
      { name: 'Seit', found: { type: 'date', dateFormat: 'DMY' } },
      { name: 'Aktiv?', found: { type: 'boolean' } },
      { name: 'PLZ', found: { type: 'text', examples: [] } },
      { name: 'Telefon', found: { type: 'text' } },
      { name: 'Ort', found: { type: 'text' } },
    ])
    t.match(await imported(parts, PEOPLE), { unchanged: 3 })
  },
)

eachDatabase(t, 'a type must fit the last row of a large file too', async (t, database) => {
  const rows = Array.from(
    { length: 3_000 },
    (_, at) => `c${at}@x.example,${at},${(at % 28) + 1}/${(at % 12) + 1}/24`,
  )
  const text = `email,points,day\n${rows.join('\n')}\n`
  const parts = partsOf(database)
  await imported(parts, text)
  t.match((await attributesIn(database))['c2999'], { points: 2_999, day: '2024-12-04' })
  const last = await imported(parts, `${text}last@x.example,many,soon\n`, {}, 'w2')
  t.match(last.options.columns, [
    {},
    { found: { type: 'text', almost: { type: 'number', cell: 'many', line: 3_002 } } },
    { found: { type: 'text', almost: { type: 'date', cell: 'soon', line: 3_002 } } },
  ])
})

eachDatabase(
  t,
  'a column in doubt stays text until somebody chooses, and types can be chosen',
  async (t, database) => {
    const text = 'email,spent,born,code\na@x.example,"1,234",3/1/24,7\n'
    const parts = partsOf(database)
    const found = await imported(parts, text, { isDryRun: true })
    t.match(found, { status: 'completed', created: 1 })
    t.match(found.options.columns, [
      {},
      { found: { type: 'text', ambiguous: 'decimal', examples: [{ cell: '1,234' }] } },
      { found: { type: 'text', ambiguous: 'date_format' } },
      { found: { type: 'number' } },
    ])
    await imported(parts, text)
    t.same((await attributesIn(database))['a'], { spent: '1,234', born: '3/1/24', code: 7 })
    const rules = { decimal: 'point', dateOrder: 'MDY' } as const
    t.match(await imported(parts, text, { types: { code: 'text' }, rules }), { updated: 1 })
    t.same(
      (await attributesIn(database))['a'],
      { spent: 1_234, born: '2024-03-01', code: 7 },
      'the text 7 is no change',
    )
    t.match(await imported(parts, text, { types: { spent: 'number' } }), {
      status: 'failed',
      error: 'the column spent may have a decimal point or comma (1,234); choose with decimal',
    })
    t.match(await imported(parts, text, { types: { born: 'date' } }), {
      status: 'failed',
      error: 'the column born may have the day or the month first (3/1/24); choose with date_format',
    })
  },
)

eachDatabase(t, 'a cell that is not of the chosen type rejects its row', async (t, database) => {
  const text = 'email,spent,vip\na@x.example,"5,5",1\nb@x.example,n/a,0\nc@x.example,7,maybe\n'
  const done = await imported(partsOf(database), text, { types: { spent: 'number', vip: 'boolean' } })
  t.match(done, { created: 1, rejected: 2 })
  t.same((await attributesIn(database))['a'], { spent: 5.5, vip: true })
  t.match(await listRejections(database.reader, done.seq, 0, 5), [
    { line: 3, reason: 'spent is "n/a", must be a number' },
    { line: 4, reason: 'vip is "maybe", must be a boolean' },
  ])
})

eachDatabase(
  t,
  'numbers replace the text of an earlier import, and text replaces no number',
  async (t, database) => {
    const parts = partsOf(database)
    const acting = { workspaceId: 'w1', isSandbox: false, source: 'api' } as const
    await database.write(tx =>
      createContact(parts, tx, acting, { email: 'a@x.example', attributes: { n: '5', m: 5 } }),
    )
    const text = 'email,n,m\na@x.example,5,5\n'
    t.match(await imported(parts, text, { types: { m: 'text' } }), { updated: 1 })
    t.same((await attributesIn(database))['a'], { n: 5, m: 5 })
    t.match(await imported(parts, text), { unchanged: 1 })
  },
)

eachDatabase(t, 'an import that is left while it runs keeps the types it found', async (t, database) => {
  const parts = partsOf(database)
  const rows = Array.from({ length: 300 }, (_, at) => `c${at}@x.example,"${at},5"`)
  const seq = await receive(parts, `email,points\n${rows.join('\n')}\n`)
  const stopping = new AbortController()
  await new Importer({ ...parts, onEvents: () => stopping.abort() }).finish(seq, stopping.signal)
  t.match(await findImportBySeq(database.reader, seq), {
    status: 'processing',
    options: { areTypesFound: true },
  })
  await Promise.all([new Importer(parts).finish(seq, NEVER), new Importer(parts).finish(seq, NEVER)])
  t.match(await findImportBySeq(database.reader, seq), { status: 'completed', created: 300, rejected: 0 })
  t.match(await attributesIn(database), { c0: undefined, c299: { points: 299.5 } })
})

eachDatabase(t, 'types are refused for columns that are no attributes of the file', async (t, database) => {
  const parts = partsOf(database)
  const refused: [Record<string, string>, RegExp][] = [
    [{ other: 'number' }, /"other", which is not in the file/],
    [{ email: 'number' }, /"email" becomes email, not an attribute/],
    [{ n: 'float' }, /"n" must be one of text, number, date, boolean/],
  ]
  for (const [types, message] of refused)
    await t.rejects(receive(parts, 'email,n\na@x.example,1\n', { types }), { path: 'types', message })
})
