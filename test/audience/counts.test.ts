/** Whatever is done to contacts, lists and tags, in whatever order: counts, lists and events tell the same, on both databases. */
import t from 'tap'
import type { AudienceParts, Acting } from '../../src/audience/audience-parts.js'
import { countOf, findAudience } from '../../src/audience/audience-store.js'
import type { Contact } from '../../src/audience/contacts/contact.js'
import { followSuppressions } from '../../src/audience/contacts/follow-suppressions.js'
import type { Suppression } from '../../src/deliverability/suppressions/suppression-store.js'
import { insertContacts } from '../../src/audience/contacts/contact-write-store.js'
import { listContacts } from '../../src/audience/contacts/contact-page-store.js'
import {
  changeContact,
  createContact,
  findContact,
  removeContacts,
} from '../../src/audience/contacts/contacts.js'
import { purgeDeleted, unfinishedSweeps } from '../../src/audience/contacts/deletion-store.js'
import { RESTORABLE_MS } from '../../src/audience/audience-parts.js'
import { ContactSweeps } from '../../src/audience/contacts/sweeps.js'
import { findList, insertList, listLists, markListDeleted } from '../../src/audience/lists/list-store.js'
import { changeMembers } from '../../src/audience/lists/lists.js'
import { CONTACT_TAGS, deletePairsOfDeleted, LIST_MEMBERS, listPairs } from '../../src/audience/pair-store.js'
import { findTag, insertTag } from '../../src/audience/tags/tag-store.js'
import { changeTagged } from '../../src/audience/tags/tags.js'
import { AppError } from '../../src/core/errors.js'
import { given } from '../../src/core/given.js'
import { uuidv7 } from '../../src/core/ids.js'
import type { Database } from '../../src/db/database.js'
import type { AnyEvent } from '../../src/events/event.js'
import { readEventsAfter } from '../../src/events/store.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { eachDatabase } from '../support/db/database.js'
import { NOW } from '../support/mailroom.js'

const ACTING: Acting = { workspaceId: 'w1', isSandbox: false, source: 'api' }
const ACTOR = { type: 'operator' } as const
const PAGE = { limit: 1_000, offset: 0 }
const unhurried = () => {}
const hardBounce = (email: string): Suppression => ({
  ...{ workspaceId: 'w1', email, reason: 'hard_bounce', scope: 'all' },
  ...{ sourceMessageId: null, createdAt: NOW },
})

function partsOf(database: Database, clock = new FakeClock()): AudienceParts {
  let ids = 0
  const newId = () => uuidv7(NOW, Buffer.from(String(++ids).padStart(10, '0')))
  return { database, clock, newId, onEvents: () => {} }
}

/** So many contacts, without events. */
async function fill({ database, newId }: AudienceParts, count: number): Promise<void> {
  const contacts = Array.from({ length: count }, (_, at) => ({
    ...{ id: newId(), email: `c${at}@x.example`, firstName: null, lastName: null },
    ...{ attributes: {}, subscribed: true, createdAt: NOW },
  }))
  await database.write(tx => insertContacts(tx.db, 'w1', contacts))
}

/** What should be, kept beside the database. */
interface Kept {
  readonly email: string
  subscribed: boolean
  bounced: boolean
  isDeleted: boolean
  readonly lists: Set<string>
  readonly tags: Set<string>
}

