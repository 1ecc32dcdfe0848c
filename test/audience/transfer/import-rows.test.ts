/** What an import does to contacts, on both databases: nothing twice, nothing half, one event for each change. */
import t from 'tap'
import type { Acting } from '../../../src/audience/audience-parts.js'
import { countOf, findAudience } from '../../../src/audience/audience-store.js'
import { listContacts } from '../../../src/audience/contacts/contact-page-store.js'
import { createContact } from '../../../src/audience/contacts/contacts.js'
import { exportContacts } from '../../../src/audience/transfer/export-contacts.js'
import {
  deleteImportParts,
  deleteImportsBefore,
  findImport,
  findImportBySeq,
  listRejections,
} from '../../../src/audience/transfer/import-store.js'
import { Importer } from '../../../src/audience/transfer/importer.js'
import { insertList } from '../../../src/audience/lists/list-store.js'
import { CONTACT_TAGS, thingsOf } from '../../../src/audience/pair-store.js'
import { AppError } from '../../../src/core/errors.js'
import type { Database } from '../../../src/db/database.js'
import { readEventsAfter } from '../../../src/events/store.js'
import { withEventsOfImports } from '../../../src/audience/transfer/import-events.js'
import type { ReaderOptions } from '../../../src/audience/transfer/reading/import-reader.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { spawnThread, type SpawnThread } from '../../../src/world/threads.js'
import { eachDatabase } from '../../support/db/database.js'
import { imported, NEVER, partsOf, receive } from '../../support/imports.js'
import { NOW } from '../../support/mailroom.js'
import { until } from '../../support/until.js'

const ACTING: Acting = { workspaceId: 'w1', isSandbox: false, source: 'api' }

const KINDS = [
  ...(['contact.created', 'contact.updated', 'contact.unsubscribed'] as const),
  ...(['list.member_added', 'tag.added', 'contacts.imported'] as const),
]

async function eventKinds({ reader }: Database): Promise<string[]> {
  const events = await readEventsAfter(reader, 0, KINDS, 100_000)
  return (await withEventsOfImports(reader, events)).map(({ kind, payload }) =>
    'source' in payload ? `${kind} by ${payload.source}` : kind,
  )
}

eachDatabase(
  t,
  'each change is one event, and a file that is imported again changes nothing',
  async (t, database) => {
    const parts = partsOf(database)
    await database.write(tx =>
      createContact(parts, tx, ACTING, { email: 'old@x.example', attributes: { plan: 'free' } }),
    )
    const text = 'email,plan,subscribed,tags\nnew@x.example,pro,,vip\nold@x.example,team,no,VIP\n'
    t.match(await imported(parts, text), { status: 'completed', created: 1, updated: 1, unchanged: 0 })
    const told = await eventKinds(database)
    t.same(told.slice().sort(), [
      'contact.created',
      'contact.created',
      'contact.unsubscribed by import',
      'contact.updated',
      'tag.added by import',
      'tag.added by import',
    ])
    t.match(await imported(parts, text), { created: 0, updated: 0, unchanged: 2 })
    t.same(await eventKinds(database), told)
    const audience = (await findAudience(database.reader, 'w1'))!
    t.equal(countOf(audience, {}), 2)
    t.equal(countOf(audience, { subscribed: false }), 1)
  },
)

eachDatabase(
  t,
  'contacts that change alike share events of at most a hundred, without their addresses',
  async (t, database) => {
    const parts = partsOf(database)
    const rows = Array.from({ length: 250 }, (_, at) => `c${at}@x.example,${at % 50 === 0 ? 'vip' : ''}`)
    await imported(parts, `email,tags\n${rows.join('\n')}\n`, { tags: 'all' })
    const events = await readEventsAfter(database.reader, 0, ['contacts.imported'], 1_000)
    t.ok(events.length < 15, `${events.length} events`)
    t.ok(events.every(({ payload: { contacts } }) => contacts.length <= 100))
    t.notMatch(JSON.stringify(events), /x\.example/)
    t.equal(
      events.reduce((sum, { payload: { contacts } }) => sum + contacts.length, 0),
      250,
    )
    const tagNames = events.map(({ payload: { tags } }) => tags.map(({ name }) => name).join())
    t.same([...new Set(tagNames)].sort(), ['all', 'all,vip'])
    const kinds = await eventKinds(database)
    t.equal(kinds.filter(kind => kind === 'tag.added by import').length, 255)
  },
)

