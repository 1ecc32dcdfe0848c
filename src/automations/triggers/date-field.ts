/**
 * Dates that contacts have: which contacts may have one of a certain day, and whether one has.
 *
 * A field is an attribute that is written as a date, or a moment that every contact has (`created_at` and its like). A date alone is
 * the day that it says; one with a time is the day that it then is by the workspace's clocks. Pure. Fails: never.
 */
import type { Contact } from '../../audience/contacts/contact.js'
import { attributeAt } from '../../audience/contacts/traits.js'
import type { Group, MomentField, Test } from '../../audience/segments/read-conditions.js'
import { readMoment } from '../../core/read-moment.js'
import { anniversary, dayAt, isoDay, type Day } from './local-days.js'

const DAY_MS = 86_400_000
/** No contact was made before. */
const FIRST_YEAR = 2_020

export interface DateConfig {
  readonly field: string
  readonly offsetDays: number
  /** `HH:MM` */
  readonly time: string
  readonly repeat: 'none' | 'yearly'
}

/** Of those that rules know, the ones a contact carries itself. */
type ContactMoment = Exclude<MomentField, 'last_purchase_at'>

const MOMENTS: Readonly<Record<ContactMoment, (contact: Contact) => number | null>> = {
  created_at: contact => contact.createdAt,
  updated_at: contact => contact.updatedAt,
  bounced_at: contact => contact.bouncedAt,
  last_opened_at: contact => contact.lastOpenedAt,
  last_clicked_at: contact => contact.lastClickedAt,
}

function momentField(field: string): ContactMoment | undefined {
  return Object.hasOwn(MOMENTS, field) ? (field as ContactMoment) : undefined
}

function attributeName(field: string): string {
  return field.trim().replace(/^attributes\./, '')
}

/** Conditions that all of them meet, and some others: what is a day elsewhere may be the day before or after here. */
export function candidatesOf({ field, repeat }: DateConfig, date: Day): Group {
  const moment = momentField(field.trim())
  const parts = moment
    ? momentRanges(moment, date, repeat === 'yearly')
    : textTests(attributeName(field), date, repeat === 'yearly')
  return { isAll: false, parts }
}

function momentRanges(field: MomentField, date: Day, isYearly: boolean): Group[] {
  const year = new Date(date).getUTCFullYear()
  const years = isYearly
    ? Array.from({ length: Math.max(0, year - FIRST_YEAR) + 1 }, (_, back) => year - back)
    : [year]
  return years.map(one => {
    const day = isYearly ? anniversary(date, one) : date
    const from: Test = { kind: 'moment', field, order: 'gte', value: day - 2 * DAY_MS }
    const to: Test = { kind: 'moment', field, order: 'lt', value: day + 3 * DAY_MS }
    return { isAll: true, parts: [from, to] }
  })
}

function textTests(attribute: string, date: Day, isYearly: boolean): Test[] {
  const days = [date - DAY_MS, date, date + DAY_MS].map(isoDay)
  const of = { attribute }
  if (!isYearly)
    return days.map(day => ({
      kind: 'text',
      of,
      how: 'starts_with',
      values: [day],
      numbers: [],
      isNot: false,
    }))
  const endings = new Set(days.map(day => day.slice(4)))
  if (endings.has('-02-28')) endings.add('-02-29')
  return [...endings].map(day => ({
    kind: 'text',
    of,
    how: 'contains',
    values: [day],
    numbers: [],
    isNot: false,
  }))
}

/** Whether the contact's date, or its anniversary, is that day. */
export function isDayOf(
  { field, repeat }: DateConfig,
  date: Day,
  contact: Contact,
  timezone: string,
): boolean {
  const own = ownDay(field.trim(), contact, timezone)
  if (own === undefined) return false
  if (repeat === 'none') return own === date
  const year = new Date(date).getUTCFullYear()
  return own <= date && anniversary(own, year) === date
}

function ownDay(field: string, contact: Contact, timezone: string): Day | undefined {
  const moment = momentField(field)
  if (moment) {
    const at = MOMENTS[moment](contact)
    return at === null ? undefined : dayAt(at, timezone)
  }
  const value = attributeAt(contact.attributes, attributeName(field))
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\d/.test(value)) return undefined
  const at = readMoment(value)
  return at === undefined || /^\d{4}-\d\d-\d\d$/.test(value.trim()) ? at : dayAt(at, timezone)
}
