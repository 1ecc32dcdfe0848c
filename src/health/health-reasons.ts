/** Why an appliance is not quite well: codes that stay what they are, for monitors. Told by `/health` and by the metrics. Pure. */

const WEIGHTS = {
  /** The files of the database were moved or deleted under the server. */
  database_gone: 'failing',
  /** Writes fail: a damaged file, a disk that is full to the last octet. */
  database_failing: 'failing',
  /** No write came through for seconds: another process has it locked, or the disk is overloaded. */
  database_busy: 'failing',
  /** Below `limits.disk_reserve`: new mail is refused, what was accepted is delivered. */
  disk_low: 'refusing',
  /** No name server answers. */
  dns_failing: 'degraded',
  /** Mail is due, nobody rests, and no attempt comes to an end. */
  queue_stuck: 'degraded',
  /** A restored copy, which sends nothing until it is released. */
  queue_held: 'degraded',
  certificate_ending: 'degraded',
  consumer_set_aside: 'degraded',
  /** Somebody's receiver is at fault, and he was told: the appliance itself is well. */
  webhook_disabled: 'notice',
} as const

export type HealthReasonCode = keyof typeof WEIGHTS

/**
 * `failing`: nothing can be stored; `refusing`: new mail is refused; `degraded`: mail is taken, and somebody should look;
 * `notice`: all is well here.
 */
export type Weight = (typeof WEIGHTS)[HealthReasonCode]

export const HEALTH_REASON_CODES = Object.keys(WEIGHTS) as HealthReasonCode[]

export interface HealthReason {
  readonly code: HealthReasonCode
  /** One sentence, for the operator. */
  readonly text: string
}

export function weightOf({ code }: HealthReason): Weight {
  return WEIGHTS[code]
}