eachDatabase(
  t,
  'a list given for the file and again in its rows gets each contact once',
  async (t, database) => {
    const parts = partsOf(database)
    const listId = parts.newId()
    await database.write(tx =>
      insertList(tx.db, {
        ...{
          id: listId,
          workspaceId: 'w1',
          name: 'News',
          description: null,
          type: 'static',
          conditions: null,
        },
        ...{ isPublic: false, doubleOptIn: false, createdAt: NOW, updatedAt: NOW },
      }),
    )
    const header = 'id,email,subscribed,bounced,lists,tags,created_at,updated_at'
    const text = `${header}\n1,ann@x.example,true,false,news; Other,,,\n`
    t.match(await imported(parts, text, { listId }), { status: 'completed', created: 1 })
    const kinds = await eventKinds(database)
    t.equal(kinds.filter(kind => kind === 'list.member_added by import').length, 2)
  },
)

eachDatabase(
  t,
  'an import that was left is gone on with where it was: each row once, in order',
  async (t, database) => {
    const parts = partsOf(database)
    const rows = Array.from({ length: 1_200 }, (_, at) =>
      at % 10 === 7 ? `wrong${at}` : `c${at}@x.example,${at}`,
    )
    const seq = await receive(parts, `email,number\n${rows.join('\n')}\n`, { tags: 'all' })
    for (let stops = 0; stops < 2; stops += 1) {
      // The process goes as soon as it has done something.
      const stopping = new AbortController()
      await new Importer({ ...parts, onEvents: () => stopping.abort() }).finish(seq, stopping.signal)
    }
    t.match(await findImportBySeq(database.reader, seq), { status: 'processing', rowsDone: 100 })
    await new Importer(parts).finish(seq, NEVER)
    t.match(await findImportBySeq(database.reader, seq), {
      ...{ status: 'completed', rowsDone: 1_200, created: 1_080, updated: 0, unchanged: 0, rejected: 120 },
    })
    const { items, total } = await listContacts(
      database.reader,
      'w1',
      {},
      { limit: 2_000, offset: 0 },
      () => {},
    )
    t.equal(total, 1_080)
    t.same(
      items.map(({ email }) => email).reverse(),
      rows.filter(row => row.includes('@')).map(row => row.split(',')[0]),
    )
    const kinds = await eventKinds(database)
    t.equal(kinds.filter(kind => kind === 'contact.created').length, 1_080)
    t.equal(kinds.filter(kind => kind === 'tag.added by import').length, 1_080)
    t.same(
      (await listRejections(database.reader, seq, 0, 2)).map(({ line }) => line),
      [9, 19],
    )
  },
)

eachDatabase(t, 'two processes that work on one import do each row once', async (t, database) => {
  const parts = partsOf(database)
  const rows = Array.from({ length: 600 }, (_, at) => `c${at}@x.example`)
  const seq = await receive(parts, `email\n${rows.join('\n')}\n`)
  await Promise.all([new Importer(parts).finish(seq, NEVER), new Importer(parts).finish(seq, NEVER)])
  t.match(await findImportBySeq(database.reader, seq), { rowsDone: 600, created: 600, unchanged: 0 })
})

