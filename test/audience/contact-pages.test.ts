/** Lists of contacts by filter and order, page after page, on both databases: no contact is missing, and none is shown twice. */
import t from 'tap'
import type { AudienceParts } from '../../src/audience/audience-parts.js'
import type { Contact, NewContact } from '../../src/audience/contacts/contact.js'
import {
  CONTACT_SORTS,
  listContacts,
  type ContactQuery,
} from '../../src/audience/contacts/contact-page-store.js'
import { insertContacts } from '../../src/audience/contacts/contact-write-store.js'
import { changeContact } from '../../src/audience/contacts/contacts.js'
import { insertList, listLists } from '../../src/audience/lists/list-store.js'
import { addPairs, LIST_MEMBERS, listPairs } from '../../src/audience/pair-store.js'
import { listMatching } from '../../src/audience/segments/audience-query-store.js'
import { readConditions } from '../../src/audience/segments/read-conditions.js'
import { uuidv7 } from '../../src/core/ids.js'
import type { Database } from '../../src/db/database.js'
import type { After, Listing, Page, Position } from '../../src/http/pagination.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { eachDatabase } from '../support/db/database.js'
import { NOW } from '../support/mailroom.js'

const unhurried = () => {}
const SOME = 7_000
const HOUR_MS = 3_600_000

/** Contacts whose moments and addresses are in different orders. */
async function fill(database: Database, count: number): Promise<Contact[]> {
  const contacts = Array.from({ length: count }, (_, at): NewContact => {
    const id = uuidv7(NOW, Buffer.from(String(at).padStart(10, '0')))
    const email = `c${(at * 7_919) % count}@x.example`
    // Some of them have been created at the same moment.
    const createdAt = NOW + Math.floor(at / 3) * 1_000
    return {
      id,
      email,
      firstName: null,
      lastName: null,
      attributes: { at },
      subscribed: at % 5 > 0,
      createdAt,
    }
  })
  return database.write(tx => insertContacts(tx.db, 'w1', contacts))
}

function cursor(position: Position, total: number): After {
  return { total, position: () => position }
}

/** All pages of a list, with what each of them said. */
async function pagesOf(limit: number, list: (page: Page) => Promise<Listing<Contact>>) {
  const pages: Listing<Contact>[] = [await list({ limit, offset: 0 })]
  for (let last = pages[0]!; last.hasMore ?? last.items.length < last.total; last = pages.at(-1)!)
    pages.push(await list({ limit, offset: 0, after: cursor(last.end!, last.total) }))
  return pages
}

function sorted(contacts: readonly Contact[], sort: (typeof CONTACT_SORTS)[number] | undefined): string[] {
  const keyOf = { created_at: 'createdAt', updated_at: 'updatedAt', email: 'email' } as const
  const sign = sort === undefined || sort.startsWith('-') ? -1 : 1
  const key = keyOf[(sort ?? '-created_at').replace('-', '') as keyof typeof keyOf]
  const isBefore = (a: Contact, b: Contact) => (a[key] === b[key] ? a.seq < b.seq : a[key] < b[key])
  return [...contacts].sort((a, b) => sign * (isBefore(a, b) ? -1 : 1)).map(({ email }) => email)
}

