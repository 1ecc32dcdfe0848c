/**
 * Opens the delivery agent of one thread from options that can be posted to it: the SMTP agent, or the capture agent of `mta.capture`.
 *
 * Clock, sockets and DNS are opened inside the thread.
 */
import type { DeliveryAgent } from '../../queue/delivery-agent.js'
import { systemClock } from '../../world/time/clock.js'
import { openDialler } from '../../world/net/dial.js'
import { openResolver } from '../../world/dns/dns-client.js'
import { openHttpClient } from '../../world/net/fetch.js'
import { systemRandom } from '../../world/random.js'
import { egressPolicyFor } from '../../world/net/egress-policy.js'
import { systemLookup } from '../../world/dns/host-lookup.js'
import { StsPolicies } from '../routing/mta-sts.js'
import { openSmtpAgent, type SmtpAgentParts } from '../smtp-agent.js'
import { shutdownOutcome } from '../attempt-outcome.js'
import { type LinkOptions, openRenderer, type RenderParts } from '../render.js'

export type AgentOptions = CaptureOptions | SmtpOptions

interface CaptureOptions {
  readonly kind: 'capture'
  readonly hostname: string
  readonly links: LinkOptions
}

/** The plain values among the parts of the SMTP agent. */
interface SmtpOptions extends Omit<SmtpAgentParts, OpenedHere> {
  readonly kind: 'smtp'
  readonly dns: {
    /** As `ip:port`; empty: the system's. */
    readonly servers: readonly string[]
    readonly timeoutMs: number
  }
  readonly mtaSts: boolean
  /** PEM of additional certificate authorities; empty: none. */
  readonly authorities?: string
  readonly allowPrivate: boolean
}

type OpenedHere =
  | 'clock'
  | 'random'
  | 'egress'
  | 'dialler'
  | 'resolver'
  | 'systemLookup'
  | 'stsPolicies'
  | 'signingPlace'

export function openWorkerAgent(options: AgentOptions): DeliveryAgent {
  const clock = systemClock
  const random = systemRandom
  const signingPlace = 'caller'
  if (options.kind === 'capture') {
    const { hostname, links } = options
    return openCaptureAgent({ clock, hostname, links, signingPlace })
  }
  const { dns, mtaSts, allowPrivate, authorities, ...parts } = options
  const egress = egressPolicyFor({ allowPrivate })
  const resolver = openResolver({ ...dns, clock, random })
  return openSmtpAgent({
    ...parts,
    clock,
    random,
    egress,
    dialler: openDialler(clock, egress, authorities),
    resolver,
    systemLookup,
    ...(mtaSts
      ? { stsPolicies: new StsPolicies({ clock, resolver, http: openHttpClient(clock, { egress }) }) }
      : {}),
    signingPlace,
  })
}

export function openCaptureAgent(parts: RenderParts): DeliveryAgent {
  const render = openRenderer(parts)
  return {
    async deliver(job, signal) {
      const rendering = await render(job)
      if (rendering.kind !== 'rendered') return rendering
      if (signal.aborted) return shutdownOutcome()
      return {
        kind: 'delivered',
        tried: [],
        summary: 'stored in the local inbox',
        remoteMta: 'capture',
        captured: rendering.message,
      }
    },
    async close() {
      // Holds no connections.
    },
  }
}
