/**
 * How the appliance does: puts together what each part says of itself.
 *
 * Opened by the composition root; asked by `/health` and by the metrics, which see the same. Asking is cheap however often: the
 * database is tried once a second at most (`db/health.ts`), counts are made once in ten seconds. Fails: never; what cannot be found
 * out is left out, and a database that cannot be read is a reason itself.
 */
import { formatDuration } from '../core/units.js'
import type { CheckHealth } from '../db/health.js'
import type { Clock } from '../world/time/clock.js'
import { countedRarely } from './counted-rarely.js'
import type { HealthReason } from './health-reasons.js'

export interface HealthParts {
  readonly clock: Clock
  readonly check: CheckHealth
  readonly countSetAside: () => Promise<number>
  readonly countDisabledWebhooks: () => Promise<number>
  /** Why no name server answers; undefined where one does, or nobody has asked. */
  readonly dnsTrouble: () => string | undefined
  /** For how long due mail has waited while nothing moves, ms. */
  readonly standstillMs: () => number
  /** A restored copy that nobody has released yet. */
  readonly isHeld: () => boolean
  /** Of the certificate that clients are shown, in words; undefined where nothing is wrong. */
  readonly certificateFault: () => string | undefined
}

export interface Judgement {
  /** The worst first. */
  readonly reasons: readonly HealthReason[]
  /** Undefined: not known. */
  readonly setAside: number | undefined
  readonly disabledWebhooks: number | undefined
}

export type JudgeHealth = () => Promise<Judgement>

/** Longer than an attempt may take (`mta.timeouts.attempt`, and the final dot after it). */
const STANDSTILL_MS = 25 * 60_000

export function openHealth(parts: HealthParts): JudgeHealth {
  const { clock } = parts
  const countSetAside = countedRarely(clock, parts.countSetAside)
  const countDisabled = countedRarely(clock, parts.countDisabledWebhooks)
  return async () => {
    const fault = await parts.check()
    const [setAside, disabledWebhooks] = fault ? [] : [await countSetAside(), await countDisabled()]
    const reasons: HealthReason[] = [
      ...(fault ? [{ code: fault.code, text: fault.reason }] : []),
      ...deliveryReasons(parts),
      ...certificateReasons(parts),
      ...countReasons(setAside, disabledWebhooks),
    ]
    return { reasons, setAside, disabledWebhooks }
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
      text: `mail is due, and no attempt has come to an end for ${formatDuration(inMinutes(stoodMs))}`,
    })
  if (isHeld())
    reasons.push({
      code: 'queue_held',
      text: 'a restored copy: nothing is sent until `postroad queue release --all`',
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

function countReasons(setAside = 0, disabledWebhooks = 0): HealthReason[] {
  const reasons: HealthReason[] = []
  if (setAside > 0)
    reasons.push({
      code: 'consumer_set_aside',
      text: `${setAside} events could not be taken by who follows them; see \`postroad event list\``,
    })
  if (disabledWebhooks > 0)
    reasons.push({
      code: 'webhook_disabled',
      text: `${disabledWebhooks} webhooks were disabled in the last seven days; the activity log names them`,
    })
  return reasons
}
