/** The step `delay`: some time passes. In a sandbox none does, so that its runs come to their end. */
import { choice, number, type ConfigOf } from './config-fields.js'
import type { StepType } from './step-type.js'

const UNITS = { minutes: 60_000, hours: 3_600_000, days: 86_400_000, weeks: 604_800_000 } as const
/** Ten years of minutes. */
const MOST = 5_256_000
const LONGEST_MS = 3_650 * UNITS.days

const fields = {
  duration: number(1, 0, MOST),
  unit: choice('days', ['minutes', 'hours', 'days', 'weeks']),
}

export const delay: StepType = {
  name: 'delay',
  fields,
  waits: true,
  findFault: () => Promise.resolve(undefined),
  prepare: () =>
    Promise.resolve(({ step, run, now }) => {
      const { duration, unit } = step.config as ConfigOf<typeof fields>
      const lengthMs = Math.min(LONGEST_MS, Math.max(1, Math.round(duration * UNITS[unit])))
      const until = now + (run.isSandbox ? 0 : lengthMs)
      return Promise.resolve({ kind: 'wait', until, detail: { until: new Date(until).toISOString() } })
    }),
  goOn: () => ({ kind: 'done' }),
}
