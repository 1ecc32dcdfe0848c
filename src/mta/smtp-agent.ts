/**
 * The delivery agent that speaks SMTP: job in, Outcome out.
 *
 * Opened once per delivery thread; called by the queue through `queue/delivery-agent.ts`. Knows no database and never logs:
 * all it has to say is in the Outcome. Standards: RFC 5321 §5.1 (hosts in order), §4.5.4. Fails: never rejects.
 */
import { given } from '../core/given.js'
import { setMaxListeners } from 'node:events'
import { describeError } from '../core/errors.js'
import type { HostTried, Outcome } from '../mail/outcome.js'
import type { DeliveryAgent, DeliveryJob } from '../queue/delivery-agent.js'
import { conclude, concludeRouting, concludeShutdown } from './conclude.js'
import { isVerdict, type TriesAtEndpoint, type Try } from './deciding-try.js'
import type { Endpoint } from './routing/endpoint.js'
import { openRenderer, type RenderParts } from './render.js'
import { findRoute, type RouterParts } from './routing/route.js'
import { SessionOpener, type OpenedSession, type OpenerParts } from './smtp/session-opener.js'
import type { SmtpEnd } from './smtp-end.js'
import { transact, type Envelope } from './smtp/smtp-transaction.js'
import { stsFacts } from './routing/tls-demand.js'

export type SmtpAgentParts = OpenerParts & RouterParts & RenderParts & SourcePools

export interface SourcePools {
  /** Workspaces with addresses of their own to send from. */
  readonly sourcePools?: readonly { readonly workspace: string; readonly addresses: readonly string[] }[]
}

/** What is offered to one host after the other. */
interface Offer {
  readonly envelope: Envelope
  /** Octets as rendered: CRLF line ends, dots not doubled yet. */
  readonly message: Buffer
  readonly signal: AbortSignal
}

interface TimedOffer extends Offer {
  /** When a session has to stand, and when sender and recipient have to be taken; on the monotonic clock, ms. */
  readonly limits: { readonly opening: number; readonly envelope: number }
}

/** Addresses that are dialled in one attempt; RFC 5321 §5.1 wants at least two. */
const MOST_TRIES = 10
/**
 * Hosts that may answer "later" before the attempt ends: the next one mostly says the same, and a site that asks for
 * patience is not helped by being asked once per address.
 */
const MOST_TEMPORARY_REPLIES = 3

