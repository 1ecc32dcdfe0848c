/** What conditions mean: their SQL agrees with a plain reading of them in memory, on both databases. */
import t from 'tap'
import { readMoment } from '../../src/core/moments.js'
import type { Database } from '../../src/db/database.js'
import type { NewContact } from '../../src/audience/contacts/contact.js'
import { noteVisit } from '../../src/audience/contacts/contact-store.js'
import { insertContacts } from '../../src/audience/contacts/contact-write-store.js'
import { addPairs, CONTACT_TAGS } from '../../src/audience/pair-store.js'
import {
  estimate,
  listMatching,
  SUPPRESSIONS_PER_PIECE,
  findMatching,
} from '../../src/audience/segments/audience-query-store.js'
import {
  isGroup,
  type Conditions,
  type Rule,
  type RuleValue,
} from '../../src/audience/segments/conditions.js'
import { readConditions } from '../../src/audience/segments/read-conditions.js'
import { findTag, insertTag } from '../../src/audience/tags/tag-store.js'
import { insertConversion } from '../../src/analytics/conversions/conversion-store.js'
import { purchaseHistory } from '../../src/analytics/conversions/purchase-history-store.js'
import { provideHistory } from '../../src/audience/segments/rule-history.js'
import { campaignHistory } from '../../src/campaigns/model/campaign-history-store.js'
import { flag } from '../../src/db/tables.js'
import { AppError } from '../../src/core/errors.js'
import { suppressAll } from '../../src/deliverability/suppressions/suppression-store.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { eachDatabase } from '../support/db/database.js'
import { DAY_MS, NOW } from '../support/mailroom.js'

provideHistory({ campaigns: campaignHistory, purchases: purchaseHistory })

const PAGE = { limit: 1_000, offset: 0 }
const unhurried = () => {}
const TODAY = Math.floor(NOW / DAY_MS) * DAY_MS
const CONTEXT = { workspaceId: 'w1', now: NOW }

interface Person extends NewContact {
  readonly openedAt: number | null
  readonly tags: readonly string[]
  readonly purchases: readonly Purchase[]
  /** Result of each campaign's mail; absent if it was not sent to this person. */
  readonly campaigns: Readonly<Record<string, Reception>>
}

interface Purchase {
  readonly value: number
  readonly at: number
  readonly metadata: Readonly<Record<string, unknown>>
}

type Reception = (typeof RECEPTIONS)[number]

/** How far mail of a campaign has come: its status, whether it was opened and clicked. A click is an opening as well. */
const RECEPTIONS = [
  { status: 'sent', opened: false, clicked: false },
  { status: 'bounced', opened: false, clicked: false },
  { status: 'delivered', opened: false, clicked: false },
  { status: 'opened', opened: true, clicked: false },
  { status: 'clicked', opened: true, clicked: true },
] as const
const CAMPAIGNS = ['0192f000-0000-7000-8000-00000000ca01', '0192f000-0000-7000-8000-00000000ca02']
const PRODUCTS: readonly Purchase['metadata'][] = [
  ...[{}, { product_id: 'p1' }, { product_id: 7 }, { product_id: null }, { product_ids: 'p1' }],
  ...[{ product_ids: ['p2', 7] }, { product_ids: [] }, { product_id: 'p2', product_ids: ['p1'] }],
]

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
    ...['1990-01-07', '1988-02-29', '2026-01-05', '2026-01-09T23:59:59Z', '1961-12-31'],
    'a"b',
    "'; --",
  ],
  ...['19.90', '3.0', '100.00', '007', ' 42 ', '+5', '1e1', '1e999', '.5'],
  ...[5, -1.5, 0, 10, 100, true, false],
  ...[[], [1, 2], ['Pro', 'x'], ['10.0', 'jose'], [5, true], [null], [['pro']]],
  ...[
    {},
    { a: 1 },
    { a: 'PRÓ', b: { c: '5.0' } },
    { a: [5, 'vip'], b: { c: [] } },
    { b: { c: '2026-01-01' } },
  ],
  ...[
    [{ a: 'pro' }, { a: [10] }],
    [{ b: { c: 'x' } }, 5],
  ],
]
const ATTRIBUTES = ['plan', 'age', 'Age', 'the "odd" name', '$.x', 'when']
/** Nested in what each of them may be, but for the one of which there is an attribute by that very name. */
const NESTED = ['plan.a', 'age.b.c', 'when.a', 'when.b.c', 'Age.a.nothing', 'plan.b.c']
/** Of rare and of common ones rules are asked in another way, and of many. */
const TAGS = ['vip', 'new', 'old', 'rare']

