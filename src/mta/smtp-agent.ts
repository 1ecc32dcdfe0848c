/**
 * The SMTP delivery agent: job in, Outcome out.
 *
 * One per delivery thread. Has no database access and never logs; everything it reports is in the Outcome. Never rejects.
 * Standards: RFC 5321 §5.1 (hosts in order), §4.5.4.
 */
import { given } from '../core/given.js'
import { setMaxListeners } from 'node:events'
import { describeError } from '../core/errors.js'
import type { HostTried, Outcome } from '../mail/outcome.js'
import type { DeliveryAgent, DeliveryJob } from '../queue/delivery-agent.js'
import {
  isDecisive,
  isSequenceOrSyntaxCode,
  isSessionError,
  shutdownOutcome,
  toOutcome,
  toRoutingOutcome,
  type TriesAtEndpoint,
  type Try,
} from './attempt-outcome.js'
import { type Endpoint, stsFacts } from './routing/endpoint.js'
import { openRenderer, type RenderParts } from './render.js'
import { findRoute, type RouterParts } from './routing/route.js'
import { SessionPool, type OpenedSession, type SessionPoolParts } from './smtp/session-pool.js'
import type { SmtpResult } from './smtp-result.js'
import { transact, type Envelope } from './smtp/smtp-transaction.js'

export type SmtpAgentParts = SessionPoolParts & RouterParts & RenderParts & SourcePools

interface SourcePools {
  readonly sourcePools?: readonly { readonly workspace: string; readonly addresses: readonly string[] }[]
}

/** One message and its envelope, offered to each host in turn. */
interface Transmission {
  readonly envelope: Envelope
  /** As rendered: CRLF line endings, no dot-stuffing. */
  readonly message: Buffer
  readonly signal: AbortSignal
}

interface TimedTransmission extends Transmission {
  /** Deadlines on the monotonic clock, ms: for opening the session, and for the envelope to be accepted. */
  readonly limits: { readonly opening: number; readonly envelope: number }
}

/** Addresses dialled in one attempt; RFC 5321 §5.1 requires at least two. */
const MAX_ADDRESSES_TRIED = 10
/**
 * Hosts that may reply 4xx before the attempt ends. Further hosts usually reply the same, and a site that is deferring mail should not be
 * asked once per address.
 */
const MAX_TEMPORARY_REPLIES = 3

