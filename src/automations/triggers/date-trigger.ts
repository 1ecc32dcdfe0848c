/**
 * The trigger `date`: starts runs on, before or after a date of the contact, once or every year, at a time in the workspace's zone.
 *
 * Runs every minute. Progress through a day is stored in the transaction that starts the runs, so a crash loses and repeats nobody.
 * After downtime the last MAX_CATCH_UP_DAYS days are made up for. A contact whose date is set after that day's trigger time waits for
 * the next occurrence. A failed scan is logged and repeated a minute later.
 */
import { findAudience } from '../../audience/audience-store.js'
import type { Contact } from '../../audience/contacts/contact.js'
import { listMatchingContacts } from '../../audience/segments/audience-query-store.js'
import { describeError } from '../../core/errors.js'
import { pauseFor } from '../../world/time/clock.js'
import { type FlowParts, findLiveWorkspace } from '../automation-parts.js'
import type { Automation } from '../flows/automation.js'
import { findActiveByTrigger, findAutomationBySeq, saveScanState } from '../flows/automation-store.js'
import { enter } from '../runs/enter.js'
import { ENTER_BATCH_SIZE, chunks, rangesFrom } from './scan-audience.js'
import { attributeAt } from '../../audience/contacts/compared-attributes.js'
import type { Group, MomentField, Test } from '../../audience/segments/read-conditions.js'
import { readDateOrMoment, type DateOrMoment } from '../../core/moments.js'
import { anniversary, DAY_MS, dayAt, isoDay, momentOf, type Day } from '../../world/time/zone-days.js'

const MAX_CATCH_UP_DAYS = 2
const RANGE_PAUSE_MS = 2
/** No contact is older. */
const FIRST_YEAR = 2_020

interface DateConfig {
  readonly field: string
  readonly offsetDays: number
  /** `HH:MM` */
  readonly time: string
  readonly repeat: 'none' | 'yearly'
}

/** Stored as JSON with the automation. */
interface DateScan {
  /** The last completed day. */
  readonly done: Day
  /** Number of the next contact on the following day. */
  readonly next: number
}

export class DateTrigger {
  private readonly parts: FlowParts

  constructor(parts: FlowParts) {
    this.parts = parts
  }

  async run(stopping: AbortSignal): Promise<void> {
    const { database, log } = this.parts
    for (const { automation, scan } of await findActiveByTrigger(database.reader, 'date')) {
      if (stopping.aborted) return
      try {
        await this.scan(automation, scan === null ? undefined : (JSON.parse(scan) as DateScan), stopping)
      } catch (error) {
        const { id } = automation
        log.error('date trigger scan failed', {
          automation: id,
          error: describeError(error),
        })
      }
    }
  }

  private async scan(
    automation: Automation,
    scan: DateScan | undefined,
    stopping: AbortSignal,
  ): Promise<void> {
    const { clock } = this.parts
    const workspace = await findLiveWorkspace(this.parts, automation.workspaceId)
    if (!workspace) return
    const { timezone } = workspace
    const { time } = automation.triggerConfig as unknown as DateConfig
    const activatedAt = automation.activatedAt ?? clock.now()
    const now = clock.now()
    const today = dayAt(now, timezone)
    let state = scan ?? { done: dayAt(activatedAt, timezone) - DAY_MS, next: 0 }
    const oldest = today - MAX_CATCH_UP_DAYS * DAY_MS
    if (state.done + DAY_MS < oldest) state = { done: oldest - DAY_MS, next: 0 }
    for (let day = state.done + DAY_MS; day <= today && !stopping.aborted; day += DAY_MS) {
      const at = momentOf(day, time, timezone)
      if (at > now) return
      if (at >= activatedAt && !(await this.scanDay(automation, day, state.next, timezone, stopping))) return
      state = { done: day, next: 0 }
      await this.parts.database.write(tx => saveScanState(tx.db, automation.seq, JSON.stringify(state)))
    }
  }