function people(random: SeededRandom, count: number): Person[] {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random.fraction() * from.length)]!
  return Array.from({ length: count }, (_, at) => ({
    ...{ id: `c${at}`, email: `c${at}@${pick(['x.example', 'y.example'])}` },
    ...{ firstName: pick(NAMES), lastName: pick(NAMES), subscribed: random.fraction() < 0.7 },
    attributes: {
      ...Object.fromEntries(
        [...ATTRIBUTES, 'plan.b.c'].filter(() => random.fraction() < 0.6).map(name => [name, pick(VALUES)]),
      ),
    },
    createdAt: NOW - Math.floor(random.fraction() * 10) * DAY_MS,
    openedAt: random.fraction() < 0.5 ? null : NOW - Math.floor(random.fraction() * 10) * DAY_MS,
    tags: TAGS.filter(tag => random.fraction() < (tag === 'rare' ? 0.05 : 0.3)),
    purchases: Array.from({ length: Math.floor(random.fraction() * 4) }, () => ({
      value: pick([10, 19.5, -10, 100, 0]),
      at: NOW - Math.floor(random.fraction() * 10) * DAY_MS,
      metadata: pick(PRODUCTS),
    })),
    campaigns: Object.fromEntries(
      CAMPAIGNS.filter(() => random.fraction() < 0.6).map(id => [id, pick(RECEPTIONS)]),
    ),
  }))
}