eachDatabase(
  t,
  'an import for which there is no room waits for it, says so once, and loses no row',
  async (t, database) => {
    const parts = partsOf(database)
    const seq = await receive(parts, 'email\na@x.example\nb@x.example\n')
    let refusals = 3
    const scarce: Database = {
      ...database,
      write: (work, options) => {
        refusals -= 1
        if (refusals >= 0)
          return Promise.reject(new AppError('unavailable', 'no room', { retryAfterMs: 60_000 }))
        return database.write(work, options)
      },
    }
    const [clock, log] = [new FakeClock(), new FakeLog()]
    const finished = new Importer({ ...parts, database: scarce, clock, log }).finish(seq, NEVER)
    await until('three trials', async () => {
      await clock.advance(10_000)
      return refusals < 0
    })
    await finished
    t.match(await findImportBySeq(database.reader, seq), { status: 'completed', rowsDone: 2, created: 2 })
    t.match(log.lines, [{ level: 'error', event: 'import interrupted', fields: { error: 'no room' } }])
  },
)

eachDatabase(
  t,
  'a file larger than a part is read whole, and an address that comes again is found',
  async (t, database) => {
    const parts = partsOf(database)
    const filling = 'ü'.repeat(2_000)
    const rows = Array.from({ length: 200 }, (_, at) => `c${at % 150}@x.example,"${at}\n${filling}"`)
    const done = await imported(parts, `email,text\n${rows.join('\n')}\n`)
    t.match(done, { created: 150, rejected: 50 })
    t.ok(done.octets > 2 * 256 * 1_024)
    const [first] = await listRejections(database.reader, done.seq, 0, 1)
    t.match(first, { line: 302, reason: 'duplicate of the address in line 2' })
    const { items } = await listContacts(database.reader, 'w1', {}, { limit: 1, offset: 149 }, () => {})
    t.equal(items[0]?.attributes['text'], `0\n${filling}`)
  },
)

eachDatabase(
  t,
  'a file that cannot be read to its end is a failed import, which tells where, and keeps the rows before',
  async (t, database) => {
    const parts = partsOf(database)
    const rows = Array.from({ length: 2_000 }, (_, at) => `c${at}@x.example,${'x'.repeat(20)}`)
    const done = await imported(parts, `email,text\n${rows.join('\n')}\nlast@x.example,"open\n`)
    t.match(done, { status: 'failed', error: 'line 2002: a quote is not closed' })
    t.ok(done.created > 1_000 && done.created === done.rowsDone, `${done.created} of 2,000`)
  },
)

eachDatabase(
  t,
  'a row with more cells or octets than rows may have is rejected with its line, and those around it are imported',
  async (t, database) => {
    const parts = partsOf(database)
    const [commas, letters] = [','.repeat(10_000_000), 'x'.repeat(1_000_000)]
    const text = `email,text\na@x.example\n${commas}\n"b@x.example","${letters}"\nc@x.example,z\n`
    const done = await imported(parts, text)
    t.match(done, { status: 'completed', error: null, created: 2, rejected: 2 })
    t.match(await listRejections(database.reader, done.seq, 0, 5), [
      { line: 3, reason: 'the row has more than 200 cells' },
      { line: 4, reason: 'the row has a cell larger than 128 KB', cells: ['b@x.example'] },
    ])
    t.same((parts.log as FakeLog).lines, [])
  },
)

eachDatabase(
  t,
  'an import whose reader ends twice fails with the reason, and others are imported meanwhile',
  async (t, database) => {
    const parts = partsOf(database)
    let ends = 0
    const spawn: SpawnThread = (entry, options) => {
      const { columns } = options.options as ReaderOptions
      if (!columns.some(({ name }) => name === 'poison')) return spawnThread(entry, options)
      ends += 1
      setImmediate(() => options.onEnd({ exitCode: 1, fault: new Error('heap out of memory') }))
      return { post: () => {}, terminate: () => Promise.resolve() }
    }
    const poisoned = await receive(parts, 'email,poison\na@x.example,1\n')
    const other = await receive(parts, 'email\nb@x.example\n')
    await new Importer({ ...parts, spawn }).finish(other, NEVER)
    t.match(await findImportBySeq(database.reader, poisoned), {
      status: 'failed',
      error:
        'the file could not be read past row 0: its reader exited 2 times (heap out of memory); ' +
        'shorten the following rows, or split the file',
    })
    t.equal(ends, 2)
    t.match(await findImportBySeq(database.reader, other), { status: 'completed', created: 1 })
  },
)