export function openSmtpAgent(parts: SmtpAgentParts): DeliveryAgent {
  const render = openRenderer(parts)
  const opener = new SessionPool(parts)
  const pools = new Map(parts.sourcePools?.map(({ workspace, addresses }) => [workspace, addresses]))

  async function deliver(job: DeliveryJob, signal: AbortSignal): Promise<Outcome> {
    const rendering = await render(job)
    if (rendering.kind !== 'rendered') return rendering
    // DNS and MTA-STS lookups can take long.
    const routing = await untilAborted(findRoute(parts, domainOf(job.recipient)), signal)
    if (routing === undefined) return shutdownOutcome()
    if (routing.kind !== 'endpoints') return toRoutingOutcome(routing)
    const { needsSmtpUtf8 } = rendering
    const envelope = { sender: job.envelopeSender, recipient: job.recipient, needsSmtpUtf8 }
    const offer = { envelope, message: rendering.message, signal }
    const endpoints = withSources(routing.endpoints, pools.get(job.workspaceId))
    const attempt = await tryHosts(endpoints, offer)
    const hosts = new Set(endpoints.slice(attempt.length).map(({ host }) => host))
    for (const { host } of attempt.flat()) hosts.delete(host.host)
    return toOutcome({
      endpoints: attempt,
      skipped: routing.skipped,
      isPartial: routing.isPartial || hosts.size > 0,
    })
  }

  /** Tries hosts in order until one result is decisive. */
  async function tryHosts(endpoints: readonly Endpoint[], offer: Transmission): Promise<TriesAtEndpoint[]> {
    const attempt: TriesAtEndpoint[] = []
    let temporaryReplies = 0
    const { clock, timeouts } = parts
    const deadline = clock.monotonic() + timeouts.attemptMs
    const candidates = endpoints.slice(0, MAX_ADDRESSES_TRIED)
    for (const [index, endpoint] of candidates.entries()) {
      const leftMs = deadline - clock.monotonic()
      if (leftMs <= 0) break
      // Splits the remaining time evenly, so that a silent host leaves time for the others.
      const opening = deadline - leftMs + leftMs / (candidates.length - index)
      const tries = await tryHost(endpoint, { ...offer, limits: { opening, envelope: deadline } })
      attempt.push(tries)
      const result = tries.at(-1)?.result
      if (result === undefined || isDecisive(result)) break
      if (result.reply !== undefined && result.reply.code < 500) temporaryReplies += 1
      if (temporaryReplies === MAX_TEMPORARY_REPLIES) break
    }
    return attempt
  }

  /** Tries one address. There is more than one try if STARTTLS is broken there or a pooled connection turned out to be dead. */
  async function tryHost(endpoint: Endpoint, offer: TimedTransmission): Promise<Try[]> {
    const limits = { deadline: offer.limits.opening, signal: offer.signal }
    const tries = await sendOver(() => opener.open(endpoint, limits), endpoint, offer)
    const last = tries.at(-1)
    if (last === undefined || !wasStale(last)) return tries
    return [...tries, ...(await sendOver(() => opener.dial(endpoint, limits), endpoint, offer))]
  }

  async function sendOver(
    open: () => Promise<OpenedSession>,
    endpoint: Endpoint,
    { envelope, message, limits, signal }: TimedTransmission,
  ): Promise<Try[]> {
    const startedAt = parts.clock.monotonic()
    const { session, reused, failures } = await open()
    const tries = failures.map(({ result, ...facts }) =>
      makeTry(endpoint, result, { ...facts, reused: false }),
    )
    if (session === undefined) return tries
    const openedAt = parts.clock.monotonic()
    const result = await transact(session, envelope, message, {
      timeouts: parts.timeouts,
      clock: parts.clock,
      deadline: limits.envelope,
      reset: reused,
      signal,
    })
    // A server that lost track of the dialogue would answer the next message the same way.
    if (isSessionError(result)) opener.discard(session)
    else opener.release(session)
    const failedMs = failures.reduce((sum, failure) => sum + failure.durationMs, 0)
    const endedAt = parts.clock.monotonic()
    const times = { durationMs: endedAt - startedAt - failedMs, transmissionMs: endedAt - openedAt }
    const tls = session.tls === undefined ? {} : { tls: session.tls }
    return [...tries, makeTry(endpoint, result, { ...tls, ...times, reused })]
  }

  return {
    deliver(job, signal) {
      // All deliveries listen on one shutdown signal, so many listeners are not a leak.
      setMaxListeners(0, signal)
      return deliver(job, signal).catch(internalErrorOutcome)
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

/**
 * A pooled connection that the server had dropped, or whose dialogue it had lost track of, before it said anything about this message
 * (RFC 5321 §3.8). Only before the message was transmitted, so that a second try cannot deliver it twice.
 */
function wasStale({ host, result }: Try): boolean {
  const { stage, reply, failure } = result
  if (!host.reused || result.accepted) return false
  if (reply !== undefined)
    return (
      isSessionError(result) ||
      (stage === 'mail' && (reply.code === 421 || isSequenceOrSyntaxCode(reply.code)))
    )
  if (failure === undefined) return false
  if (stage === 'mail') return ['closed', 'timeout', 'protocol'].includes(failure.kind)
  return (stage === 'rcpt' || stage === 'data') && ['closed', 'protocol'].includes(failure.kind)
}

function makeTry(
  { host, address, port, tls, tlsSource, sts }: Endpoint,
  result: SmtpResult,
  facts: Pick<HostTried, 'tls' | 'durationMs' | 'transmissionMs' | 'reused'>,
): Try {
  const { stage, reply, failure } = result
  const tried: HostTried = {
    host,
    address,
    port,
    tlsPolicy: tls,
    tlsPolicySource: tlsSource,
    ...(sts === undefined ? {} : { sts: stsFacts(sts, result, facts.tls) }),
    stage,
    ...facts,
    ...given({ reply }),
    ...(failure === undefined ? {} : { error: failure.text }),
  }
  return { host: tried, result }
}

/** Resolves with the result, or with undefined once the signal aborts. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const giveUp = () => resolve(undefined)
    signal.addEventListener('abort', giveUp, { once: true })
    if (signal.aborted) giveUp()
    work.finally(() => signal.removeEventListener('abort', giveUp)).then(resolve, reject)
  })
}

/** A bug must neither lose the message nor stop the queue. */
function internalErrorOutcome(fault: unknown): Outcome {
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

/** A quoted local part may contain `@`; the domain cannot. */
function domainOf(recipient: string): string {
  return recipient.slice(recipient.lastIndexOf('@') + 1)
}