export function openSmtpAgent(parts: SmtpAgentParts): DeliveryAgent {
  const render = openRenderer(parts)
  const opener = new SessionOpener(parts)
  const pools = new Map(parts.sourcePools?.map(({ workspace, addresses }) => [workspace, addresses]))

  async function deliver(job: DeliveryJob, signal: AbortSignal): Promise<Outcome> {
    const rendering = await render(job)
    if (rendering.kind !== 'rendered') return rendering
    // DNS may be silent, and a policy host as well.
    const routing = await unlessAborted(findRoute(parts, domainOf(job.recipient)), signal)
    if (routing === undefined) return concludeShutdown()
    if (routing.kind !== 'endpoints') return concludeRouting(routing)
    const { needsSmtpUtf8 } = rendering
    const envelope = { sender: job.envelopeSender, recipient: job.recipient, needsSmtpUtf8 }
    const offer = { envelope, message: rendering.message, signal }
    const endpoints = withSources(routing.endpoints, pools.get(job.workspaceId))
    const attempt = await offerInOrder(endpoints, offer)
    const hosts = new Set(endpoints.slice(attempt.length).map(({ host }) => host))
    for (const { host } of attempt.flat()) hosts.delete(host.host)
    return conclude({
      endpoints: attempt,
      passedOver: routing.passedOver,
      isPartial: routing.isPartial || hosts.size > 0,
    })
  }

  /** Goes from host to host until one gives a verdict. */
  async function offerInOrder(endpoints: readonly Endpoint[], offer: Offer): Promise<TriesAtEndpoint[]> {
    const attempt: TriesAtEndpoint[] = []
    let temporaryReplies = 0
    const { clock, timeouts } = parts
    const deadline = clock.monotonic() + timeouts.attemptMs
    const candidates = endpoints.slice(0, MOST_TRIES)
    for (const [index, endpoint] of candidates.entries()) {
      const leftMs = deadline - clock.monotonic()
      if (leftMs <= 0) break
      // One host that answers nothing leaves the others their time.
      const opening = deadline - leftMs + leftMs / (candidates.length - index)
      const tries = await offerTo(endpoint, { ...offer, limits: { opening, envelope: deadline } })
      attempt.push(tries)
      const end = tries.at(-1)?.end
      if (end === undefined || isVerdict(end)) break
      if (end.reply !== undefined && end.reply.code < 500) temporaryReplies += 1
      if (temporaryReplies === MOST_TEMPORARY_REPLIES) break
    }
    return attempt
  }

  /** One host; more than one try where TLS is broken there or an idle connection was dead. */
  async function offerTo(endpoint: Endpoint, offer: TimedOffer): Promise<Try[]> {
    const limits = { deadline: offer.limits.opening, signal: offer.signal }
    const tries = await offerOver(() => opener.open(endpoint, limits), endpoint, offer)
    const last = tries.at(-1)
    if (last === undefined || !wasStale(last)) return tries
    return [...tries, ...(await offerOver(() => opener.dial(endpoint, limits), endpoint, offer))]
  }

  async function offerOver(
    open: () => Promise<OpenedSession>,
    endpoint: Endpoint,
    { envelope, message, limits, signal }: TimedOffer,
  ): Promise<Try[]> {
    const startedAt = parts.clock.monotonic()
    const { session, reused, failures } = await open()
    const tries = failures.map(({ end, ...facts }) => makeTry(endpoint, end, { ...facts, reused: false }))
    if (session === undefined) return tries
    const openedAt = parts.clock.monotonic()
    const end = await transact(session, envelope, message, {
      timeouts: parts.timeouts,
      clock: parts.clock,
      deadline: limits.envelope,
      reset: reused,
      signal,
    })
    opener.give(session)
    const failedMs = failures.reduce((sum, failure) => sum + failure.durationMs, 0)
    const endedAt = parts.clock.monotonic()
    const times = { durationMs: endedAt - startedAt - failedMs, transmissionMs: endedAt - openedAt }
    const tls = session.tls === undefined ? {} : { tls: session.tls }
    return [...tries, makeTry(endpoint, end, { ...tls, ...times, reused })]
  }

  return {
    deliver(job, signal) {
      // One shutdown signal serves every delivery at once; that many listeners are no leak.
      setMaxListeners(0, signal)
      return deliver(job, signal).catch(concludeFault)
    },
    close: () => opener.close(),
  }
}

function withSources(
  endpoints: readonly Endpoint[],
  sources: readonly string[] | undefined,
): readonly Endpoint[] {
  return sources === undefined ? endpoints : endpoints.map(endpoint => ({ ...endpoint, sources }))
}

/** An idle connection that the server had given up: nothing was said about the message yet (RFC 5321 §3.8). */
function wasStale({ host, end }: Try): boolean {
  if (!host.reused || end.stage !== 'mail' || end.accepted) return false
  if (end.reply !== undefined) return end.reply.code === 421
  return end.broken?.kind === 'closed' || end.broken?.kind === 'timeout' || end.broken?.kind === 'protocol'
}

function makeTry(
  { host, address, port, tls, tlsSource, sts }: Endpoint,
  end: SmtpEnd,
  facts: Pick<HostTried, 'tls' | 'durationMs' | 'transmissionMs' | 'reused'>,
): Try {
  const { stage, reply, broken } = end
  const tried: HostTried = {
    host,
    address,
    port,
    tlsPolicy: tls,
    tlsPolicySource: tlsSource,
    ...(sts === undefined ? {} : { sts: stsFacts(sts, end, facts.tls) }),
    stage,
    ...facts,
    ...given({ reply }),
    ...(broken === undefined ? {} : { error: broken.text }),
  }
  return { host: tried, end }
}

/** What comes of it, or undefined as soon as the signal aborts; then nobody waits for it any more. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const giveUp = () => resolve(undefined)
    signal.addEventListener('abort', giveUp, { once: true })
    if (signal.aborted) giveUp()
    work.finally(() => signal.removeEventListener('abort', giveUp)).then(resolve, reject)
  })
}

/** A mistake of ours must neither lose the message nor stop the queue. */
function concludeFault(fault: unknown): Outcome {
  return {
    kind: 'deferred',
    tried: [],
    summary: `internal error: ${describeError(fault)}`,
    cause: 'config',
    scope: 'source',
    permanence: 'transient',
    subtype: 'internal_error',
  }
}

/** The local part may hold an `@` in quotes, the domain may not. */
function domainOf(recipient: string): string {
  return recipient.slice(recipient.lastIndexOf('@') + 1)
}
