/**
 * Fills an installation that no server runs on with an audience: contacts with attributes, lists, tags, suppressions.
 *
 * Called by `audience.ts`. Everything goes through the program's own stores, on a connection without a journal; no events are
 * appended, as if the contacts had been there for long. Contact `n` is always the same, so that runs compare.
 */
import { closeSync, fsyncSync, openSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { Kysely } from 'kysely'
import type { Contact, NewContact } from '../../src/audience/contacts/contact.js'
import { insertContacts, updateContact } from '../../src/audience/contacts/contact-write-store.js'
import { findAudience } from '../../src/audience/audience-store.js'
import { addPairs, CONTACT_TAGS, LIST_MEMBERS, type PairKind } from '../../src/audience/pair-store.js'
import { insertList } from '../../src/audience/lists/list-store.js'
import { insertTag } from '../../src/audience/tags/tag-store.js'
import type { Queries } from '../../src/db/database.js'
import { sqliteDialect } from '../../src/db/sqlite/sqlite-dialect.js'
import type { Tables } from '../../src/db/tables.js'
import { suppressAll } from '../../src/deliverability/suppressions/suppression-store.js'
import { DAY_MS, newId, scattered } from '../scenarios/history.js'
import type { Installation } from '../server/server-process.js'

export const LISTS = 50
export const TAGS = 200
const PER_TRANSACTION = 5_000
/** Years over which the contacts came. */
const SPAN_MS = 3 * 365 * DAY_MS
const CACHE_KB = 400_000

export interface FilledAudience {
  readonly contacts: number
  readonly listIds: readonly string[]
  readonly tagNames: readonly string[]
  /** Contacts spread over all, oldest first. */
  readonly sample: readonly Pick<Contact, 'id' | 'email' | 'firstName' | 'lastName'>[]
  /** Rows a second of the stores' bulk insert, without events. */
  readonly insertedPerSecond: number
}

const SYLLABLES = 'an bo ca de el fi ga ho in ja ka lu mi no ol pe ra sa ti ul vo we xe ya zo'.split(' ')
const CITIES = 300
const PLANS = ['free', 'basic', 'business', 'enterprise']
const SAMPLES = 6_000

/** A name of so many syllables. */
function nameOf(number: number, syllables: number): string {
  let [rest, name] = [number, '']
  for (let at = 0; at < syllables; at += 1) {
    name += SYLLABLES[rest % SYLLABLES.length] ?? ''
    rest = Math.floor(rest / SYLLABLES.length)
  }
  return name.charAt(0).toUpperCase() + name.slice(1)
}

export function cityOf(number: number): string {
  return `${nameOf(7 * number, 3)}burg`
}

/** As a shop's contacts are: a name, where they live, what they pay for, when they signed up. */
function contactOf(n: number, contacts: number, until: number): NewContact {
  const [lot, other] = [scattered(n), scattered(n + contacts)]
  const createdAt = Math.floor(until - ((contacts - n) * SPAN_MS) / contacts)
  const [firstName, lastName] = [nameOf(lot % 500, 2), nameOf(other % 5_000, 3)]
  return {
    id: newId(createdAt),
    email: `${firstName}.${lastName}${n}@d${other % 2_000}.example`.toLowerCase(),
    firstName,
    lastName,
    attributes: {
      city: cityOf(lot % CITIES),
      age: 18 + (other % 60),
      plan: PLANS[(lot % 7) % PLANS.length],
      company: `${nameOf(other % 10_000, 4)} Ltd`,
      signed_up: new Date(createdAt).toISOString().slice(0, 10),
    },
    subscribed: lot % 100 >= 3,
    createdAt,
  }
}

/** As CSV with a heading: contacts from number `first` on, as they would have come today. @param isOther than another time */
export function contactFile(first: number, rows: number, isOther: boolean): Buffer {
  const until = Date.now()
  const lines = ['email,first_name,last_name,city,age,plan,company,signed_up']
  for (let n = first; n < first + rows; n += 1) {
    const { email, firstName, lastName, attributes } = contactOf(n, first + rows, until)
    const { city, age, plan: usual, company, signed_up } = attributes as Record<string, string>
    const plan = isOther ? 'changed' : usual
    lines.push([email, firstName, lastName, city, age, plan, company, signed_up].join(','))
  }
  return Buffer.from(`${lines.join('\n')}\n`)
}

export async function fillAudience(
  { dataDir, workspaceId }: Installation,
  contacts: number,
): Promise<FilledAudience> {
  const handle = new BetterSqlite(join(dataDir, 'postroad.db'))
  // In its defensive mode, SQLite keeps a journal.
  handle.unsafeMode()
  handle.pragma('journal_mode = OFF')
  handle.pragma('synchronous = OFF')
  handle.pragma(`cache_size = -${CACHE_KB}`)
  const { dialect, run } = sqliteDialect(handle)
  const db: Queries = Object.assign(new Kysely<Tables>({ dialect }), { run })
  const inOne = async <T>(work: () => Promise<T>): Promise<T> => {
    handle.exec('begin')
    const result = await work()
    handle.exec('commit')
    return result
  }
  const until = Date.now()
  const { listIds, tagNames } = await inOne(() => fillThings(db, workspaceId, until))
  const sample: Contact[] = []
  let insertMs = 0
  for (let start = 0; start < contacts; start += PER_TRANSACTION) {
    const length = Math.min(PER_TRANSACTION, contacts - start)
    const rows = Array.from({ length }, (_, at) => contactOf(start + at, contacts, until))
    const began = performance.now()
    const made = await inOne(() => insertContacts(db, workspaceId, rows))
    insertMs += performance.now() - began
    await inOne(() => fillFates(db, workspaceId, made, until))
    visit(handle, made, until)
    sample.push(...made.filter((_, at) => (start + at) % Math.ceil(contacts / SAMPLES) === 0))
  }
  handle.exec(`insert into contact_search (contact_search) values ('optimize')`)
  handle.pragma('journal_mode = WAL')
  handle.close()
  // As after a while: what the system still has to write would come upon whatever is measured first.
  const file = openSync(join(dataDir, 'postroad.db'), 'r+')
  fsyncSync(file)
  closeSync(file)
  return {
    contacts,
    listIds,
    tagNames,
    sample,
    insertedPerSecond: (contacts * 1_000) / insertMs,
  }
}

async function fillThings(db: Queries, workspaceId: string, at: number) {
  const [listIds, tagNames]: [string[], string[]] = [[], []]
  for (let number = 0; number < LISTS; number += 1) {
    const list = {
      id: newId(at),
      workspaceId,
      name: `List ${number}`,
      description: null,
      type: 'static',
    } as const
    listIds.push(list.id)
    await insertList(db, {
      ...list,
      conditions: null,
      isPublic: false,
      doubleOptIn: false,
      createdAt: at,
      updatedAt: at,
    })
  }
  for (let number = 0; number < TAGS; number += 1) {
    const name = `tag ${number}`
    tagNames.push(name)
    const tag = { id: newId(at), workspaceId, name, color: null, description: null }
    await insertTag(db, { ...tag, createdAt: at, updatedAt: at })
  }
  return { listIds, tagNames }
}

/**
 * Their lists, tags and attributes, and the results of their mail. List `i` has every (i + 2)nd contact: from half of all to two in a
 * hundred. Everybody has two tags, of which the first ones are common.
 */
async function fillFates(
  db: Queries,
  workspaceId: string,
  made: readonly Contact[],
  until: number,
): Promise<void> {
  const put = async (kind: PairKind, thing: number, chosen: readonly Contact[]) => {
    if (chosen.length > 0)
      await addPairs(
        db,
        kind,
        thing,
        chosen.map(({ seq }) => seq),
        until,
      )
  }
  for (let list = 0; list < LISTS; list += 1)
    await put(
      LIST_MEMBERS,
      list + 1,
      made.filter(({ seq }) => scattered(seq + list) % (list + 2) === 0),
    )
  const byTag = new Map<number, Contact[]>()
  for (const contact of made)
    for (const tag of tagsOf(contact.seq)) byTag.set(tag, [...(byTag.get(tag) ?? []), contact])
  for (const [tag, tagged] of byTag) await put(CONTACT_TAGS, tag + 1, tagged)
  const audience = await findAudience(db, workspaceId)
  if (!audience) return
  for (const contact of made) {
    const lot = scattered(contact.seq) % 100
    const at = Math.floor((contact.createdAt + until) / 2)
    if (lot === 50 || lot === 51)
      await updateContact(db, audience.number, contact, {
        ...contact,
        bounced: true,
        bouncedAt: at,
        bounceType: 'permanent',
      })
  }
  const suppressed = made.filter(({ seq }) => [50, 51, 60].includes(scattered(seq) % 100))
  await suppressAll(
    db,
    suppressed.map(({ email, seq }) => ({
      workspaceId,
      email,
      sourceMessageId: null,
      createdAt: until,
      ...(scattered(seq) % 100 === 60
        ? { reason: 'unsubscribe' as const, scope: 'marketing' as const }
        : { reason: 'hard_bounce' as const, scope: 'all' as const }),
    })),
  )
}

/** Three in ten have opened a mail at some time, eight in a hundred have clicked. */
function visit(handle: BetterSqlite.Database, made: readonly Contact[], until: number): void {
  const [first, last] = [made[0]?.seq ?? 0, made.at(-1)?.seq ?? 0]
  const update = handle.prepare(`
    update contacts set last_opened_at = (created_at + @until) / 2,
      last_clicked_at = case when (seq * 7919) % 1000 < 80 then (created_at + @until) / 2 end
    where seq between @first and @last and (seq * 7919) % 1000 < 300`)
  update.run({ first, last, until })
}

function tagsOf(seq: number): number[] {
  const lot = scattered(seq + 1)
  const [one, other] = [lot % TAGS, Math.floor(((lot >>> 8) % TAGS) ** 2 / TAGS)]
  return one === other ? [one] : [one, other]
}
