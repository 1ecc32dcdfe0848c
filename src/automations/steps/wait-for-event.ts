/**
 * The step `wait_for_event`: the run goes on when the contact does something, or when that has been waited for long enough.
 *
 * Openings and clicks are those of the mail that the run sent last, and what has happened to it before counts as well; a run that
 * has sent none waits for those of any mail. Machines that open mail do not count. In a sandbox the time is a minute at most, so that
 * its runs come to their end.
 */
import { findMessages } from '../../messages/message-store.js'
import type { Queries } from '../../db/database.js'
import type { Run } from '../runs/run.js'
import { choice, number, reference, type ConfigOf } from './config-fields.js'
import type { StepOutcome, StepType } from './step-type.js'

const DAY_MS = 86_400_000
const LONGEST_DAYS = 3_650
const SANDBOX_MS = 60_000

const fields = {
  eventType: choice('email_opened', ['email_opened', 'email_clicked', 'purchase', 'page_viewed']),
  timeoutDays: number(7, 0, LONGEST_DAYS),
  timeoutAction: choice('continue', ['continue', 'skip', 'branch']),
  timeoutBranch: reference(),
}

type WaitConfig = ConfigOf<typeof fields>

export const waitForEvent: StepType = {
  name: 'wait_for_event',
  fields,
  branches: ['timeoutBranch'],
  waits: true,
  findFault: config => {
    const { timeoutAction, timeoutBranch } = config as WaitConfig
    return Promise.resolve(
      timeoutAction === 'branch' && timeoutBranch === null ? 'has no timeoutBranch' : undefined,
    )
  },
  prepare: () =>
    Promise.resolve(async ({ tx, step, run, now }): Promise<StepOutcome> => {
      const { eventType: type, timeoutDays } = step.config as WaitConfig
      const isAboutMail = type === 'email_opened' || type === 'email_clicked'
      if (isAboutMail && (await hasHappened(tx.db, run, type)))
        return { kind: 'done', detail: { event: type } }
      const lengthMs = Math.max(1, Math.round(timeoutDays * DAY_MS))
      const until = now + (run.isSandbox ? Math.min(lengthMs, SANDBOX_MS) : lengthMs)
      const messageId = isAboutMail ? run.lastMessageId : null
      return {
        kind: 'wait',
        until,
        event: { type, messageId },
        detail: { event: type, until: new Date(until).toISOString() },
      }
    }),
  goOn({ step }, how) {
    const { eventType, timeoutAction, timeoutBranch } = step.config as WaitConfig
    if (how === 'event') return { kind: 'done', detail: { event: eventType } }
    const detail = { event: null, timeout_action: timeoutAction }
    if (timeoutAction === 'skip') return { kind: 'done', pass: 1, detail }
    if (timeoutAction === 'branch' && timeoutBranch !== null)
      return { kind: 'done', goTo: timeoutBranch, detail }
    return { kind: 'done', detail }
  },
}

async function hasHappened(
  db: Queries,
  { lastMessageId }: Run,
  type: 'email_opened' | 'email_clicked',
): Promise<boolean> {
  if (lastMessageId === null) return false
  const [message] = await findMessages(db, [lastMessageId])
  const at = type === 'email_opened' ? message?.openedAt : message?.clickedAt
  return typeof at === 'number'
}
