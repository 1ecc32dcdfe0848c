/**
 * The delivery agent of one thread, from options that can cross over to it: clock, sockets and DNS are opened there.
 *
 * Called by `worker-main.ts`; the options are made by the composition root. Reads no configuration, knows no database.
 */
import type { DeliveryAgent } from '../../queue/delivery-agent.js'
import { systemClock } from '../../world/time/clock.js'
import { openDialler } from '../../world/net/dial.js'
import { openResolver } from '../../world/dns/dns-client.js'
import { openHttpClient } from '../../world/net/fetch.js'
import { systemRandom } from '../../world/random.js'
import { openReach } from '../../world/net/reach.js'
import { systemLookup } from '../../world/dns/system-names.js'
import { openCaptureAgent } from '../capture-agent.js'
import type { LinkOptions } from '../mail-links.js'
import { StsPolicies } from '../routing/mta-sts.js'
import { openSmtpAgent, type SmtpAgentParts } from '../smtp-agent.js'

export type AgentOptions = CaptureOptions | SmtpOptions

/** The local inbox takes everything. */
export interface CaptureOptions {
  readonly kind: 'capture'
  readonly hostname: string
  readonly links: LinkOptions
}

/** What of the SMTP agent is plain value. */
export interface SmtpOptions extends Omit<SmtpAgentParts, OpenedHere> {
  readonly kind: 'smtp'
  readonly dns: {
    /** As `ip:port`; empty: the system's. */
    readonly servers: readonly string[]
    readonly timeoutMs: number
  }
  /** Whether the MTA-STS policies of recipient domains are honoured. */
  readonly mtaSts: boolean
  /** PEM of certification authorities that are believed beside the usual ones; empty for none. */
  readonly authorities?: string
  /** Whether DNS may send mail to networks close by. */
  readonly allowPrivate: boolean
}

type OpenedHere =
  'clock' | 'random' | 'reach' | 'dialler' | 'resolver' | 'systemLookup' | 'stsPolicies' | 'signingPlace'

export function openWorkerAgent(options: AgentOptions): DeliveryAgent {
  const clock = systemClock
  const random = systemRandom
  const signingPlace = 'caller'
  if (options.kind === 'capture') {
    const { hostname, links } = options
    return openCaptureAgent({ clock, hostname, links, signingPlace })
  }
  const { dns, mtaSts, allowPrivate, authorities, ...parts } = options
  const reach = openReach({ allowPrivate })
  const resolver = openResolver({ ...dns, clock, random })
  return openSmtpAgent({
    ...parts,
    clock,
    random,
    reach,
    dialler: openDialler(clock, reach, authorities),
    resolver,
    systemLookup,
    ...(mtaSts
      ? { stsPolicies: new StsPolicies({ clock, resolver, http: openHttpClient(clock, { reach }) }) }
      : {}),
    signingPlace,
  })
}
