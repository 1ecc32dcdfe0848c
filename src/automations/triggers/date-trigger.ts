/**
 * The trigger `date`: starts runs on a date that contacts have, or so many days before or after it, at a time of day by the
 * workspace's clocks; once, or every year.
 *
 * A job of every minute. How far a day was gone through is kept with the runs that it started, so that no crash loses or repeats
 * anybody; days that were slept through are made up for, two of them at most. Who gets the date after its time has come waits for
 * the next one. Fails: one automation's look does, which is logged; a minute later it goes on.
 */
import { findAudience } from '../../audience/audience-store.js'
import type { Contact } from '../../audience/contacts/contact.js'
import { listMatchingContacts } from '../../audience/segments/match-store.js'
import { describeError } from '../../core/errors.js'
import { pauseFor } from '../../world/time/clock.js'
import type { FlowParts } from '../automation-parts.js'
import type { Automation } from '../flows/automation.js'
import { findActiveByTrigger, findAutomationBySeq, keepScan } from '../flows/automation-store.js'
import { findLiveWorkspace } from '../live-workspace.js'
import { enter } from '../runs/enter.js'
import { candidatesOf, isDayOf, type DateConfig } from './date-field.js'
import { dayAt, isoDay, momentOf, type Day } from './local-days.js'
import { ENTRANTS_AT_ONCE, inGroups, piecesFrom } from './scan-audience.js'

const DAY_MS = 86_400_000
/** Days before this one that are made up for. */
const MOST_MISSED = 2
const REST_MS = 2

interface DateScan {
  /** The last one that is over with. */
  readonly done: Day
  /** Of the day after it: number of the contact that is next. */
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
        await this.look(automation, scan === null ? undefined : (JSON.parse(scan) as DateScan), stopping)
      } catch (error) {
        const { id } = automation
        log.error('date trigger scan failed', {
          automation: id,
          error: describeError(error),
        })
      }
    }
  }

  private async look(
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
    const oldest = today - MOST_MISSED * DAY_MS
    if (state.done + DAY_MS < oldest) state = { done: oldest - DAY_MS, next: 0 }
    for (let day = state.done + DAY_MS; day <= today && !stopping.aborted; day += DAY_MS) {
      const at = momentOf(day, time, timezone)
      if (at > now) return
      if (at >= activatedAt && !(await this.goThrough(automation, day, state.next, timezone, stopping)))
        return
      state = { done: day, next: 0 }
      await this.parts.database.write(tx => keepScan(tx.db, automation.seq, JSON.stringify(state)))
    }
  }

  /** @returns false where it was broken off */
  private async goThrough(
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
    const group = candidatesOf(config, date)
    for (const range of piecesFrom(audience, from)) {
      if (stopping.aborted) return false
      const asking = { workspaceId, now: clock.now() }
      const found = await listMatchingContacts(database.slowReader, group, asking, range)
      const meant = found.filter(contact => isDayOf(config, date, contact, timezone))
      for (const some of inGroups(meant, ENTRANTS_AT_ONCE))
        if (!(await this.take(automation, day, date, some))) return false
      await pauseFor(REST_MS)
    }
    return true
  }

  /** @returns false where the automation starts nothing any more */
  private take(automation: Automation, day: Day, date: Day, contacts: readonly Contact[]): Promise<boolean> {
    const { field } = automation.triggerConfig as unknown as DateConfig
    const next = (contacts.at(-1)?.seq ?? 0) + 1
    return this.parts.database.write(
      async tx => {
        const now = await findAutomationBySeq(tx.db, automation.seq)
        if (now?.status !== 'active' || now.deletedAt !== null) return false
        const triggerData = { field, date: isoDay(date) }
        const entrants = contacts.map(({ id }) => ({ contactId: id, triggerData }))
        await enter(this.parts, tx, automation, entrants, { triggerType: 'date' })
        await keepScan(tx.db, automation.seq, JSON.stringify({ done: day - DAY_MS, next }))
        return true
      },
      { isLong: true },
    )
  }
}