eachDatabase(t, 'random sequences of changes leave every count and every list right', async (t, database) => {
  const parts = partsOf(database)
  const random = new SeededRandom(20260105)
  const below = (most: number) => Math.floor(random.fraction() * most)
  const sweeps = new ContactSweeps(parts)
  const kept = new Map<string, Kept>()
  const things = { lists: ['news', 'shop'], tags: ['vip', 'new'] }
  const ids = { lists: new Map<string, string>(), tags: new Map<string, string>() }
  await database.write(async tx => {
    for (const name of things.lists) {
      const id = parts.newId()
      ids.lists.set(name, id)
      await insertList(tx.db, {
        ...{ id, workspaceId: 'w1', name, description: null, type: 'static', conditions: null },
        ...{ isPublic: false, doubleOptIn: false, createdAt: NOW, updatedAt: NOW },
      })
    }
    for (const name of things.tags) {
      const id = parts.newId()
      ids.tags.set(name, id)
      await insertTag(tx.db, {
        ...{ id, workspaceId: 'w1', name, color: null, description: null, createdAt: NOW, updatedAt: NOW },
      })
    }
  })
  const live = () => [...kept].filter(([, one]) => !one.isDeleted)
  const some = () => live().filter(() => random.fraction() < 0.4)
  const pick = <T>(from: readonly T[]): T | undefined => from[below(from.length)]

  const steps: (() => Promise<void>)[] = [
    async () => {
      const email = `c${below(12)}@x.example`
      const isThere = live().some(([, one]) => one.email === email)
      const subscribed = random.fraction() < 0.7
      const made = database.write(tx => createContact(parts, tx, ACTING, { email, subscribed }))
      if (isThere) {
        await t.rejects(made, AppError, `${email} is there`)
        return
      }
      const { id } = await made
      kept.set(id, { email, subscribed, bounced: false, isDeleted: false, lists: new Set(), tags: new Set() })
    },
    async () => {
      const [id, one] = pick(live()) ?? []
      if (id === undefined || !one) return
      one.subscribed = random.fraction() < 0.5
      await database.write(tx => changeContact(parts, tx, ACTING, id, { subscribed: one.subscribed }))
    },
    async () => {
      const [id] = pick(live()) ?? []
      if (id === undefined) return
      await database.write(async tx => {
        const contact = await findContact(tx.db, 'w1', { id })
        await removeContacts(parts, tx, ACTING, contact ? [contact] : [])
      })
      kept.delete(id)
    },
    async () => {
      const [change, kind, chosen] = [
        pick(['added', 'removed'] as const)!,
        pick(['lists', 'tags'] as const)!,
        some(),
      ]
      const name = pick(things[kind])!
      const work = kind === 'lists' ? changeMembers : changeTagged
      const changed = chosen.filter(([, one]) => one[kind].has(name) !== (change === 'added'))
      const contacts = chosen.map(([id]) => id)
      const result = await work(parts, ACTING, ids[kind].get(name)!, contacts, change)
      t.same(result, { done: changed.length, skipped: chosen.length - changed.length, notFound: 0 })
      for (const [, one] of chosen)
        if (change === 'added') one[kind].add(name)
        else one[kind].delete(name)
    },
    async () => {
      if (random.fraction() < 0.7) return
      const { changed } = await sweeps.deleteAll(ACTING, ACTOR)
      t.equal(changed, live().length)
      for (const [, one] of live()) one.isDeleted = true
    },
    async () => {
      const deleted = [...kept].filter(([, one]) => one.isDeleted).reverse()
      const chosen = random.fraction() < 0.5 ? deleted : deleted.filter(() => random.fraction() < 0.5)
      const isAll = chosen.length === deleted.length
      const back = chosen.filter(([id, { email }], at) => {
        const isTaken = live().some(([, one]) => one.email === email)
        return !isTaken && chosen.findIndex(([, one]) => one.email === email) === at && id
      })
      if (isAll) {
        const { changed, skipped } = await sweeps.restoreAll(ACTING, ACTOR)
        t.same([changed, skipped], [back.length, chosen.length - back.length])
      } else {
        const contacts = chosen.map(([id]) => id)
        const skipped = chosen.length - back.length
        t.same(await sweeps.restore(ACTING, contacts), { restored: back.length, skipped })
      }
      for (const [, one] of back) one.isDeleted = false
    },
    async () => {
      const [, one] = pick(live()) ?? []
      if (!one) return
      one.bounced = random.fraction() < 0.6
      const entry = hardBounce(one.email)
      const change = { isSandbox: false, source: 'api' } as const
      const contacts = followSuppressions()
      await database.write(tx =>
        one.bounced ? contacts.suppressed(tx, [entry], change) : contacts.released(tx, entry, change),
      )
    },
    async () => {
      if (random.fraction() < 0.7) return
      const deleted = [...kept].filter(([, one]) => one.isDeleted)
      t.equal(await database.write(tx => purgeDeleted(tx.db, Number.MAX_SAFE_INTEGER, 1_000)), deleted.length)
      for (const [id] of deleted) kept.delete(id)
    },
  ]

  for (let count = 0; count < 120; count += 1) {
    await steps[below(steps.length)]!()
    if (count % 16 === 15) await check()
  }
  await check()

  async function check(): Promise<void> {
    const { reader } = database
    const emails = (all: readonly Contact[]) => all.map(({ email }) => email).sort()
    const wanted = (which: (one: Kept) => boolean) =>
      live()
        .flatMap(([, one]) => (which(one) ? one.email : []))
        .sort()
    const audience = await findAudience(reader, 'w1')
    const eitherWay = [undefined, true, false]
    const filters = eitherWay.flatMap(subscribed =>
      eitherWay.map(bounced => ({ ...given({ subscribed }), ...given({ bounced }) })),
    )
    for (const filter of filters) {
      const { items, total } = await listContacts(reader, 'w1', filter, PAGE, unhurried)
      const right = wanted(
        one =>
          (filter.subscribed ?? one.subscribed) === one.subscribed &&
          (filter.bounced ?? one.bounced) === one.bounced,
      )
      t.same(emails(items), right)
      t.equal(total, right.length)
      t.equal(audience ? countOf(audience, filter) : 0, right.length)
    }
    const searched = await listContacts(reader, 'w1', { words: ['c1', '@x.exam'] }, PAGE, unhurried)
    t.same(
      emails(searched.items),
      wanted(({ email }) => email.startsWith('c1')),
    )
    for (const name of things.lists) {
      const list = await findList(reader, 'w1', ids.lists.get(name)!)
      const { items } = await listPairs(reader, LIST_MEMBERS, list!.seq, list!.memberCount, PAGE)
      t.same(
        emails(items),
        wanted(one => one.lists.has(name)),
      )
      t.equal(list?.memberCount, items.length)
    }
    for (const name of things.tags) {
      const tag = await findTag(reader, 'w1', { name })
      const { items } = await listPairs(reader, CONTACT_TAGS, tag!.seq, tag!.contactCount, PAGE)
      t.same(
        emails(items),
        wanted(one => one.tags.has(name)),
      )
      t.equal(tag?.contactCount, items.length)
    }
  }
})

