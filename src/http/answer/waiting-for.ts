/** `waiting_for` of answers. */
import Type, { type Static } from 'typebox'
import { isoTime } from '../../core/moments.js'
import { WAIT_REASONS, type Waiting } from '../../core/waiting.js'
import { Moment, orNull } from './answer-fields.js'

export const WaitingFor = Type.Object(
  {
    reason: Type.Enum([...WAIT_REASONS], { description: 'More reasons may be added.' }),
    until: Type.Optional(
      Moment({ description: 'When it may go on, always later than now; absent if that is not known.' }),
    ),
    limit: Type.Optional(
      Type.Integer({
        description: 'The limit it waits for: emails per hour or day, or per minute with `site_rate`.',
      }),
    ),
    detail: Type.String({ description: 'In English, for people: what it waits for and what to do.' }),
  },
  { title: 'WaitingFor' },
)
export type ShownWaiting = Static<typeof WaitingFor>

export const WaitingForOrNull = (description: string) =>
  orNull(WaitingFor, { description: `${description} Null if it does not wait.` })

export function waitingToApi(waiting: Waiting | undefined): ShownWaiting | null {
  if (!waiting) return null
  const { reason, until, limit, detail } = waiting
  return {
    reason,
    ...(until === undefined ? {} : { until: isoTime(until) }),
    ...(limit === undefined ? {} : { limit: Math.round(limit) }),
    detail,
  }
}
