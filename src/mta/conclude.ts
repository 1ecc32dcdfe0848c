/**
 * From how the tries ended to the Outcome: the one place that holds the error policy of outgoing mail.
 *
 * Called by `smtp-agent.ts`. Pure. What a reply means is `mail/classify/classify.ts`, which try decides `deciding-try.ts`; here is what
 * a break means, and what is for good. Standards: RFC 5321 §4.2.1, §4.5.4, §5.1; RFC 3463.
 */
import { given } from '../core/given.js'
import { classifyReply } from '../mail/classify/classify.js'
import { SUBTYPES, type Subtype } from '../mail/classify/classify-subtypes.js'
import type { Bounced, Classification, Deferred, HostTried, Outcome, SmtpReply } from '../mail/outcome.js'
import {
  decidingTry,
  endingsOf,
  isDefiniteNo,
  isForGood,
  isStsFailure,
  isVerdict,
  type TriesAtEndpoint,
} from './deciding-try.js'
import type { Routing } from './routing/choose-endpoints.js'
import type { BreakKind, SmtpEnd } from './smtp-end.js'
import { STS_FAILURE } from './routing/routing-verdict.js'
import { replyText } from '../mail/reply-text.js'

/** One round through the hosts of a domain. */
export interface Attempt {
  /** For each address dialled, in order. Empty only where the shutdown came before the first. */
  readonly endpoints: readonly TriesAtEndpoint[]
  /** Hosts that must not be tried, for the trace. */
  readonly passedOver: readonly HostTried[]
  /** Whether the domain has hosts that were neither tried nor passed over: their turn had not come, or DNS could not tell. */
  readonly isPartial: boolean
}

export function conclude(attempt: Attempt): Outcome {
  const tried = [...attempt.passedOver, ...attempt.endpoints.flat().map(({ host }) => host)]
  const deciding = decidingTry(attempt.endpoints)
  if (deciding === undefined) return concludeShutdown()
  const { host, end } = deciding
  const facts = { tried, remoteMta: host.host }
  if (isStsFailure(host)) return concludeStsFailure(facts, host, end)
  const isFinal = isVerdict(end) || isHeardOut(attempt)
  if (end.reply !== undefined) return concludeReply(facts, end, end.reply, isFinal)
  const { kind, text } = end.broken ?? { kind: 'protocol', text: 'nothing was said' }
  const summary = `${where(host)}: ${text}`
  const status = LACKING_EXTENSION_STATUS[kind]
  if (status !== undefined && isFinal)
    return {
      kind: 'bounced',
      ...facts,
      summary,
      status,
      ...classifyBreak(kind, end),
      permanence: 'permanent',
    }
  return { kind: 'deferred', ...facts, summary, ...classifyBreak(kind, end), permanence: 'transient' }
}

/** Of every host there is a definite no: what one host cannot do, or says of us, another one may not mind. */
function isHeardOut({ endpoints, passedOver, isPartial }: Attempt): boolean {
  if (isPartial || passedOver.length > 0) return false
  const endings = endingsOf(endpoints)
  const refusing = new Set(endings.filter(({ end }) => isDefiniteNo(end)).map(({ host }) => host.host))
  return endings.every(({ host }) => refusing.has(host.host))
}

/** What every outcome of a try tells: all hosts, and the one that decided. */
interface Facts {
  readonly tried: readonly HostTried[]
  readonly remoteMta: string
}

function concludeStsFailure(facts: Facts, host: HostTried, { reply }: SmtpEnd): Deferred {
  return {
    kind: 'deferred',
    ...facts,
    ...given({ reply }),
    summary: `${where(host)}: MTA-STS demands TLS with a right certificate: ${host.sts?.reason ?? 'failed'}`,
    ...STS_FAILURE,
  }
}

