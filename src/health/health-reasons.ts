/** Health problems and their stable codes, reported by `/health` and by the metrics. Pure. */

const WEIGHTS = {
  /** The database files were moved or deleted while the server was running. */
  database_gone: 'failing',
  /** Writes fail: the file is damaged or the disk is completely full. */
  database_failing: 'failing',
  /** No write succeeded for seconds: another process holds the lock, or the disk is overloaded. */
  database_busy: 'failing',
  /** Below `limits.disk_reserve`: new mail is refused, accepted mail is still delivered. */
  disk_low: 'refusing',
  /** No name server answers. */
  dns_failing: 'degraded',
  /** Mail is due, no back-off explains the wait, and no attempt completes. */
  queue_stuck: 'degraded',
  /** A restored copy; sends nothing until released. */
  queue_held: 'degraded',
  /** No node that takes work has the role `mta`. */
  no_delivery_node: 'degraded',
  /** No node that takes work has the role `scheduler`. */
  no_scheduler_node: 'degraded',
  certificate_ending: 'degraded',
  consumer_set_aside: 'degraded',
  /** A customer's endpoint failed and its owner was notified; the service itself is healthy. */
  webhook_disabled: 'notice',
  /** A customer's RSS or JSON feed could not be sent; the service itself is healthy. */
  feed_failing: 'notice',
} as const

export type HealthReasonCode = keyof typeof WEIGHTS

/**
 * `failing`: nothing can be stored; `refusing`: new mail is refused; `degraded`: mail is accepted, but the operator should look;
 * `notice`: the service is healthy.
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
