/** Inserts of many rows: what is stored is the same whatever the rows have in common. */
import t from 'tap'
import { sql } from 'kysely'
import type { Database } from '../../src/db/database.js'
import { rowsInsert } from '../../src/db/insert-rows.js'
import { eachDatabase } from '../support/db/database.js'

const insertNotes = rowsInsert({
  table: 'notes',
  columns: () => ['place', 'words', 'amount', 'remark'],
  written: (_db, column, value) => (column === 'remark' ? sql`upper(cast(${value} as text))` : value),
})
const insertNew = rowsInsert({
  table: 'notes',
  columns: () => ['place', 'words', 'amount', 'remark'],
  rest: sql`on conflict do nothing returning place`,
})

async function withTable(database: Database): Promise<void> {
  await database.write(({ db }) =>
    sql`create table notes (
      place integer primary key, words text not null, amount double precision default 7, remark text default 'none'
    )`.execute(db),
  )
}

async function stored({ reader }: Database): Promise<unknown[]> {
  const { rows } = await sql`select place, words, amount, remark from notes order by place`.execute(reader)
  return rows.map(row => Object.values(row as object))
}

type Note = readonly [place: number, words: string, amount: number | null, remark: string | null]

const SHAPES: Readonly<Record<string, (place: number) => Note>> = {
  'nothing is the same': place => [place, `w${place}`, place / 2, `r${place}`],
  'some is the same in all': place => [place, 'same', 1.5, `r${place}`],
  'what is changed on its way is the same': place => [place, `w${place}`, place, 'same'],
  'some is nowhere, which is no default': place => [place, `w${place}`, null, null],
  'some is in a few': place => [place, 'same', place % 7 === 0 ? place : null, place > 60 ? 'late' : null],
}

eachDatabase(t, 'rows are stored as they are, however many and whatever they share', async (t, database) => {
  await withTable(database)
  for (const [what, rowOf] of Object.entries(SHAPES))
    for (const count of [0, 1, 2, 3, 64, 131]) {
      const rows = Array.from({ length: count }, (_, at) => rowOf(at + 1))
      await database.write(async ({ db }) => {
        await sql`delete from notes`.execute(db)
        await insertNotes(db, rows)
      })
      const expected = rows.map(([place, words, amount, remark]) => [
        ...[place, words, amount],
        remark?.toUpperCase() ?? null,
      ])
      t.same(await stored(database), expected, `${what}: ${count}`)
    }
})

eachDatabase(t, 'what the statements return is of all rows, in their order', async (t, database) => {
  await withTable(database)
  const rows = Array.from({ length: 100 }, (_, at): Note => [at, 'same', null, `r${at}`])
  await database.write(async ({ db }) => {
    await insertNew(db, rows.slice(10, 20))
    t.same(
      await insertNew(db, rows),
      [...rows.slice(0, 10), ...rows.slice(20)].map(([place]) => ({ place })),
    )
  })
  t.equal((await stored(database)).length, 100)
})
