/** Days in rules are days of the workspace's time zone: on both databases, far from UTC and across clock changes. */
import t from 'tap'
import { readMoment } from '../../src/core/moments.js'
import type { Database } from '../../src/db/database.js'
import { NEW_WORKSPACE, insertWorkspace, sandboxIdOf } from '../../src/accounts/workspace-store.js'
import type { NewContact } from '../../src/audience/contacts/contact.js'
import { insertContacts } from '../../src/audience/contacts/contact-write-store.js'
import { insertList } from '../../src/audience/lists/list-store.js'
import { listMatching } from '../../src/audience/segments/audience-query-store.js'
import type { Rule } from '../../src/audience/segments/conditions.js'
import { readConditions } from '../../src/audience/segments/read-conditions.js'
import { eachDatabase } from '../support/db/database.js'

const PAGE = { limit: 1_000, offset: 0 }
const DAY_MS = 86_400_000
const unhurried = () => {}

/** As a calendar of that place shows it, e.g. `2026-03-29`. */
const dayIn = (zone: string, at: number) => new Date(at).toLocaleDateString('sv-SE', { timeZone: zone })

async function addWorkspace(database: Database, timezone: string, id = 'w1'): Promise<void> {
  const workspace = { ...NEW_WORKSPACE, id, name: id, timezone, createdAt: 0 }
  await database.write(tx => insertWorkspace(tx.db, workspace))
}

/** Contacts named by their value of the attribute `on`, and by when they were created. */
async function addContacts(
  database: Database,
  values: readonly string[],
  {
    createdAt = () => 0,
    workspaceId = 'w1',
  }: { createdAt?: (value: string) => number; workspaceId?: string } = {},
): Promise<void> {
  const contacts = values.map((value, at): NewContact => ({
    ...{
      id: `${workspaceId} ${at}`,
      email: `c${at}@x.example`,
      firstName: null,
      lastName: null,
      subscribed: true,
    },
    ...{ createdAt: createdAt(value), attributes: { on: value } },
  }))
  await database.write(tx => insertContacts(tx.db, workspaceId, contacts))
}

async function matching(
  database: Database,
  rule: Omit<Rule, 'field'> & { field?: string },
  now: number,
  workspaceId = 'w1',
): Promise<string[]> {
  const group = readConditions({ match: 'all', rules: [{ field: 'on', ...rule }] })
  const { items } = await listMatching(database.reader, group, { workspaceId, now }, PAGE, unhurried)
  return items.map(({ attributes }) => String(attributes['on'])).sort()
}

eachDatabase(t, 'a birthday is on its day at UTC+14 and at UTC-10', async (t, database) => {
  await addWorkspace(database, 'Pacific/Kiritimati', 'east')
  await addWorkspace(database, 'Pacific/Honolulu', 'west')
  const birthdays = ['1990-01-05', '1990-01-06', '1990-01-07']
  await addContacts(database, birthdays, { workspaceId: 'east' })
  await addContacts(database, birthdays, { workspaceId: 'west' })
  const born = (workspaceId: string, now: string) =>
    matching(database, { operator: 'anniversary_in_next_days', value: 0 }, Date.parse(now), workspaceId)
  t.same(await born('east', '2026-01-05T09:59:59Z'), ['1990-01-05'])
  t.same(await born('east', '2026-01-05T10:00:00Z'), ['1990-01-06'])
  t.same(await born('west', '2026-01-06T09:59:59Z'), ['1990-01-05'])
  t.same(await born('west', '2026-01-06T10:00:00Z'), ['1990-01-06'])
})

eachDatabase(t, 'a date without a time is that day in any zone', async (t, database) => {
  await addWorkspace(database, 'Pacific/Kiritimati')
  const days = ['2026-01-03', '2026-01-04', '2026-01-05', '2026-01-06', '2026-01-07']
  await addContacts(database, days)
  // 6 January, 02:00 there.
  const now = Date.parse('2026-01-05T12:00:00Z')
  const found = (operator: string, value: Rule['value']) =>
    matching(database, { operator, value: value! }, now)
  t.same(await found('in_next_days', 0), ['2026-01-06'])
  t.same(await found('in_next_days', 1), ['2026-01-06', '2026-01-07'])
  t.same(await found('within_days', 0), ['2026-01-06'], 'today')
  t.same(await found('within_days', 2), ['2026-01-04', '2026-01-05', '2026-01-06'])
  t.same(await found('before', '2026-01-05'), ['2026-01-03', '2026-01-04'])
  t.same(await found('after', '2026-01-05'), ['2026-01-06', '2026-01-07'])
  t.same(await found('equals', '2026-01-05'), ['2026-01-05'])
  // 14:00 on the 5th there: that day has begun, the next has not.
  t.same(await found('after', '2026-01-05T00:00:00Z'), ['2026-01-06', '2026-01-07'])
  t.same(await found('before', '2026-01-05T00:00:00Z'), ['2026-01-03', '2026-01-04', '2026-01-05'])
})

eachDatabase(t, 'a sandbox uses the time zone of its workspace', async (t, database) => {
  await addWorkspace(database, 'Pacific/Kiritimati')
  const sandbox = sandboxIdOf('w1')
  await addContacts(database, ['2026-01-05', '2026-01-06'], { workspaceId: sandbox })
  const rule = { operator: 'in_next_days', value: 0 }
  t.same(await matching(database, rule, Date.parse('2026-01-05T12:00:00Z'), sandbox), ['2026-01-06'])
})

