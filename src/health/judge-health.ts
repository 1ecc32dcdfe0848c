/**
 * Collects health problems from all parts of the service.
 *
 * Used by `/health` and by the metrics, which therefore agree. Cheap to call: the database is checked at most once a second
 * (`db/health.ts`), counts are cached for ten seconds. Fails: never; an unreadable database is a reason, and unknown counts are left out.
 */
import type { Role } from '../cluster/roles.js'
import { formatDuration } from '../core/units.js'
import type { CheckHealth } from '../db/health.js'
import type { Clock } from '../world/time/clock.js'
import type { HealthReason } from './health-reasons.js'

export interface HealthParts {
  readonly clock: Clock
  readonly check: CheckHealth
  readonly countSetAside: () => Promise<number>
  readonly countDisabledWebhooks: () => Promise<number>
  /** Feeds that failed several times in a row. */
  readonly countFailingFeeds: () => Promise<number>
  /** Why no name server answers; undefined if one does, or none was queried. */
  readonly dnsTrouble: () => string | undefined
  /** How long due mail has waited without any progress, ms. */
  readonly standstillMs: () => number
  /** A restored copy that was not released yet. */
  readonly isHeld: () => boolean
  /** Roles that no node takes work of. */
  readonly missingRoles: () => readonly Role[]
  /** Events that the slowest consumer has not processed; undefined if another node processes them. */
  readonly consumerLag: () => Promise<number | undefined>
  /** Problem of the certificate in use, in words. */
  readonly certificateFault: () => string | undefined
}

export interface Judgement {
  /** Most severe first. */
  readonly reasons: readonly HealthReason[]
  /** Undefined: unknown. */
  readonly setAside: number | undefined
  readonly disabledWebhooks: number | undefined
  readonly consumerLag: number | undefined
}

export type JudgeHealth = () => Promise<Judgement>

/** Longer than any attempt can take (`mta.timeouts.attempt` plus the wait for the reply to the final dot). */
const STANDSTILL_MS = 25 * 60_000

export function openHealth(parts: HealthParts): JudgeHealth {
  const { clock } = parts
  const countSetAside = countedRarely(clock, parts.countSetAside)
  const countDisabled = countedRarely(clock, parts.countDisabledWebhooks)
  const countFailing = countedRarely(clock, parts.countFailingFeeds)
  return async () => {
    const fault = await parts.check()
    const [setAside, disabledWebhooks, failingFeeds] = fault
      ? []
      : [await countSetAside(), await countDisabled(), await countFailing()]
    const reasons: HealthReason[] = [
      ...(fault ? [{ code: fault.code, text: fault.reason }] : []),
      ...deliveryReasons(parts),
      ...roleReasons(parts),
      ...certificateReasons(parts),
      ...countReasons(setAside, disabledWebhooks, failingFeeds),
    ]
    const consumerLag = fault ? undefined : await parts.consumerLag().catch(() => undefined)
    return { reasons, setAside, disabledWebhooks, consumerLag }
  }
}

function deliveryReasons({ dnsTrouble, standstillMs, isHeld }: HealthParts): HealthReason[] {
  const reasons: HealthReason[] = []
  const trouble = dnsTrouble()
  if (trouble !== undefined)
    reasons.push({ code: 'dns_failing', text: `no name server answers (dns.servers): ${trouble}` })
  const stoodMs = standstillMs()
  if (stoodMs >= STANDSTILL_MS)
    reasons.push({
      code: 'queue_stuck',
      text: `mail is due but no delivery attempt has completed for ${formatDuration(inMinutes(stoodMs))}`,
    })
  if (isHeld())
    reasons.push({
      code: 'queue_held',
      text: 'a restored copy: nothing is sent until `postroad queue release --all`',
    })
  return reasons
}

function roleReasons({ missingRoles }: HealthParts): HealthReason[] {
  const missing = missingRoles()
  const reasons: HealthReason[] = []
  if (missing.includes('mta'))
    reasons.push({
      code: 'no_delivery_node',
      text: 'no node delivers, so mail waits: start or resume one with the role mta (`postroad nodes`)',
    })
  if (missing.includes('scheduler'))
    reasons.push({
      code: 'no_scheduler_node',
      text: 'no node does the background work, so campaigns, webhooks and inbound mail wait: start or resume one with the role scheduler (`postroad nodes`)',
    })
  return reasons
}

function inMinutes(ms: number): number {
  return Math.floor(ms / 60_000) * 60_000
}

function certificateReasons({ certificateFault }: HealthParts): HealthReason[] {
  const fault = certificateFault()
  return fault === undefined ? [] : [{ code: 'certificate_ending', text: `${fault}; renew it` }]
}

function countReasons(setAside = 0, disabledWebhooks = 0, failingFeeds = 0): HealthReason[] {
  const reasons: HealthReason[] = []
  if (setAside > 0)
    reasons.push({
      code: 'consumer_set_aside',
      text: `${setAside} events could not be processed and were set aside; see \`postroad event list\``,
    })
  if (disabledWebhooks > 0)
    reasons.push({
      code: 'webhook_disabled',
      text: `${disabledWebhooks} webhooks were disabled in the last seven days; see the activity log`,
    })
  if (failingFeeds > 0)
    reasons.push({
      code: 'feed_failing',
      text: `${failingFeeds} RSS or JSON feeds could not be sent four times in a row; see the activity log`,
    })
  return reasons
}

const COUNT_HOLDS_MS = 10_000

/** Caches a count. @returns undefined if the database cannot be read; the database check reports that itself */
function countedRarely(clock: Clock, count: () => Promise<number>): () => Promise<number | undefined> {
  let counted: { readonly at: number; readonly count: Promise<number | undefined> } | undefined
  return () => {
    const now = clock.monotonic()
    if (!counted || now - counted.at >= COUNT_HOLDS_MS)
      counted = { at: now, count: count().catch(() => undefined) }
    return counted.count
  }
}