eachDatabase(
  t,
  'every filter in every order shows each contact once, page after page',
  async (t, database) => {
    const parts: AudienceParts = {
      database,
      clock: new FakeClock(),
      newId: () => 'unused',
      onEvents: () => {},
    }
    const clock = new FakeClock(new Date(NOW + 100 * HOUR_MS).toISOString())
    const made = await fill(database, SOME)
    for (const at of [3, 30, 300, 6_999])
      await database.write(tx =>
        changeContact(
          { ...parts, clock },
          tx,
          { workspaceId: 'w1', isSandbox: false, source: 'api' },
          made[at]!.id,
          { firstName: 'Ann' },
        ),
      )
    const contacts = made.map((one, at) =>
      [3, 30, 300, 6_999].includes(at) ? { ...one, updatedAt: clock.now() } : one,
    )
    for (const [id, name] of [
      ['small', 'Small'],
      ['large', 'Large'],
    ] as const)
      await database.write(tx =>
        insertList(tx.db, {
          ...{ id, workspaceId: 'w1', name, description: null, type: 'static', conditions: null },
          ...{ isPublic: false, doubleOptIn: false, createdAt: NOW, updatedAt: NOW },
        }),
      )
    const lists = (await listLists(database.reader, 'w1', {}, { limit: 10, offset: 0 })).items
    const isIn = { small: (at: number) => at % 100 === 1, large: (at: number) => at % 7 > 0 }
    for (const list of lists)
      await database.write(tx =>
        addPairs(
          tx.db,
          LIST_MEMBERS,
          list.seq,
          contacts.flatMap(({ seq }, at) => (isIn[list.id as 'small' | 'large'](at) ? seq : [])),
          NOW,
        ),
      )
    const stored = (await listLists(database.reader, 'w1', {}, { limit: 10, offset: 0 })).items
    const paired = (id: string) => {
      const { seq, memberCount } = stored.find(one => one.id === id)!
      return { list: { seq, contacts: memberCount } }
    }
    const late = NOW + 2_000_000
    const few = readConditions({ match: 'all', rules: [{ field: 'at', operator: 'lt', value: 2_500 }] })
    const cases: readonly (readonly [
      name: string,
      query: ContactQuery,
      isMeant: (one: Contact, at: number) => boolean,
    ])[] = [
      ['everybody', {}, () => true],
      ['subscribed', { subscribed: true }, one => one.subscribed],
      ['an address', { email: 'c17@x.example' }, one => one.email === 'c17@x.example'],
      ['a small list', paired('small'), (_, at) => isIn.small(at)],
      ['a large list', paired('large'), (_, at) => isIn.large(at)],
      ['created since', { createdSince: late }, one => one.createdAt >= late],
      ['updated since, few', { updatedSince: clock.now() }, one => one.updatedAt >= clock.now()],
      ['updated since, many', { updatedSince: NOW + 1_000 }, one => one.updatedAt >= NOW + 1_000],
      ['a segment', { groups: [few], now: NOW }, (_, at) => at < 2_500],
      [
        'a segment in a list',
        { groups: [few], now: NOW, subscribed: false, ...paired('large') },
        (one, at) => at < 2_500 && !one.subscribed && isIn.large(at),
      ],
      ['words', { words: ['c1', 'x.exam'] }, one => one.email.startsWith('c1')],
      ['nobody', { email: 'nobody@x.example' }, () => false],
    ]
    for (const [name, query, isMeant] of cases) {
      const meant = contacts.filter(isMeant)
      for (const sort of [undefined, ...CONTACT_SORTS]) {
        const ask = (page: Page) =>
          listContacts(database.reader, 'w1', { ...query, ...(sort ? { sort } : {}) }, page, unhurried)
        const pages = await pagesOf(1_000, ask)
        const what = `${name} by ${sort ?? 'default'}`
        t.same(
          pages.flatMap(({ items }) => items.map(({ email }) => email)),
          sorted(meant, sort),
          what,
        )
        t.ok(
          pages.every(({ total }) => total === meant.length),
          `${what}: total`,
        )
        const deep = await ask({ limit: 10, offset: Math.floor(meant.length / 2) })
        t.same(
          deep.items.map(({ email }) => email),
          sorted(meant, sort)
            .slice(Math.floor(meant.length / 2))
            .slice(0, 10),
          `${what}: by offset`,
        )
      }
    }
    const large = paired('large').list
    const members = await pagesOf(1_000, page =>
      listPairs(database.reader, LIST_MEMBERS, large.seq, large.contacts, page),
    )
    t.same(
      members.flatMap(({ items }) => items.map(({ email }) => email)),
      sorted(
        contacts.filter((_, at) => isIn.large(at)),
        undefined,
      ),
    )
    const matching = await pagesOf(600, page =>
      listMatching(database.reader, few, { workspaceId: 'w1', now: NOW }, page, unhurried),
    )
    t.same(
      matching.flatMap(({ items }) => items.map(({ email }) => email)),
      sorted(contacts.slice(0, 2_500), undefined),
    )
  },
)

eachDatabase(t, 'a contact that is created between two pages moves no other', async (t, database) => {
  // An offset would show one twice.
  const made = await fill(database, 30)
  const first = await listContacts(database.reader, 'w1', {}, { limit: 10, offset: 0 }, unhurried)
  await database.write(tx =>
    insertContacts(tx.db, 'w1', [
      {
        ...{ id: 'new', email: 'new@x.example', firstName: null, lastName: null, attributes: {} },
        ...{ subscribed: true, createdAt: NOW + HOUR_MS },
      },
    ]),
  )
  const after = cursor(first.end!, first.total)
  const second = await listContacts(database.reader, 'w1', {}, { limit: 10, offset: 0, after }, unhurried)
  t.same(
    [...first.items, ...second.items].map(({ email }) => email),
    sorted(made, undefined).slice(0, 20),
  )
})
