/** kill -9 during deletion and restoration of all contacts: it resumes, nothing happens twice or by half. */
import BetterSqlite from 'better-sqlite3'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { insertContacts } from '../../src/audience/contacts/contact-write-store.js'
import { addPairs, LIST_MEMBERS } from '../../src/audience/pair-store.js'
import { uuidv7 } from '../../src/core/ids.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { systemClock } from '../../src/world/time/clock.js'
import { initialise, type Initialised, type Serving } from '../support/program/process.js'
import { until } from '../support/until.js'

const CONTACTS = 3_000
const NOW = 1_767_607_200_000

/** Contacts beyond what one step takes: one in three in a list, one in five unsubscribed. */
async function fill({ dataDir, workspaceId }: Initialised, list: number): Promise<void> {
  const database = await openSqlite({ file: join(dataDir, 'postroad.db'), clock: systemClock })
  await database.write(async ({ db }) => {
    const made = await insertContacts(
      db,
      workspaceId,
      Array.from({ length: CONTACTS }, (_, at) => ({
        ...{ id: uuidv7(NOW, Buffer.from(String(at).padStart(10, '0'))), email: `c${at}@x.example` },
        ...{ firstName: null, lastName: null, attributes: { n: at }, subscribed: at % 5 > 0, createdAt: NOW },
      })),
    )
    const members = made.filter((_, at) => at % 3 === 0).map(({ seq }) => seq)
    await addPairs(db, LIST_MEMBERS, list, members, NOW)
  })
  await database[Symbol.asyncDispose]()
}

/** The database of a stopped or running server. */
function look({ dataDir }: Initialised) {
  const handle = new BetterSqlite(join(dataDir, 'postroad.db'), { readonly: true })
  const one = (text: string) => handle.prepare(text).pluck().get() as number
  const told = (kind: string, id: string) =>
    handle
      .prepare(
        `select count(*), count(distinct payload ->> '${id}') from events where kind = 'contact.${kind}'`,
      )
      .raw()
      .get() as [number, number]
  const seen = {
    live: one('select count(*) from contacts where deleted_at is null'),
    counted: one('select contacts from audiences'),
    unsubscribed: one('select unsubscribed from audiences'),
    members: one('select member_count from lists'),
    unfinished: one('select count(*) from contact_sweeps where finished_at is null'),
    deletions: told('deleted', 'contact_id'),
    restorations: told('restored', 'id'),
  }
  handle.close()
  return seen
}

async function dieInTheMiddle(t: Test, postroad: Initialised, server: Serving, path: string, body: object) {
  const before = look(postroad).live
  const asked = server.post(path, body, { key: postroad.key }).catch(() => 'cut off')
  await until('the first step', () => look(postroad).live !== before)
  await server.end('SIGKILL')
  t.equal(await asked, 'cut off')
  const { live, counted, members, unfinished } = look(postroad)
  t.ok(live > 0 && live < CONTACTS, `in the middle: ${live}`)
  t.equal(counted, live, 'what is done is done whole')
  t.equal(unfinished, 1)
  return { live, members }
}

t.test('a server killed while deleting or restoring all contacts resumes where it was', async t => {
  const postroad = await initialise(t)
  let server = await postroad.serve()
  await server.post('/api/v1/lists', { name: 'News' }, { key: postroad.key })
  await server.end('SIGTERM')
  await fill(postroad, 1)
  const members = Math.ceil(CONTACTS / 3)
  t.match(look(postroad), { live: CONTACTS, members, unsubscribed: CONTACTS / 5 })

  server = await postroad.serve()
  await dieInTheMiddle(t, postroad, server, '/api/v1/contacts/delete-all', { confirm: true })
  server = await postroad.serve()
  await until('the end', () => look(postroad).unfinished === 0)
  t.match(look(postroad), {
    ...{ live: 0, counted: 0, unsubscribed: 0, members: 0 },
    deletions: [CONTACTS, CONTACTS],
  })

  await dieInTheMiddle(t, postroad, server, '/api/v1/contacts/restore', { all: true })
  server = await postroad.serve()
  await until('the end', () => look(postroad).unfinished === 0)
  t.match(look(postroad), {
    ...{ live: CONTACTS, counted: CONTACTS, unsubscribed: CONTACTS / 5, members },
    ...{ deletions: [CONTACTS, CONTACTS], restorations: [CONTACTS, CONTACTS] },
  })
  const { body } = await server.get('/api/v1/contacts?limit=1', { key: postroad.key })
  t.equal(body.pagination.total, CONTACTS)
})

t.test('a server stopped while deleting all contacts says so and resumes at the next start', async t => {
  const postroad = await initialise(t)
  let server = await postroad.serve()
  await server.post('/api/v1/lists', { name: 'News' }, { key: postroad.key })
  await server.end('SIGTERM')
  await fill(postroad, 1)
  server = await postroad.serve()
  const asked = server.post('/api/v1/contacts/delete-all', { confirm: true }, { key: postroad.key })
  await until('the first step', () => look(postroad).live < CONTACTS)
  t.match(await server.end('SIGTERM'), { status: 0, err: '' })
  t.match(await asked, {
    status: 503,
    body: { error: { code: 'unavailable', message: /resumes after the restart/ } },
  })
  t.match(look(postroad), { unfinished: 1 })
  t.notOk(server.log.some(({ event }) => event === 'job interrupted'))
  await postroad.serve()
  await until('the end', () => look(postroad).unfinished === 0)
  t.match(look(postroad), { live: 0, counted: 0, members: 0, deletions: [CONTACTS, CONTACTS] })
})