eachDatabase(t, 'each change is one event; no change, no event', async (t, database) => {
  const clock = new FakeClock()
  const parts = partsOf(database, clock)
  const KINDS = [
    ...['contact.created', 'contact.updated', 'contact.deleted', 'contact.restored'],
    ...['contact.subscribed', 'contact.unsubscribed', 'list.member_added', 'list.member_removed'],
    ...['tag.added', 'tag.removed'],
  ] as AnyEvent['kind'][]
  let seen = 0
  const told = async () => {
    const events = await readEventsAfter(database.reader, seen, KINDS as ['contact.created'], 1_000)
    seen = events.at(-1)?.seq ?? seen
    return events as unknown as { kind: string; payload: Record<string, unknown> }[]
  }
  const list = {
    ...{ id: parts.newId(), workspaceId: 'w1', name: 'News', description: null },
    conditions: null,
  }
  await database.write(tx =>
    insertList(tx.db, {
      ...{ ...list, type: 'static', isPublic: false, doubleOptIn: false, createdAt: NOW, updatedAt: NOW },
    }),
  )
  const ann = await database.write(tx =>
    createContact(parts, tx, ACTING, { email: 'ann@x.example', attributes: { a: 1 } }, list.id),
  )
  t.match(await told(), [
    { kind: 'contact.created', payload: { id: ann.id, email: 'ann@x.example', attributes: { a: 1 } } },
    {
      kind: 'list.member_added',
      payload: {
        list_id: list.id,
        list_name: 'News',
        contact_id: ann.id,
        email: 'ann@x.example',
        source: 'api',
      },
    },
  ])
  const change = (patch: object) => database.write(tx => changeContact(parts, tx, ACTING, ann.id, patch))
  await change({ attributes: { a: 1 }, subscribed: true })
  t.same(await told(), [])
  await change({ attributes: { b: 2 }, firstName: 'Ann' })
  t.match(await told(), [
    { kind: 'contact.updated', payload: { id: ann.id, changed: ['first_name', 'attributes'] } },
  ])
  await change({ subscribed: false })
  t.match(await told(), [
    { kind: 'contact.updated', payload: { subscribed: false, changed: ['subscribed'] } },
    { kind: 'contact.unsubscribed', payload: { contact_id: ann.id, list_id: null, source: 'api' } },
  ])
  await changeMembers(parts, ACTING, list.id, [ann.id], 'added')
  t.same(await told(), [])
  await changeMembers(parts, ACTING, list.id, [ann.id], 'removed')
  await changeMembers(parts, ACTING, list.id, [ann.id], 'removed')
  t.match(await told(), [{ kind: 'list.member_removed', payload: { contact_id: ann.id } }])
  const sweeps = new ContactSweeps(parts)
  await sweeps.deleteAll(ACTING, ACTOR)
  await sweeps.deleteAll(ACTING, ACTOR)
  await sweeps.restoreAll(ACTING, ACTOR)
  t.match(await told(), [
    { kind: 'contact.deleted', payload: { contact_id: ann.id, is_restorable: true } },
    { kind: 'contact.restored', payload: { id: ann.id } },
  ])
})