  /** @returns false if interrupted */
  private async scanDay(
    automation: Automation,
    day: Day,
    from: number,
    timezone: string,
    stopping: AbortSignal,
  ): Promise<boolean> {
    const { database, clock } = this.parts
    const { workspaceId } = automation
    const config = automation.triggerConfig as unknown as DateConfig
    const date = day - config.offsetDays * DAY_MS
    const audience = await findAudience(database.reader, workspaceId)
    if (!audience) return true
    const group = candidateConditions(config, date)
    for (const range of rangesFrom(audience, from)) {
      if (stopping.aborted) return false
      const scope = { workspaceId, now: clock.now() }
      const found = await listMatchingContacts(database.slowReader, group, scope, range)
      const matching = found.filter(contact => isOnDay(config, date, contact, timezone))
      for (const some of chunks(matching, ENTER_BATCH_SIZE))
        if (!(await this.enterContacts(automation, day, date, some))) return false
      await pauseFor(RANGE_PAUSE_MS)
    }
    return true
  }

  /** @returns false if the automation is no longer active */
  private enterContacts(
    automation: Automation,
    day: Day,
    date: Day,
    contacts: readonly Contact[],
  ): Promise<boolean> {
    const { field } = automation.triggerConfig as unknown as DateConfig
    const next = (contacts.at(-1)?.seq ?? 0) + 1
    return this.parts.database.write(
      async tx => {
        const current = await findAutomationBySeq(tx.db, automation.seq)
        if (current?.status !== 'active' || current.deletedAt !== null) return false
        const triggerData = { field, date: isoDay(date) }
        const entrants = contacts.map(({ id }) => ({ contactId: id, triggerData }))
        await enter(this.parts, tx, automation, entrants, { triggerType: 'date' })
        await saveScanState(tx.db, automation.seq, JSON.stringify({ done: day - DAY_MS, next }))
        return true
      },
      { isLong: true },
    )
  }
}

/** Moments that are stored with the contact itself. */
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

/** Conditions for a superset of the contacts: in another zone the date may be a day earlier or later. */
function candidateConditions({ field, repeat }: DateConfig, date: Day): Group {
  const moment = momentField(field.trim())
  const parts = moment
    ? momentRanges(moment, date, repeat === 'yearly')
    : textTests(attributeName(field), date, repeat === 'yearly')
  return { isAll: false, parts }
}

function momentRanges(field: MomentField, date: Day, isYearly: boolean): Group[] {
  const year = new Date(date).getUTCFullYear()
  const years = isYearly
    ? Array.from({ length: Math.max(0, year - FIRST_YEAR) + 1 }, (_, age) => year - age)
    : [year]
  return years.map(one => {
    const day = isYearly ? anniversary(date, one) : date
    const from: Test = { kind: 'moment', field, order: 'gte', value: momentAt(day - 2 * DAY_MS) }
    const to: Test = { kind: 'moment', field, order: 'lt', value: momentAt(day + 3 * DAY_MS) }
    return { isAll: true, parts: [from, to] }
  })
}

function momentAt(at: number): DateOrMoment {
  return { at, isDay: false }
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

/** Whether the contact's date, or for yearly triggers its anniversary, is `date`. */
function isOnDay({ field, repeat }: DateConfig, date: Day, contact: Contact, timezone: string): boolean {
  const day = dateOf(field.trim(), contact, timezone)
  if (day === undefined) return false
  if (repeat === 'none') return day === date
  const year = new Date(date).getUTCFullYear()
  return day <= date && anniversary(day, year) === date
}

/** A date without a time is that day; a moment is the day it falls on in the zone. */
function dateOf(field: string, contact: Contact, timezone: string): Day | undefined {
  const moment = momentField(field)
  if (moment) {
    const at = MOMENTS[moment](contact)
    return at === null ? undefined : dayAt(at, timezone)
  }
  const value = attributeAt(contact.attributes, attributeName(field))
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\d/.test(value)) return undefined
  const date = readDateOrMoment(value)
  return date && (date.isDay ? date.at : dayAt(date.at, timezone))
}