const HISTORY = [
  ...['campaign_received', 'campaign_opened', 'campaign_clicked'],
  ...['purchase_count', 'purchase_total', 'last_purchase_at', 'purchased_product'],
]

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
    ...['in_next_days', 'not_in_next_days', 'anniversary_in_next_days', 'not_anniversary_in_next_days'],
  ]
  const rules = Array.from({ length: Math.floor(random.fraction() * 4) }, (): Rule | Conditions => {
    if (depth < 3 && random.fraction() < 0.25) return randomConditions(random, depth + 1)
    const operator = pick(operators)
    const field = pick([
      ...['email', 'first_name', 'last_name', 'subscribed', 'created_at', 'last_opened_at', 'tags'],
      ...ATTRIBUTES,
      ...ATTRIBUTES.map(name => `attributes.${name}`),
      ...NESTED,
      ...NESTED.map(name => `attributes.${name}`),
      ...HISTORY,
    ])
    const text = () =>
      pick([
        'pro',
        'PRO',
        'an',
        'jose',
        'ß',
        '%',
        '_',
        '5',
        '10',
        'vip',
        'rare',
        'Strauss',
        '@x',
        "'",
        'c1',
        '3',
        '19.9',
      ])
    const scalar = () =>
      pick<() => string | number | boolean>([text, () => pick([5, -1.5, 0, 10, 3, 19.9]), () => true])()
    const date = () => pick(['2026-01-01', '2025-12-30T08:00:00Z', '2026-01-05T10:00:00Z'])
    const value = /^is_/.test(operator)
      ? undefined
      : field.startsWith('campaign_')
        ? /in$/.test(operator)
          ? CAMPAIGNS
          : pick(CAMPAIGNS)
        : field === 'purchased_product'
          ? /in$/.test(operator)
            ? [pick(['p1', 'none']), 7]
            : pick(['p1', 'p2', 7])
          : /in$/.test(operator)
            ? [pick([text(), 5, true]), pick([text(), 10, 19.9])]
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
  const upcoming = /^(anniversary_)?in_next_days$/.exec(question)
  const { campaigns, purchases } = person
  const total = purchases.reduce((sum, one) => sum + one.value, 0)
  if (field.startsWith('campaign_')) {
    const has = (id: string) => {
      const { status, opened, clicked } = campaigns[id] ?? { status: '', opened: false, clicked: false }
      if (field === 'campaign_received') return ['delivered', 'opened', 'clicked'].includes(status)
      return field === 'campaign_opened' ? opened : clicked
    }
    return CAMPAIGNS.some(id => (question === 'is_set' || list.includes(id)) && has(id)) !== isNot
  }
  if (field === 'purchased_product') {
    const bought = purchases.flatMap(({ metadata: { product_id: one = null, product_ids: others } }) => [
      ...(one === null ? [] : [one]),
      ...(Array.isArray(others) ? (others as unknown[]) : []),
    ])
    const isMeant = (product: unknown) => list.some(value => String(value) === String(product))
    return (question === 'is_set' ? bought.length > 0 : bought.some(isMeant)) !== isNot
  }
  if (field === 'purchase_count' || field === 'purchase_total') {
    if (question === 'is_set') return purchases.length > 0 !== isNot
    const amount = field === 'purchase_count' ? purchases.length : total
    const asked = numeric(value)!
    const isSo = { lt: amount < asked, lte: amount <= asked, gt: amount > asked, gte: amount >= asked }
    return (question === 'equals' ? amount === asked : isSo[question as 'lt']) !== isNot
  }
  const own: Record<string, unknown> = {
    ...(purchases.length > 0 ? { last_purchase_at: Math.max(...purchases.map(({ at }) => at)) } : {}),
    ...(purchases.length === 0 && field === 'last_purchase_at' ? { last_purchase_at: null } : {}),
    ...{ email: person.email, first_name: person.firstName, last_name: person.lastName },
    ...{ subscribed: person.subscribed, created_at: person.createdAt, last_opened_at: person.openedAt },
  }
  const name = field.replace('attributes.', '')
  const found = field in own ? own[field] : named(person.attributes, name)
  if (question === 'is_set') return isThere(found) !== isNot
  if (upcoming) {
    const isMoment = field.endsWith('_at')
    const at = isMoment
      ? (found as number | null)
      : typeof found === 'string' && /^\d{4}-\d\d-\d\d/.test(found)
        ? readMoment(found)
        : undefined
    return (
      (at !== undefined && at !== null && isUpcoming(at, Number(value), upcoming[1] !== undefined)) !== isNot
    )
  }
  if (field === 'subscribed') return list.some(one => String(one) === String(found)) !== isNot
  const kind = !(field in own) ? 'attribute' : field.endsWith('_at') ? 'moment' : 'text'
  const answer = compare(found, question, list, kind)
  return isNot ? answer !== true : answer === true
}

/** Day by day, as on a calendar. */
function isUpcoming(at: number, days: number, isYearly: boolean): boolean {
  const day = (moment: number) => new Date(moment).toISOString().slice(isYearly ? 5 : 0, 10)
  const isLeap = (year: number) => new Date(Date.UTC(year, 1, 29)).getUTCMonth() === 1
  for (let ahead = 0; ahead <= days; ahead += 1) {
    const date = NOW + ahead * DAY_MS
    if (day(date) === day(at)) return true
    const isSubstitute = day(date) === '02-28' && !isLeap(new Date(date).getUTCFullYear())
    if (isYearly && isSubstitute && day(at) === '02-29') return true
  }
  return false
}

/** An attribute by its own name, or by the path to where it is nested; through an array, those of its items. */
function named(attributes: unknown, path: string): unknown {
  if (Array.isArray(attributes)) {
    const found = attributes.flatMap(item => (isObject(item) ? (named(item, path) ?? []) : []))
    return found.length > 0 ? found : undefined
  }
  if (!isObject(attributes)) return undefined
  if (path in attributes) return attributes[path]
  const dots = [...path.matchAll(/\./g)].map(({ index }) => index)
  return dots
    .map(dot => named(attributes[path.slice(0, dot)], path.slice(dot + 1)))
    .find(one => one !== undefined && isThere(one, true))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isThere(found: unknown, isEmptyTextThere = false): boolean {
  if (found === null || found === undefined || (found === '' && !isEmptyTextThere)) return false
  return typeof found !== 'object' || Object.keys(found).length > 0
}

function numeric(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value !== 'string' || value.trim() === '') return undefined
  return Number.isFinite(Number(value)) ? Number(value) : undefined
}

/** Numbers are compared as numbers, everything else as text. */
function isEqual(found: unknown, asked: unknown, isNumeric: boolean): boolean {
  if (typeof found === 'object') return false
  if (isNumeric && typeof asked === 'number') return numeric(found) === asked
  // eslint-disable-next-line @typescript-eslint/no-base-to-string -- no object comes here
  return plain(String(found)) === plain(String(asked))
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
      : typeof found === 'string' && found.trim().length === 10
        ? moment <= TODAY && moment >= TODAY - Math.floor(Number(value)) * DAY_MS
        : moment <= NOW && moment >= Math.round(NOW - Number(value) * DAY_MS)
  if (isMoment && question === 'equals' && String(value).length === 10)
    return moment === undefined ? undefined : new Date(moment).toISOString().slice(0, 10) === value
  if (isMoment || question === 'before' || question === 'after')
    return moment === undefined ? undefined : ordered(moment, readMoment(String(value))!)
  if (Array.isArray(found)) {
    if (question !== 'in' && question !== 'contains') return undefined
    return found.some(item => list.some(one => isEqual(item, one, true)))
  }
  if (typeof found === 'object') return undefined
  const isNumeric = kind === 'attribute'
  if (question === 'in' || question === 'equals') return list.some(one => isEqual(found, one, isNumeric))
  const asked = typeof value === 'boolean' ? undefined : numeric(value)
  if (isNumeric && asked !== undefined && /^[lg]te?$/.test(question)) {
    const number = numeric(found)
    return number === undefined ? undefined : ordered(number, asked)
  }
  // eslint-disable-next-line @typescript-eslint/no-base-to-string -- no object comes here
  const text = plain(String(found))
  const texts = list.map(one => plain(String(one)))
  const [wanted = ''] = texts
  switch (question) {
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
    for (const id of CAMPAIGNS) {
      await tx.db
        .insertInto('campaigns')
        .values({
          ...{ id, workspace_id: 'w1', is_sandbox: 0, name: id, subject: 'x', template_id: 't' },
          ...{ status: 'completed', created_at: NOW, updated_at: NOW },
        } as never)
        .execute()
      const { seq: campaign } = await tx.db
        .selectFrom('campaigns')
        .select('seq')
        .where('id', '=', id)
        .executeTakeFirstOrThrow()
      for (const [at, { seq: contact }] of contacts.entries()) {
        const reception = all[at]!.campaigns[id]
        if (!reception) continue
        const { status, opened, clicked } = reception
        await tx.db
          .insertInto('campaign_recipients')
          .values({
            ...{ campaign, contact, status, reason: null, message_id: null },
            ...{ has_opened: flag(opened), has_clicked: flag(clicked) },
          })
          .execute()
      }
    }
    for (const { id, purchases } of all)
      for (const [at, { value, at: createdAt, metadata }] of purchases.entries())
        await insertConversion(tx.db, {
          ...{ id: `${id}.${at}`, workspaceId: 'w1', contactId: id, value, currency: 'EUR', metadata },
          ...{ messageId: null, campaignId: null, variant: null, isSandbox: false, createdAt },
        })
    await insertContacts(tx.db, 'w2', [{ ...all[0]!, id: 'stranger', subscribed: true }])
  })
}