eachDatabase(
  t,
  'what was deleted can be restored for 30 days, and is then gone with all that was kept',
  async (t, database) => {
    const clock = new FakeClock()
    const parts = partsOf(database, clock)
    const sweeps = new ContactSweeps(parts)
    await fill(parts, 300)
    const { changed, begunAt } = await sweeps.deleteAll(ACTING, ACTOR)
    t.equal(changed, 300, 'more than one step')
    const ann = await database.write(tx => createContact(parts, tx, ACTING, { email: 'ann@x.example' }))
    t.equal(await purge(begunAt), 0)
    await clock.advance(RESTORABLE_MS + 1)
    t.match(await sweeps.restoreAll(ACTING, ACTOR), { changed: 0, skipped: 0 })
    let purged = 0
    for (let step = 1; step > 0; purged += step) step = await purge(clock.now() - RESTORABLE_MS)
    t.equal(purged, 300)
    t.match(await listContacts(database.reader, 'w1', {}, PAGE, unhurried), {
      items: [{ id: ann.id }],
      total: 1,
    })

    function purge(before: number): Promise<number> {
      return database.write(tx => purgeDeleted(tx.db, before, 64))
    }
  },
)

eachDatabase(t, 'a deletion of all that was broken off is gone on with where it was', async (t, database) => {
  const parts = partsOf(database)
  await fill(parts, 600)
  // The process goes after the first step: the others are never asked for.
  let writes = 0
  const dying: Database = {
    ...database,
    write: (work, options) =>
      ++writes > 2 ? Promise.reject(new Error('killed')) : database.write(work, options),
  }
  await t.rejects(new ContactSweeps({ ...parts, database: dying }).deleteAll(ACTING, ACTOR), /killed/)
  const left = (await findAudience(database.reader, 'w1'))?.contacts ?? 0
  t.ok(left > 0 && left < 600, `${left} of 600 are left`)
  const next = new ContactSweeps(parts)
  await t.rejects(next.restoreAll(ACTING, ACTOR), { code: 'conflict' }, 'one at a time')
  await next.resume(new AbortController().signal)
  t.same(await unfinishedSweeps(database.reader), [])
  t.match(await listContacts(database.reader, 'w1', {}, PAGE, unhurried), { items: [], total: 0 })
  const deleted = await readEventsAfter(database.reader, 0, ['contact.deleted'], 1_000)
  t.equal(new Set(deleted.map(({ payload }) => payload.contact_id)).size, 600)
  t.equal(deleted.length, 600, 'none twice')
})

eachDatabase(
  t,
  'a deleted list is taken apart in steps, and goes with its last member',
  async (t, database) => {
    const parts = partsOf(database)
    const ids: string[] = []
    for (let count = 0; count < 10; count += 1)
      ids.push(
        (await database.write(tx => createContact(parts, tx, ACTING, { email: `c${count}@x.example` }))).id,
      )
    await database.write(tx =>
      insertList(tx.db, {
        ...{
          id: parts.newId(),
          workspaceId: 'w1',
          name: 'News',
          description: null,
          type: 'static',
          conditions: null,
        },
        ...{ isPublic: false, doubleOptIn: false, createdAt: NOW, updatedAt: NOW },
      }),
    )
    const [list] = (await listLists(database.reader, 'w1', {}, PAGE)).items
    await changeMembers(parts, ACTING, list!.id, ids, 'added')
    await database.write(tx => markListDeleted(tx.db, list!.seq, NOW))
    const steps: number[] = []
    do steps.push(await database.write(tx => deletePairsOfDeleted(tx.db, LIST_MEMBERS, NOW + 1, 4)))
    while (steps.at(-1) !== 0)
    t.same(steps, [4, 4, 2, 1, 0])
    t.equal((await listContacts(database.reader, 'w1', {}, PAGE, unhurried)).total, 10)
  },
)