eachDatabase(t, 'a dynamic list uses the time zone of its workspace', async (t, database) => {
  await addWorkspace(database, 'Pacific/Kiritimati')
  await addContacts(database, ['2026-01-05', '2026-01-06'])
  const now = Date.parse('2026-01-05T12:00:00Z')
  const rules = [{ field: 'on', operator: 'in_next_days', value: 0 }]
  await database.write(tx =>
    insertList(tx.db, {
      ...{
        id: 'l1',
        workspaceId: 'w1',
        name: 'Today',
        description: null,
        conditions: { match: 'all', rules },
      },
      ...{ type: 'dynamic', isPublic: false, doubleOptIn: false, createdAt: now, updatedAt: now },
    }),
  )
  t.same(await matching(database, { field: 'lists', operator: 'contains', value: 'Today' }, now), [
    '2026-01-06',
  ])
})

eachDatabase(t, 'a day of a rule about a timestamp begins at midnight of the zone', async (t, database) => {
  await addWorkspace(database, 'Europe/Berlin')
  // Clocks went forward on 29 March 2026 (a day of 23 hours) and back on 25 October (25 hours).
  const moments = [
    ...['2026-03-28T22:59:59Z', '2026-03-28T23:00:00Z', '2026-03-29T21:59:59Z', '2026-03-29T22:00:00Z'],
    ...['2026-10-24T21:59:59Z', '2026-10-24T22:00:00Z', '2026-10-25T22:59:59Z', '2026-10-25T23:00:00Z'],
  ]
  await addContacts(database, moments, { createdAt: Date.parse })
  const [a, b, c, d, e, f, g, h] = moments as [string, string, string, string, string, string, string, string]
  for (const field of ['created_at', 'on']) {
    const found = (operator: string, value: Rule['value'], now = 0) =>
      matching(database, { field, operator, value: value! }, now)
    t.same(await found('before', '2026-03-29'), [a], field)
    t.same(await found('after', '2026-10-26'), [], `${field}: the day begins with h`)
    t.same(await found('before', '2026-10-26'), [a, b, c, d, e, f, g], field)
    t.same(await found('before', '2026-10-25'), [a, b, c, d, e], field)
    const [spring, autumn] = [Date.parse('2026-03-29T12:00:00Z'), Date.parse('2026-10-25T12:00:00Z')]
    t.same(await found('in_next_days', 0, spring), [b, c], `${field}: 23 hours`)
    t.same(await found('in_next_days', 0, autumn), [f, g], `${field}: 25 hours`)
    t.same(await found('in_next_days', 1, autumn), [f, g, h], field)
    t.same(await found('anniversary_in_next_days', 0, spring + 365 * DAY_MS), [b, c], field)
    t.same(await found('anniversary_in_next_days', 0, autumn + 365 * DAY_MS), [f, g], field)
    t.same(await found('within_days', 1, Date.parse(d)), [a, b, c, d], `${field}: 24 hours, not days`)
  }
  t.same(await matching(database, { field: 'created_at', operator: 'gte', value: '2026-10-26' }, 0), [h])
  t.same(await matching(database, { field: 'created_at', operator: 'equals', value: '2026-10-25' }, 0), [
    f,
    g,
  ])
  t.same(await matching(database, { field: 'created_at', operator: 'not_equals', value: '2026-10-25' }, 0), [
    ...[a, b, c, d, e, h],
  ])
  t.same(await matching(database, { field: 'created_at', operator: 'equals', value: b }, 0), [b])
})

const ZONES = [
  ...['Pacific/Kiritimati', 'Pacific/Honolulu', 'Europe/Berlin', 'Asia/Kathmandu', 'America/Sao_Paulo'],
  ...['America/St_Johns', 'Australia/Lord_Howe', 'UTC'],
]
const NOWS = ['2026-03-29T00:30:00Z', '2026-10-24T22:30:00Z', '2026-12-31T23:30:00Z', '2028-02-28T12:00:00Z']
const MOMENTS = [
  ...['1961-12-31T12:00:00Z', '1988-02-29T05:00:00Z', '1990-01-01T00:00:00Z', '2018-11-04T02:30:00Z'],
  ...['2026-03-28T10:00:00Z', '2026-03-29T09:59:59Z', '2026-03-30T00:00:00Z', '2026-10-24T21:00:00Z'],
  ...['2026-10-25T10:00:00Z', '2027-01-01T09:00:00Z', '2030-12-31T14:00:00Z', '2028-02-29T23:00:00Z'],
  ...['2026-03-29', '2026-10-25', '1988-02-29', '1990-01-01', '2026-12-31'],
]

for (const zone of ZONES)
  eachDatabase(t, `${zone}: what lies within days is what a calendar there shows`, async (t, database) => {
    await addWorkspace(database, zone)
    await addContacts(database, MOMENTS)
    for (const now of NOWS.map(Date.parse))
      for (const value of [0, 1, 3, 40]) {
        const today = Date.parse(dayIn(zone, now))
        const days = Array.from({ length: value + 1 }, (_, at) => isoDay(today + at * DAY_MS))
        const dayOf = (text: string) => (text.length === 10 ? text : dayIn(zone, readMoment(text)!))
        const isYearly = (text: string) =>
          days.some(
            day => day.slice(5) === dayOf(text).slice(5) || (isShort(day) && dayOf(text).endsWith('02-29')),
          )
        const wanted = (isMet: (text: string) => boolean) => MOMENTS.filter(isMet).sort()
        t.same(
          await matching(database, { operator: 'in_next_days', value }, now),
          wanted(text => days.includes(dayOf(text))),
          `in ${value} days from ${isoDay(now)}`,
        )
        t.same(
          await matching(database, { operator: 'anniversary_in_next_days', value }, now),
          wanted(isYearly),
          `anniversary in ${value} days from ${isoDay(now)}`,
        )
      }
  })

function isoDay(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

/** 28 February of a year without a 29th. */
function isShort(day: string): boolean {
  return day.endsWith('02-28') && isoDay(Date.parse(day) + DAY_MS).endsWith('03-01')
}