eachDatabase(t, 'the SQL of random conditions matches a plain evaluation', async (t, database) => {
  const random = new SeededRandom(20260105)
  const all = people(random, 60)
  await fill(database, all)
  const everybody = readConditions({ match: 'all', rules: [{ field: 'email', operator: 'is_set' }] })
  const { items: rows } = await listMatching(database.reader, everybody, CONTEXT, PAGE, unhurried)
  const idOf = new Map(rows.map(({ seq, id }) => [seq, id]))
  let [asked, refused, met] = [0, 0, 0]
  while (asked < 350) {
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
    const { items, total } = await listMatching(database.reader, group, CONTEXT, PAGE, unhurried)
    const found = items.map(({ id }) => id).sort()
    if (wanted.length > 0 && wanted.length < all.length) met += 1
    t.same(found, wanted.map(({ id }) => id).sort(), JSON.stringify(conditions))
    t.equal(total, wanted.length)
    const meant = await findMatching(database.reader, group, CONTEXT, [...idOf.keys()])
    t.same([...meant].map(seq => idOf.get(seq)).sort(), found, 'an automation means the same people')
    if (asked % 3 > 0) continue
    const mailable = wanted.filter(({ subscribed }) => subscribed).length
    t.same(await estimate(database.reader, group, CONTEXT, unhurried), {
      ...{ count: wanted.length, mailable },
      ...{ unsubscribed: wanted.length - mailable, bounced: 0 },
    })
  }
  t.ok(refused > 10, 'some cannot be asked')
  t.ok(met > 40, `${met} mean some and not others`)
})