/** @param isFinal whether no other host can say anything else */
function concludeReply(facts: Facts, end: SmtpEnd, reply: SmtpReply, isFinal: boolean): Outcome {
  const summary = `${facts.remoteMta} answered ${replyText(reply)}`
  if (end.accepted) return { kind: 'delivered', ...facts, reply, summary }
  const classification = classifyReply(reply, end.stage)
  if (isFinal && isForGood(end.stage, reply)) {
    const { cause, scope, permanence, subtype } = classification
    return {
      kind: 'bounced',
      ...facts,
      reply,
      summary,
      cause,
      scope,
      permanence,
      subtype,
      status: statusOf(reply),
    }
  }
  return { kind: 'deferred', ...facts, reply, summary, ...classification, permanence: 'transient' }
}

/**
 * What no server without the extension can take: RFC 6531 §3.5 (X.6.7), RFC 6152 §3 (X.6.3), RFC 1870 §6.1 (X.3.4). Never
 * the recipient's fault, whose next server may have it.
 */
const LACKING_EXTENSION_STATUS: Partial<Record<BreakKind, string>> = {
  needs_smtputf8: '5.6.7',
  needs_8bitmime: '5.6.3',
  too_big: '5.3.4',
}

/** Breaks that are for us to mend; all the others are the way's or the server's, and may mend themselves. */
function classifyBreak(kind: BreakKind, { stage }: SmtpEnd): Classification {
  const subtype = stage === 'final_dot' ? 'reply_lost' : BREAK_SUBTYPES[kind]
  if (kind === 'aborted') return { cause: 'transient', scope: 'source', permanence: 'transient', subtype }
  if (isKnownSubtype(subtype)) return { ...SUBTYPES[subtype], subtype }
  const cause = kind === 'auth_unavailable' ? 'config' : 'transient'
  return { cause, scope: 'domain', permanence: 'transient', subtype }
}

/** Those that replies can have as well; the others are of the session itself. */
function isKnownSubtype(subtype: string): subtype is Subtype {
  return subtype in SUBTYPES
}

const BREAK_SUBTYPES: Readonly<Record<BreakKind, string>> = {
  unreachable: 'host_unreachable',
  timeout: 'timeout',
  closed: 'connection_lost',
  protocol: 'protocol_violation',
  tls: 'tls_failed',
  tls_unavailable: 'tls_unavailable',
  tls_untrusted: 'tls_untrusted',
  auth_unavailable: 'auth_unavailable',
  aborted: 'shutdown',
  needs_smtputf8: 'smtputf8_unsupported',
  needs_8bitmime: '8bitmime_unsupported',
  too_big: 'message_too_big',
}

/** Codes for servers that give none, where the three digits say enough (RFC 5321 §4.2.3, RFC 7504, RFC 7505). */
const STATUS_BY_CODE: Readonly<Record<number, string>> = {
  500: '5.5.2',
  501: '5.5.4',
  502: '5.5.1',
  503: '5.5.1',
  504: '5.5.4',
  521: '5.3.2',
  530: '5.7.0',
  534: '5.7.9',
  535: '5.7.8',
  551: '5.1.6',
  552: '5.2.2',
  553: '5.1.3',
  555: '5.5.4',
  556: '5.1.10',
}

function statusOf({ code, enhanced }: SmtpReply): string {
  return enhanced?.startsWith('5.') === true ? enhanced : (STATUS_BY_CODE[code] ?? '5.0.0')
}

/** A domain that routing gave no endpoint for. */
export function concludeRouting(routing: Exclude<Routing, { kind: 'endpoints' }>): Bounced | Deferred {
  const { summary, classification } = routing
  return routing.kind === 'never'
    ? { kind: 'bounced', tried: [], summary, status: routing.status, ...classification }
    : { kind: 'deferred', tried: routing.passedOver ?? [], summary, ...classification }
}

export function concludeShutdown(): Deferred {
  return {
    kind: 'deferred',
    tried: [],
    summary: 'given up because this server is shutting down',
    ...classifyBreak('aborted', { accepted: false, stage: 'connect' }),
  }
}

function where({ host, address }: HostTried): string {
  return address === undefined || address === host ? host : `${host} [${address}]`
}
