/** What conditions mean: their SQL agrees with a plain reading of them in memory, on both databases. */
import t from 'tap'
import { readMoment } from '../../src/core/read-moment.js'
import type { Database } from '../../src/db/database.js'
import { findAudience } from '../../src/audience/audience-store.js'
import type { NewContact } from '../../src/audience/contacts/contact.js'
import { noteVisit } from '../../src/audience/contacts/contact-store.js'
import { insertContacts } from '../../src/audience/contacts/contact-write-store.js'
import { findPlaces, PLACES } from '../../src/audience/contacts/places-store.js'
import { addPairs, CONTACT_TAGS } from '../../src/audience/pair-store.js'
import {
  estimate,
  listMatching,
  SUPPRESSIONS_PER_PIECE,
} from '../../src/audience/segments/audience-query-store.js'
import { isGroup, type Conditions, type Rule } from '../../src/audience/segments/conditions.js'
import { readConditions } from '../../src/audience/segments/read-conditions.js'
import { findTag, insertTag } from '../../src/audience/tags/tag-store.js'
import { AppError } from '../../src/core/errors.js'
import { suppressAll } from '../../src/deliverability/suppressions/suppression-store.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { eachDatabase } from '../support/db/database.js'
import { DAY_MS, NOW } from '../support/mailroom.js'

const PAGE = { limit: 1_000, offset: 0 }
const unhurried = () => {}
const ASKING = { workspaceId: 'w1', now: NOW }

interface Person extends NewContact {
  readonly openedAt: number | null
  readonly tags: readonly string[]
}

const NAMES = [null, 'Ann', 'ANNE', 'José', 'jose', 'Strauß', '50%_x', "O'Hara"]
const VALUES: readonly unknown[] = [
  ...[
    'pro',
    'Pro',
    'PRÓ',
    '',
    '5',
    '05',
    '-1.5',
    'x',
    '10',
    '2026-01-01',
    '2025-12-30T10:00:00+02:00',
    'a"b',
    "'; --",
  ],
  ...[5, -1.5, 0, 10, 100, true, false, [1, 2], { a: 1 }],
]
const ATTRIBUTES = ['plan', 'age', 'Age', 'the "odd" name', '$.x', 'when']
/** Of rare and of common ones rules are asked in another way, and of many. */
const TAGS = ['vip', 'new', 'old', 'rare']
/** Of the first contact: they leave places for three of those that rules ask for. */
const OTHERS = Object.fromEntries(Array.from({ length: PLACES - 3 }, (_, at) => [`other ${at}`, 'x']))

function people(random: SeededRandom, count: number): Person[] {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random.fraction() * from.length)]!
  return Array.from({ length: count }, (_, at) => ({
    ...{ id: `c${at}`, email: `c${at}@${pick(['x.example', 'y.example'])}` },
    ...{ firstName: pick(NAMES), lastName: pick(NAMES), subscribed: random.fraction() < 0.7 },
    attributes: {
      ...(at === 0 ? OTHERS : {}),
      ...Object.fromEntries(
        ATTRIBUTES.filter(() => random.fraction() < 0.6).map(name => [name, pick(VALUES)]),
      ),
    },
    createdAt: NOW - Math.floor(random.fraction() * 10) * DAY_MS,
    openedAt: random.fraction() < 0.5 ? null : NOW - Math.floor(random.fraction() * 10) * DAY_MS,
    tags: TAGS.filter(tag => random.fraction() < (tag === 'rare' ? 0.05 : 0.3)),
  }))
}