eachDatabase(
  t,
  'a file that takes long to read delays no import of another workspace',
  async (t, database) => {
    const parts = partsOf(database)
    const spawn: SpawnThread = (entry, options) => {
      const { columns } = options.options as ReaderOptions
      if (!columns.some(({ name }) => name === 'slow')) return spawnThread(entry, options)
      return { post: () => {}, terminate: () => Promise.resolve() }
    }
    const slow = await receive(parts, 'email,slow\na@x.example,1\n')
    const other = await receive(parts, 'email\nb@x.example\n', {}, 'w2')
    await new Importer({ ...parts, spawn }).finish(other, NEVER)
    t.match(await findImportBySeq(database.reader, other), { status: 'completed', created: 1 })
    t.match(await findImportBySeq(database.reader, slow), { status: 'queued' })
  },
)

eachDatabase(t, 'an import is not completed where a part of its file is gone', async (t, database) => {
  const parts = partsOf(database)
  const seq = await receive(parts, 'email\na@x.example\n')
  await database.write(tx => deleteImportParts(tx.db, seq, 1))
  await new Importer(parts).finish(seq, NEVER)
  t.match(await findImportBySeq(database.reader, seq), {
    status: 'failed',
    error: 'part of the file is missing; upload it again',
  })
})

eachDatabase(
  t,
  'an export has every contact once, whatever its number, with all attributes',
  async (t, database) => {
    const parts = partsOf(database)
    const rows = Array.from(
      { length: 2_300 },
      (_, at) => `c${at}@x.example,${at % 3 === 0 ? 'vip' : ''},${at}`,
    )
    await imported(parts, `email,tags,n\n${rows.join('\n')}\n`)
    await imported(
      parts,
      `email,${Array.from({ length: 160 }, (_, at) => `a${at}`).join(',')}\nlast@x.example${',x'.repeat(160)}\n`,
    )
    let text = ''
    for await (const piece of exportContacts(database.reader, 'w1', {}, NOW)) text += piece
    const lines = text.trimEnd().split('\n')
    t.equal(lines.length, 2_302)
    t.match(lines[0], /,a9,attributes$/)
    t.match(lines[1], /^[0-9a-f-]{36},c0@x\.example,,,true,false,,vip,/)
    t.match(lines[2_301], /"\{""n"":|"\{""a/)
    const again = await imported(parts, text)
    t.match(again, { created: 0, updated: 0, unchanged: 2_301, rejected: 0 })
    const { items } = await listContacts(database.reader, 'w1', {}, { limit: 1, offset: 2_300 }, () => {})
    t.match(
      [...(await thingsOf(database.reader, CONTACT_TAGS, [items[0]!.seq])).values()],
      [[{ name: 'vip' }]],
    )
  },
)

eachDatabase(
  t,
  'an import is forgotten with its rejected rows, step by step, and its file before',
  async (t, database) => {
    const parts = partsOf(database)
    const { id } = await imported(parts, `email\n${'wrong\n'.repeat(25)}`)
    t.equal(await database.write(tx => deleteImportsBefore(tx.db, NOW, 10)), 0, 'it is young')
    for (const rows of [10, 10, 5, 1, 0])
      t.equal(await database.write(tx => deleteImportsBefore(tx.db, NOW + 86_400_000, 10)), rows)
    t.equal(await findImport(database.reader, 'w1', id), undefined)
  },
)