eachDatabase(
  t,
  'suppressed contacts are not mailable, by address or domain, however many others are suppressed',
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
    t.same(await estimate(database.reader, everybody, CONTEXT, unhurried), {
      ...{ count: 60, mailable: mailable.length, unsubscribed: 0, bounced: 0 },
    })
  },
)

/** Attribute value, rule, whether it is met. */
const TABLE: readonly (readonly [value: unknown, rule: Omit<Rule, 'field'>, isMet: boolean])[] = [
  ...['19.90', '3.0', '100.00', ' 12 ', '+5', '1e2', 42].map(
    value => [value, { operator: 'gt', value: 2 }, true] as const,
  ),
  ['19.90', { operator: 'equals', value: 19.9 }, true],
  ['19.90', { operator: 'in', value: [7, 19.9] }, true],
  ['19.90', { operator: 'not_in', value: [19.9] }, false],
  ['abc', { operator: 'gt', value: 2 }, false],
  ['', { operator: 'lt', value: 2 }, false],
  [5, { operator: 'gt', value: '20' }, false],
  ['5', { operator: 'gt', value: '20' }, false],
  ['100', { operator: 'gt', value: '20' }, true],
  ['b', { operator: 'gt', value: 'a' }, true],
  ['05', { operator: 'equals', value: '5' }, false],
  ['', { operator: 'is_set' }, false],
  ['', { operator: 'is_not_set' }, true],
  ['', { operator: 'equals', value: '' }, true],
  [[], { operator: 'is_set' }, false],
  [['x'], { operator: 'is_set' }, true],
  [0, { operator: 'is_set' }, true],
  [false, { operator: 'is_set' }, true],
  [['running', 'Chess'], { operator: 'contains', value: 'chess' }, true],
  [['running', 'Chess'], { operator: 'contains', value: 'run' }, false],
  [['running', 'Chess'], { operator: 'not_contains', value: 'chess' }, false],
  [['running', 'Chess'], { operator: 'in', value: ['golf', 'chess'] }, true],
  [['running', 'Chess'], { operator: 'not_in', value: ['golf'] }, true],
  [[1, 2], { operator: 'contains', value: 2 }, true],
  [['1.0'], { operator: 'in', value: [1] }, true],
  [true, { operator: 'in', value: [true] }, true],
  [false, { operator: 'in', value: [true] }, false],
  ['true', { operator: 'in', value: [true, 5] }, true],
]