function randomConditions(random: SeededRandom, depth = 1): Conditions {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random.fraction() * from.length)]!
  const operators = [
    ...[
      'equals',
      'not_equals',
      'contains',
      'not_contains',
      'starts_with',
      'ends_with',
      'gt',
      'lt',
      'gte',
      'lte',
    ],
    ...['is_set', 'is_not_set', 'in', 'not_in', 'before', 'after', 'within_days', 'not_within_days'],
  ]
  const rules = Array.from({ length: Math.floor(random.fraction() * 4) }, (): Rule | Conditions => {
    if (depth < 3 && random.fraction() < 0.25) return randomConditions(random, depth + 1)
    const operator = pick(operators)
    const field = pick([
      ...['email', 'first_name', 'last_name', 'subscribed', 'created_at', 'last_opened_at', 'tags'],
      ...ATTRIBUTES,
      ...ATTRIBUTES.map(name => `attributes.${name}`),
    ])
    const text = () =>
      pick(['pro', 'PRO', 'an', 'jose', 'ß', '%', '_', '5', '10', 'vip', 'rare', 'Strauss', '@x', "'", 'c1'])
    const scalar = () =>
      pick<() => string | number | boolean>([text, () => pick([5, -1.5, 0, 10]), () => true])()
    const date = () => pick(['2026-01-01', '2025-12-30T08:00:00Z', '2026-01-05T10:00:00Z'])
    const value = /^is_/.test(operator)
      ? undefined
      : /in$/.test(operator)
        ? [pick([text(), 5]), pick([text(), 10])]
        : /days$/.test(operator)
          ? pick([0, 1, 3.5, 100])
          : /before|after/.test(operator) || /_at$/.test(field)
            ? date()
            : scalar()
    return value === undefined ? { field, operator } : { field, operator, value }
  })
  return { match: pick(['all', 'any']), rules }
}

/** As a person would read it. */
const plain = (text: string) =>
  text.toLowerCase().replaceAll('ß', 'ss').normalize('NFKD').replace(/\p{M}/gu, '')

function holds(person: Person, conditions: Conditions): boolean {
  const results = conditions.rules.map(one => (isGroup(one) ? holds(person, one) : meets(person, one)))
  if (results.length === 0) return false
  return conditions.match === 'all' ? results.every(Boolean) : results.some(Boolean)
}

function meets(person: Person, { field, operator, value }: Rule): boolean {
  const isNot = operator.includes('not_')
  const question = operator.replace('not_', '')
  const list = Array.isArray(value) ? value : [value]
  if (field === 'tags') {
    const isMeant = person.tags.some(tag => list.some(one => plain(String(one)) === tag))
    return (question === 'is_set' ? person.tags.length > 0 : isMeant) !== isNot
  }
  const own: Record<string, unknown> = {
    ...{ email: person.email, first_name: person.firstName, last_name: person.lastName },
    ...{ subscribed: person.subscribed, created_at: person.createdAt, last_opened_at: person.openedAt },
  }
  const name = field.replace('attributes.', '')
  const found = field in own ? own[field] : person.attributes[name]
  if (question === 'is_set') return (found !== null && found !== undefined) !== isNot
  if (field === 'subscribed') return (found === (String(value) === 'true')) !== isNot
  const kind = !(field in own) ? 'attribute' : field.endsWith('_at') ? 'moment' : 'text'
  const answer = compare(found, question, list, kind)
  return isNot ? answer !== true : answer === true
}

/** @returns undefined where there is nothing that could be compared */
function compare(
  found: unknown,
  question: string,
  list: readonly unknown[],
  kind: 'attribute' | 'moment' | 'text',
): boolean | undefined {
  const isMoment = kind === 'moment'
  if (found === null || found === undefined) return undefined
  const [value] = list
  const moment = isMoment
    ? (found as number)
    : typeof found === 'string' && /^\d{4}-\d\d-\d\d/.test(found)
      ? readMoment(found)
      : undefined
  const ordered = (a: number, b: number) =>
    ({ lt: a < b, lte: a <= b, gt: a > b, gte: a >= b, before: a < b, after: a > b, equals: a === b })[
      question
    ]
  if (question === 'within_days')
    return moment === undefined
      ? undefined
      : moment <= NOW && moment >= Math.round(NOW - Number(value) * DAY_MS)
  if (isMoment || question === 'before' || question === 'after')
    return moment === undefined ? undefined : ordered(moment, readMoment(String(value))!)
  if (typeof found === 'object') return undefined
  const isNumeric =
    kind === 'attribute' && typeof value === 'number' && list.every(one => typeof one === 'number')
  if (isNumeric && /^(equals|in|lt|lte|gt|gte)$/.test(question)) {
    const number =
      typeof found === 'number'
        ? found
        : typeof found === 'string' && /^-?(0|[1-9]\d*)(\.\d*[1-9])?$/.test(found)
          ? Number(found)
          : undefined
    if (number === undefined) return undefined
    return question === 'in'
      ? list.includes(number)
      : question === 'equals'
        ? number === value
        : ordered(number, value)
  }
  // eslint-disable-next-line @typescript-eslint/no-base-to-string -- no object comes here
  const text = plain(String(found))
  const texts = list.map(one => plain(String(one)))
  const [wanted = ''] = texts
  switch (question) {
    case 'equals':
    case 'in':
      return texts.includes(text)
    case 'contains':
      return text.includes(wanted)
    case 'starts_with':
      return text.startsWith(wanted)
    case 'ends_with':
      return text.endsWith(wanted)
    default: {
      const order = Buffer.compare(Buffer.from(text), Buffer.from(wanted))
      return ordered(order, 0)
    }
  }
}

