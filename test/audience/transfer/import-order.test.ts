/** In which order the rows of a file are done, on both databases: by address where there are many, and the same after each stop. */
import t from 'tap'
import { findAudience } from '../../../src/audience/audience-store.js'
import type { Import } from '../../../src/audience/transfer/import.js'
import { findImportBySeq, listRejections } from '../../../src/audience/transfer/import-store.js'
import { Importer } from '../../../src/audience/transfer/importer.js'
import type { Database } from '../../../src/db/database.js'
import { eachDatabase } from '../../support/db/database.js'
import { imported, NEVER, partsOf, receive } from '../../support/imports.js'

/** Rows that are done as the file has them, before any are by address. */
const FIRST = 4_096
const ROWS = 6_000

/** Each address once, in no order of the alphabet. */
const ADDRESSES = Array.from({ length: ROWS }, (_, at) => `c${(at * 7_919) % 100_003}@x.example`)
const BY_ADDRESS = [...ADDRESSES.slice(0, FIRST), ...ADDRESSES.slice(FIRST).sort()]

async function inOrderOfMaking({ reader }: Database): Promise<string[]> {
  const rows = await reader.selectFrom('contacts').select('email').orderBy('seq').execute()
  return rows.map(({ email }) => email)
}

eachDatabase(
  t,
  'many rows are done by address but for the first, which stay as they are',
  async (t, database) => {
    const done = await imported(partsOf(database), `email\n${ADDRESSES.join('\n')}\n`)
    t.match(done, { status: 'completed', created: ROWS, rowsDone: ROWS })
    t.same(await inOrderOfMaking(database), BY_ADDRESS)
  },
)

eachDatabase(
  t,
  'an import that was left among rows by address does the others, each once',
  async (t, database) => {
    const parts = partsOf(database)
    const rows = ADDRESSES.map((address, at) => (at % 500 === 499 ? 'wrong' : address))
    const seq = await receive(parts, `email\n${rows.join('\n')}\n`)
    const rowsDone = async () => (await findImportBySeq(database.reader, seq))?.rowsDone ?? 0
    while ((await rowsDone()) < ROWS) {
      // The process goes after each thousand or so.
      const [stopping, before] = [new AbortController(), await rowsDone()]
      const onEvents = () =>
        void rowsDone().then(done => (done >= before + 1_000 || done === ROWS) && stopping.abort())
      await new Importer({ ...parts, onEvents }).finish(seq, stopping.signal)
    }
    await new Importer(parts).finish(seq, NEVER)
    t.match(await findImportBySeq(database.reader, seq), {
      status: 'completed',
      created: ROWS - 12,
      rejected: 12,
      rowsDone: ROWS,
    })
    const made = await inOrderOfMaking(database)
    t.same(
      made,
      BY_ADDRESS.filter(address => rows.includes(address)),
    )
    const rejections = await listRejections(database.reader, seq, 0, 20)
    t.same(
      rejections.map(({ line }) => line),
      Array.from({ length: 12 }, (_, at) => 501 + 500 * at),
    )
  },
)

eachDatabase(
  t,
  'an import that an earlier version began is gone on with in the order of its file',
  async (t, database) => {
    const parts = partsOf(database)
    const seq = await receive(parts, `email\n${ADDRESSES.join('\n')}\n`)
    // As written before another order existed.
    await database.write(async ({ db }) => {
      const { options } = await db
        .selectFrom('contact_imports')
        .select('options')
        .where('seq', '=', seq)
        .executeTakeFirstOrThrow()
      const { order: _, ...before } = JSON.parse(options) as Record<string, unknown>
      await db
        .updateTable('contact_imports')
        .set({ options: JSON.stringify(before) })
        .where('seq', '=', seq)
        .execute()
    })
    await new Importer(parts).finish(seq, NEVER)
    t.same(await inOrderOfMaking(database), ADDRESSES)
  },
)

eachDatabase(
  t,
  'a file that cannot be read to its end keeps the rows that were sorted before',
  async (t, database) => {
    const done = await imported(
      partsOf(database),
      `email,text\n${ADDRESSES.map(address => `${address},x`).join('\n')}\nlast@x.example,"open\n`,
    )
    t.match(done, { status: 'failed', error: `line ${ROWS + 2}: a quote is not closed` })
    const made = await inOrderOfMaking(database)
    t.equal(made.length, done.rowsDone)
    t.ok(made.length > FIRST, `${made.length} of ${ROWS}`)
    t.same(made.slice(0, FIRST), ADDRESSES.slice(0, FIRST))
    t.same(made.slice(FIRST), made.slice(FIRST).sort())
  },
)

eachDatabase(t, 'a dry run of several batches counts as the import does', async (t, database) => {
  const parts = partsOf(database)
  const rows = Array.from({ length: 1_200 }, (_, n) => `c${n}@x.example,${n % 3}`)
  await imported(parts, `email,plan\n${rows.slice(0, 400).join('\n')}\n`)
  const file = `email,plan,tags\n${rows.map((row, n) => `${row},t${n % 7}`).join('\n')}\n`
  const counted = ({ created, updated, unchanged, rejected }: Import) => ({
    created,
    updated,
    unchanged,
    rejected,
  })
  const tried = counted(await imported(parts, file, { isDryRun: true }))
  t.same(tried, { created: 800, updated: 400, unchanged: 0, rejected: 0 })
  t.equal((await findAudience(database.reader, 'w1'))?.contacts, 400)
  t.same(counted(await imported(parts, file)), tried)
  t.equal((await findAudience(database.reader, 'w1'))?.contacts, 1_200)
})
