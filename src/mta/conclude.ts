/**
 * From how the tries ended to the Outcome: the one place that holds the error policy of outgoing mail.
 *
 * Called by `smtp-agent.ts`. Pure. What a reply means is `mail/classify.ts`; here is what a break means, what is final and
 * what the next host may still change. Standards: RFC 5321 §4.2.1, §4.5.4, §5.1; RFC 3463.
 */
import { classifyReply } from '../mail/classify.js'
import type { Bounced, Classification, Deferred, HostTried, Outcome, SmtpReply } from '../mail/outcome.js'
import type { Routing } from './route.js'
import type { BreakKind, SmtpEnd } from './smtp-end.js'
import { STS_FAILURE } from './routing-verdict.js'
import { replyText } from './smtp-reply.js'

/** One host and how it ended there. */
export interface Try {
  readonly host: HostTried
  readonly end: SmtpEnd
}

/** Whether another host must not, or need not, be asked after this. */
export function isVerdict({ accepted, stage, reply, broken }: SmtpEnd): boolean {
  if (accepted) return true
  // The message may have been taken: offering it elsewhere at once would make the duplicate certain.
  if (broken !== undefined) return stage === 'final_dot' || FINAL_BREAKS.has(broken.kind)
  // A 5xx to the message or its envelope holds for the domain; one before that is about this host (RFC 5321 §5.1 lets the
  // client go on to the next).
  return isAboutMessage(stage) && reply !== undefined && reply.code >= 500
}

const FINAL_BREAKS: ReadonlySet<BreakKind> = new Set(['aborted', 'needs_smtputf8', 'needs_8bitmime'])

function isAboutMessage(stage: SmtpEnd['stage']): boolean {
  return stage === 'mail' || stage === 'rcpt' || stage === 'data' || stage === 'final_dot'
}

/**
 * @param tries in order; the last one decides. Empty only where the shutdown came before the first.
 * @param passedOver hosts that were not tried, for the trace
 */
export function conclude(tries: readonly Try[], passedOver: readonly HostTried[]): Outcome {
  const tried = [...passedOver, ...tries.map(({ host }) => host)]
  const last = tries.at(-1)
  if (last === undefined) return concludeShutdown()
  const { host, end } = last
  if (isStsFailure(host)) return concludeStsFailure(tried, host, end)
  if (end.reply !== undefined) return concludeReply(tried, host, end, end.reply)
  const { kind, text } = end.broken ?? { kind: 'protocol', text: 'nothing was said' }
  const summary = `${where(host)}: ${text}`
  const refusal = UNFIT_MESSAGE[kind]
  if (refusal !== undefined) return { kind: 'bounced', tried, summary, ...refusal }
  return { kind: 'deferred', tried, summary, ...classifyBreak(kind, end) }
}

/** Under `enforce` a try that fails the policy ends before any mail is offered. */
function isStsFailure({ sts }: HostTried): boolean {
  return sts?.mode === 'enforce' && sts.result === 'failed'
}

function concludeStsFailure(tried: readonly HostTried[], host: HostTried, { reply }: SmtpEnd): Deferred {
  return {
    kind: 'deferred',
    tried,
    ...(reply === undefined ? {} : { reply }),
    summary: `${where(host)}: MTA-STS demands TLS with a right certificate: ${host.sts?.reason ?? 'failed'}`,
    ...STS_FAILURE,
  }
}

function concludeReply(
  tried: readonly HostTried[],
  host: HostTried,
  end: SmtpEnd,
  reply: SmtpReply,
): Outcome {
  const summary = `${host.host} answered ${replyText(reply)}`
  if (end.accepted) return { kind: 'delivered', tried, reply, summary, remoteMta: host.host }
  const classification = classifyReply(reply, end.stage)
  if (isForGood(end, reply, classification)) {
    const { cause, scope, permanence, subtype } = classification
    return {
      kind: 'bounced',
      tried,
      reply,
      summary,
      cause,
      scope,
      permanence,
      subtype,
      status: statusOf(reply),
    }
  }
  return { kind: 'deferred', tried, reply, summary, ...classification, permanence: 'transient' }
}

/**
 * RFC 5321 §4.2.1: 4yz is never for good; 5yz is, unless its text shows that it means "later". Refused TLS or a wrong
 * password is between the operator and a relay, and no recipient's loss: mail waits until it is mended.
 */
function isForGood({ stage }: SmtpEnd, { code }: SmtpReply, { permanence }: Classification): boolean {
  return code >= 500 && permanence !== 'transient' && stage !== 'starttls' && stage !== 'auth'
}

/** What no server without the extension can take: RFC 6531 §3.5 (X.6.7), RFC 6152 §3 (X.6.3). */
const UNFIT_MESSAGE: Partial<Record<BreakKind, Classification & { status: string }>> = {
  needs_smtputf8: {
    cause: 'recipient',
    scope: 'address',
    permanence: 'permanent',
    subtype: 'smtputf8_unsupported',
    status: '5.6.7',
  },
  needs_8bitmime: {
    cause: 'content',
    scope: 'domain',
    permanence: 'permanent',
    subtype: '8bitmime_unsupported',
    status: '5.6.3',
  },
}

/** Breaks that are for us to mend; all the others are the way's or the server's, and may mend themselves. */
function classifyBreak(kind: BreakKind, { stage }: SmtpEnd): Classification {
  const subtype = stage === 'final_dot' ? 'reply_lost' : BREAK_SUBTYPES[kind]
  if (kind === 'aborted') return { cause: 'transient', scope: 'source', permanence: 'transient', subtype }
  const cause = kind === 'auth_unavailable' ? 'config' : 'transient'
  return { cause, scope: 'domain', permanence: 'transient', subtype }
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