eachDatabase(t, 'numbers in text, empty values and arrays compare as the API says', async (t, database) => {
  const base = { firstName: null, lastName: null, subscribed: true, createdAt: NOW }
  // Each row twice: unchanged, and nested.
  const all = TABLE.flatMap(([value], at) => [
    { ...base, id: `flat${at}`, email: `flat${at}@x.example`, attributes: { v: value } },
    { ...base, id: `deep${at}`, email: `deep${at}@x.example`, attributes: { a: { v: value } } },
  ])
  await database.write(tx => insertContacts(tx.db, 'w1', all))
  for (const [at, [value, rule, isMet]] of TABLE.entries())
    for (const [field, id] of [
      ['v', `flat${at}`],
      ['attributes.a.v', `deep${at}`],
    ] as const) {
      const group = readConditions({ match: 'all', rules: [{ ...rule, field }] })
      const { items } = await listMatching(database.reader, group, CONTEXT, PAGE, unhurried)
      const isFound = items.some(one => one.id === id)
      t.equal(isFound, isMet, `${field} ${JSON.stringify(value)} ${JSON.stringify(rule)}`)
    }
})

t.test('a boolean field may be asked for with in, and nothing but booleans', async t => {
  const read = (value: RuleValue) =>
    readConditions({ match: 'all', rules: [{ field: 'subscribed', operator: 'in', value }] })
  t.same(read([true]).parts, [{ kind: 'truth', field: 'subscribed', values: [true] }])
  t.throws(() => read(['maybe']), { code: 'validation_error', path: 'conditions.rules.0.value' })
})

eachDatabase(
  t,
  'an anniversary is upcoming across the end of a year, and on the 29th of February',
  async (t, database) => {
    const birthdays = ['1990-01-01', '1961-12-30', '1988-02-29', '2000-02-28', '1975-03-01', 'unknown']
    await database.write(tx =>
      insertContacts(
        tx.db,
        'w1',
        birthdays.map(birthday => ({
          ...{ id: birthday, email: `${birthday}@x.example`, firstName: null, lastName: null },
          ...{ subscribed: true, createdAt: NOW, attributes: { birthday } },
        })),
      ),
    )
    const born = async (today: string, days: number, operator = 'anniversary_in_next_days') => {
      const group = readConditions({ match: 'all', rules: [{ field: 'birthday', operator, value: days }] })
      const context = { workspaceId: 'w1', now: Date.parse(`${today}T23:00:00Z`) }
      const { items } = await listMatching(database.reader, group, context, PAGE, unhurried)
      return items.map(({ id }) => id).sort()
    }
    t.same(await born('2026-12-30', 2), ['1961-12-30', '1990-01-01'])
    t.same(await born('2026-12-31', 0), [])
    t.same(await born('2027-02-27', 1), ['1988-02-29', '2000-02-28'], 'no leap year')
    t.same(await born('2028-02-27', 1), ['2000-02-28'], 'a leap year')
    t.same(await born('2028-02-29', 0), ['1988-02-29'])
    t.same(await born('2027-02-28', 0), ['1988-02-29', '2000-02-28'])
    t.same(await born('2027-03-01', 0), ['1975-03-01'])
    t.equal((await born('2027-03-01', 400)).length, 5)
    t.same(await born('2026-12-30', 2, 'in_next_days'), [])
    t.same(await born('1960-12-31', 364, 'in_next_days'), ['1961-12-30'])
    t.same(await born('2026-12-30', 2, 'not_anniversary_in_next_days'), [
      ...['1975-03-01', '1988-02-29', '2000-02-28', 'unknown'],
    ])
  },
)
