/** Attributes that an import stores as numbers, dates and booleans, on both databases. */
import t from 'tap'
import { insertAttribute } from '../../../src/audience/attributes/attribute-store.js'
import type { AttributeType } from '../../../src/audience/attributes/declared-values.js'
import { listContacts } from '../../../src/audience/contacts/contact-page-store.js'
import { createContact } from '../../../src/audience/contacts/contacts.js'
import type { ImporterParts } from '../../../src/audience/transfer/active-import.js'
import { importToApi } from '../../../src/audience/transfer/import-schema.js'
import { findImportBySeq, listRejections } from '../../../src/audience/transfer/import-store.js'
import { Importer } from '../../../src/audience/transfer/importer.js'
import type { Database } from '../../../src/db/database.js'
import { eachDatabase } from '../../support/db/database.js'
import { imported, NEVER, partsOf, receive } from '../../support/imports.js'
import { NOW } from '../../support/mailroom.js'

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

/** Declares attributes of the workspace w1, by name. */
async function declare({ database, newId }: Pick<ImporterParts, 'database' | 'newId'>, types: object) {
  await database.write(async tx => {
    for (const [name, type] of Object.entries(types) as [string, AttributeType][])
      await insertAttribute(tx.db, {
        id: newId(),
        workspaceId: 'w1',
        name,
        label: null,
        type,
        createdBy: { type: 'api_key' },
        createdAt: NOW,
        updatedAt: NOW,
      })
  })
}

eachDatabase(
  t,
  'a column is read as its attribute is declared, and cells that do not fit stay text and are counted',
  async (t, database) => {
    const parts = partsOf(database)
    await declare(parts, { Born: 'date', Spent: 'number', Vip: 'boolean', Code: 'text', Likes: 'list' })
    const text =
      'email;Born;Spent;Vip;Code;Likes\n' +
      'a@x.example;31.12.1999;1.234,5;1;42;"tea, ""salt; pepper"""\n' +
      'b@x.example;soon;n/a;maybe;7;tea\n' +
      'c@x.example;ask ann@x.example;5;ja;;"[""x"", 3]"\n' +
      'd@x.example;unknown;5;no;;\n' +
      'e@x.example;unknown;5;no;;\n'
    const dryRun = await imported(parts, text, { isDryRun: true })
    const done = await imported(parts, text)
    t.match(done, { status: 'completed', created: 5, rejected: 0 })
    const found = await attributesIn(database)
    t.match(found, {
      a: { Born: '1999-12-31', Spent: 1_234.5, Vip: true, Code: '42', Likes: ['tea', 'salt; pepper'] },
      b: { Born: 'soon', Spent: 'n/a', Vip: 'maybe', Code: '7', Likes: ['tea'] },
      c: { Born: 'ask ann@x.example', Spent: 5, Vip: true, Likes: ['x', 3] },
    })
    const columns = importToApi(done, undefined).columns.slice(1)
    t.same(importToApi(dryRun, undefined).columns.slice(1), columns, 'a dry run shows the same')
    t.match(columns, [
      {
        type: 'date',
        declared: 'date',
        date_format: 'DMY',
        examples: [{ cell: '31.12.1999', value: '1999-12-31' }],
        misfits: {
          count: 4,
          examples: [
            { line: 3, cell: 'soon' },
            { line: 4, cell: null },
            { line: 5, cell: 'unknown' },
          ],
        },
      },
      { type: 'number', declared: 'number', decimal: 'comma', misfits: { count: 1 } },
      { type: 'boolean', declared: 'boolean', misfits: { count: 1, examples: [{ cell: 'maybe' }] } },
      { type: 'text', declared: 'text', misfits: { count: 0 } },
      {
        type: 'list',
        declared: 'list',
        misfits: { count: 0 },
        examples: [],
      },
    ])
    t.match(importToApi(await imported(parts, text, {}, 'w2'), undefined).columns[1], {
      type: 'text',
      declared: null,
      misfits: null,
    })
  },
)

eachDatabase(t, 'a type chosen for the import wins over the declared one', async (t, database) => {
  const parts = partsOf(database)
  await declare(parts, { n: 'number', d: 'date' })
  const text = 'email,n,d\na@x.example,5,2024-03-01\nb@x.example,6,soon\n'
  const done = await imported(parts, text, { types: { n: 'text', d: 'date' } })
  t.match(done, { created: 1, rejected: 1 }, 'a chosen type rejects other cells')
  t.same((await attributesIn(database))['a'], { n: '5', d: '2024-03-01' })
  t.match(importToApi(done, undefined).columns, [
    { declared: null, misfits: null },
    { type: 'text', declared: 'number', misfits: null },
    { type: 'date', declared: 'date', misfits: null },
  ])
})

eachDatabase(
  t,
  'a declared date in doubt stays text until the order of day and month is chosen',
  async (t, database) => {
    const parts = partsOf(database)
    await declare(parts, { d: 'date' })
    const text = 'email,d\na@x.example,3/1/24\n'
    const inDoubt = await imported(parts, text)
    t.match(inDoubt, { status: 'completed', created: 1 })
    t.match(importToApi(inDoubt, undefined).columns[1], {
      type: 'text',
      declared: 'date',
      ambiguous: 'date_format',
      misfits: null,
    })
    const mixed = `${text}b@x.example,2024-05-06\nc@x.example,4/1/24\n`
    t.match(await imported(parts, mixed, { rules: { dateOrder: 'DMY' } }), { updated: 1, created: 2 })
    t.same(await attributesIn(database), {
      a: { d: '2024-01-03' },
      b: { d: '2024-05-06' },
      c: { d: '2024-01-04' },
    })
  },
)

eachDatabase(
  t,
  'declared types hold in JSON of attributes and in our own export, and an import converts what was stored before',
  async (t, database) => {
    const parts = partsOf(database)
    const acting = { workspaceId: 'w1', isSandbox: false, source: 'api' } as const
    await database.write(tx =>
      createContact(parts, tx, acting, { email: 'a@x.example', attributes: { code: 42, n: 5, l: ['x'] } }),
    )
    await declare(parts, { code: 'text', n: 'number' })
    const own = 'email,code,n,l,attributes\na@x.example,42,5,"[""x""]",\n'
    t.match(await imported(parts, own, { preset: 'postroad' }), { updated: 1 })
    t.same((await attributesIn(database))['a'], { code: '42', n: 5, l: ['x'] })
    t.match(await imported(parts, own, { preset: 'postroad' }), { unchanged: 1 })
    await imported(parts, 'email,attributes\nb@x.example,"{""n"":""7"",""code"":7}"\n')
    t.same((await attributesIn(database))['b'], { n: 7, code: '7' })
  },
)