async function fill(database: Database, all: readonly Person[]): Promise<void> {
  await database.write(async tx => {
    const contacts = await insertContacts(tx.db, 'w1', all)
    for (const name of TAGS) {
      await insertTag(tx.db, {
        ...{
          id: name,
          workspaceId: 'w1',
          name,
          color: null,
          description: null,
          createdAt: NOW,
          updatedAt: NOW,
        },
      })
      const tag = await findTag(tx.db, 'w1', { name })
      const tagged = contacts.filter((_, at) => all[at]!.tags.includes(name)).map(({ seq }) => seq)
      await addPairs(tx.db, CONTACT_TAGS, tag!.seq, tagged, NOW)
    }
    for (const [at, { seq }] of contacts.entries()) {
      const { openedAt } = all[at]!
      if (openedAt !== null) await noteVisit(tx.db, seq, 'last_opened_at', openedAt)
    }
    await insertContacts(tx.db, 'w2', [{ ...all[0]!, id: 'stranger', subscribed: true }])
  })
}

eachDatabase(
  t,
  'the SQL of random conditions finds whom a plain reading of them means',
  async (t, database) => {
    const random = new SeededRandom(20260105)
    const all = people(random, 60)
    await fill(database, all)
    const audience = await findAudience(database.reader, 'w1')
    const places = await findPlaces(database.reader, audience!.number)
    t.equal(
      ATTRIBUTES.filter(name => places.has(name)).length,
      3,
      'some attributes have a place, others have none',
    )
    let [asked, refused, met] = [0, 0, 0]
    while (asked < 250) {
      const conditions = randomConditions(random)
      let group
      try {
        group = readConditions(conditions)
      } catch (error) {
        if (!(error instanceof AppError)) throw error
        refused += 1
        continue
      }
      asked += 1
      const wanted = all.filter(person => holds(person, conditions))
      const { items, total } = await listMatching(database.reader, group, ASKING, PAGE, unhurried)
      const found = items.map(({ id }) => id).sort()
      if (wanted.length > 0 && wanted.length < all.length) met += 1
      t.same(found, wanted.map(({ id }) => id).sort(), JSON.stringify(conditions))
      t.equal(total, wanted.length)
      const mailable = wanted.filter(({ subscribed }) => subscribed).length
      t.same(await estimate(database.reader, group, ASKING, unhurried), {
        ...{ count: wanted.length, mailable },
        ...{ unsubscribed: wanted.length - mailable, bounced: 0 },
      })
    }
    t.ok(refused > 10, 'some cannot be asked')
    t.ok(met > 60, `${met} mean some and not others`)
  },
)

eachDatabase(
  t,
  'whoever is suppressed cannot be mailed, by address or domain, however many others are suppressed',
  async (t, database) => {
    const all = people(new SeededRandom(20261123), 60).map(person => ({ ...person, subscribed: true }))
    await fill(database, all)
    const strangers = (letter: string) =>
      Array.from({ length: SUPPRESSIONS_PER_PIECE + 1 }, (_, at) => `${letter}${at}@x.example`)
    const addresses = all.filter((_, at) => at % 3 === 0).map(({ email }) => email)
    const suppressed = [...strangers('a'), ...addresses, ...strangers('d'), '@y.example']
    await database.write(tx =>
      suppressAll(
        tx.db,
        suppressed.map(email => ({
          ...{ workspaceId: 'w1', email, sourceMessageId: null, createdAt: NOW },
          ...{ reason: 'manual' as const, scope: 'all' as const },
        })),
      ),
    )
    const everybody = readConditions({
      match: 'all',
      rules: [{ field: 'email', operator: 'contains', value: '@' }],
    })
    const mailable = all.filter(({ email }) => !addresses.includes(email) && !email.endsWith('@y.example'))
    t.ok(mailable.length > 10 && mailable.length < 40, `${mailable.length} of 60`)
    t.same(await estimate(database.reader, everybody, ASKING, unhurried), {
      ...{ count: 60, mailable: mailable.length, unsubscribed: 0, bounced: 0 },
    })
  },
)
