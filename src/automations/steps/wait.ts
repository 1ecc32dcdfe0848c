/** Step types in which time passes: `delay` and `wait_for_event`. */
import { findMessages } from '../../messages/message-store.js'
import type { Queries } from '../../db/database.js'
import type { Run } from '../runs/run.js'
import { choice, number, reference, type ConfigOf } from './config-fields.js'
import type { StepOutcome, StepType } from './step-type.js'
import { missing } from '../flows/flow-fault.js'

const UNITS = { minutes: 60_000, hours: 3_600_000, days: 86_400_000, weeks: 604_800_000 } as const
/** Ten years of minutes. */
const MAX_DURATION = 5_256_000
const MAX_DELAY_MS = 3_650 * UNITS.days

const delayFields = {
  duration: number(1, 0, MAX_DURATION),
  unit: choice('days', ['minutes', 'hours', 'days', 'weeks']),
}

/** Skipped in a sandbox, so that sandbox runs finish at once. */
export const delay: StepType = {
  name: 'delay',
  fields: delayFields,
  waits: true,
  findFault: () => Promise.resolve(undefined),
  prepare: () =>
    Promise.resolve(({ step, run, now }) => {
      const { duration, unit } = step.config as ConfigOf<typeof delayFields>
      const lengthMs = Math.min(MAX_DELAY_MS, Math.max(1, Math.round(duration * UNITS[unit])))
      const until = now + (run.isSandbox ? 0 : lengthMs)
      return Promise.resolve({ kind: 'wait', until, detail: { until: new Date(until).toISOString() } })
    }),
  resume: () => ({ kind: 'done' }),
}

const MAX_TIMEOUT_DAYS = 3_650
const SANDBOX_TIMEOUT_MS = 60_000

const waitFields = {
  eventType: choice('email_opened', ['email_opened', 'email_clicked', 'purchase', 'page_viewed']),
  timeoutDays: number(7, 0, MAX_TIMEOUT_DAYS),
  timeoutAction: choice('continue', ['continue', 'skip', 'branch']),
  timeoutBranch: reference(),
}

type WaitConfig = ConfigOf<typeof waitFields>

/**
 * Opens and clicks must be of the message the run sent last, and count even if they happened before the step; if the run has sent
 * none, those of any message count. Opens and clicks by machines are ignored.
 */
export const waitForEvent: StepType = {
  name: 'wait_for_event',
  fields: waitFields,
  branches: ['timeoutBranch'],
  waits: true,
  findFault: config => {
    const { timeoutAction, timeoutBranch } = config as WaitConfig
    return Promise.resolve(
      timeoutAction === 'branch' && timeoutBranch === null ? missing('timeoutBranch') : undefined,
    )
  },
  prepare: () =>
    Promise.resolve(async ({ tx, step, run, now }): Promise<StepOutcome> => {
      const { eventType: type, timeoutDays } = step.config as WaitConfig
      const isAboutMail = type === 'email_opened' || type === 'email_clicked'
      if (isAboutMail && (await hasAlreadyHappened(tx.db, run, type)))
        return { kind: 'done', path: 'event', detail: { event: type } }
      const lengthMs = Math.max(1, Math.round(timeoutDays * UNITS.days))
      const until = now + (run.isSandbox ? Math.min(lengthMs, SANDBOX_TIMEOUT_MS) : lengthMs)
      const messageId = isAboutMail ? run.lastMessageId : null
      return {
        kind: 'wait',
        until,
        event: { type, messageId },
        detail: { event: type, until: new Date(until).toISOString() },
      }
    }),
  resume({ step }, reason) {
    const { eventType, timeoutAction, timeoutBranch } = step.config as WaitConfig
    if (reason === 'event') return { kind: 'done', path: 'event', detail: { event: eventType } }
    const detail = { event: null, timeout_action: timeoutAction }
    const path = 'timeout'
    if (timeoutAction === 'skip') return { kind: 'done', path, skipCount: 1, detail }
    if (timeoutAction === 'branch' && timeoutBranch !== null)
      return { kind: 'done', path, goTo: timeoutBranch, detail }
    return { kind: 'done', path, detail }
  },
}

async function hasAlreadyHappened(
  db: Queries,
  { lastMessageId }: Run,
  type: 'email_opened' | 'email_clicked',
): Promise<boolean> {
  if (lastMessageId === null) return false
  const [message] = await findMessages(db, [lastMessageId])
  const at = type === 'email_opened' ? message?.openedAt : message?.clickedAt
  return typeof at === 'number'
}
