/** Statements compiled once: the same rows as when compiled each time, whatever the length of their lists. */
import t from 'tap'
import { sql } from 'kysely'
import '../../src/events/store.js'
import type { Queries } from '../../src/db/database.js'
import { inLists, inPieces, statement } from '../../src/db/statement.js'
import { eachDatabase } from '../support/db/database.js'

const insertCursors = statement((db, { rows }: { rows: readonly { consumer: string; seq: number }[] }) =>
  db.insertInto('event_cursors').values(rows),
)
const namesOf = statement((db, { versions, least }: { versions: readonly number[]; least: string }) =>
  db
    .selectFrom('event_cursors')
    .select('consumer')
    .where('seq', 'in', versions)
    .where('consumer', '>=', least)
    .orderBy('consumer'),
)

async function names(db: Queries, versions: readonly number[], least = ''): Promise<string[]> {
  return (await namesOf(db, { versions, least })).rows.map(row => row.consumer)
}

eachDatabase(t, 'a statement is right for every number of rows and values', async (t, database) => {
  await database.write(async ({ db }) => {
    await sql`delete from event_cursors`.execute(db)
    const rows = Array.from({ length: 100 }, (_, n) => ({
      consumer: `n${String(n).padStart(3, '0')}`,
      seq: n,
    }))
    for (const piece of inPieces(rows)) await insertCursors(db, { rows: piece })
  })
  for (const length of [1, 2, 3, 7, 8, 9]) {
    const versions = Array.from({ length }, (_, n) => n * 3)
    t.same(
      await names(database.reader, versions),
      versions.map(n => `n${String(n).padStart(3, '0')}`),
    )
  }
  t.same(await names(database.reader, [1, 2, 3], 'n002'), ['n002', 'n003'])
  t.same(await names(database.reader, [5]), ['n005'], 'the values are those of this call')
})

t.test('rows are cut into pieces of powers of two, none lost and in order', async t => {
  for (const length of [0, 1, 2, 63, 64, 65, 100, 500]) {
    const rows = Array.from({ length }, (_, n) => n)
    const pieces = [...inPieces(rows)]
    t.same(pieces.flat(), rows)
    t.ok(pieces.every(piece => Math.log2(piece.length) % 1 === 0 && piece.length <= 64))
  }
})

t.test('values are cut into lists that a database takes', async t => {
  const values = Array.from({ length: 600 }, (_, n) => n)
  t.same(
    [...inLists(values)].map(list => list.length),
    [256, 256, 88],
  )
  t.same([...inLists([])], [])
})

eachDatabase(t, 'a statement that comes after the end of its transaction is refused', async (t, database) => {
  const late = await database.write(async ({ db }) => db)
  await t.rejects(insertCursors(late, { rows: [{ consumer: 'late', seq: 1 }] }), /committed/)
  t.same(await names(database.reader, [1]), [])
})
