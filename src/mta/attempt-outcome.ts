/**
 * Turns the results of an attempt into an Outcome: the error policy for outgoing mail.
 *
 * Pure. `mail/classify/classify.ts` decides what a reply means; this file decides what a failed connection means, which of several hosts
 * has the last word, and which failures are permanent. If the primary defers the message and the backup is unreachable, the result is
 * "deferred by the primary": the host that said most about the message wins.
 * Standards: RFC 5321 §4.2.1, §4.5.4, §5.1; RFC 3463.
 */
import { given } from '../core/given.js'
import { classifyReply } from '../mail/classify/classify.js'
import { type Subtype, SUBTYPES } from '../mail/classify/classify-subtypes.js'
import {
  type Bounced,
  type Classification,
  type Deferred,
  formatReply,
  type HostTried,
  type Outcome,
  type SmtpReply,
  type Stage,
} from '../mail/outcome.js'
import { type Routing, STS_FAILURE } from './routing/choose-endpoints.js'
import type { FailureKind, SmtpResult } from './smtp-result.js'

export interface DeliveryAttempt {
  /** One entry per address dialled, in order. Empty only if the shutdown came first. */
  readonly endpoints: readonly TriesAtEndpoint[]
  /** Hosts that policy excluded, for the trace. */
  readonly skipped: readonly HostTried[]
  /** Whether some hosts of the domain were not tried, because a limit was reached or DNS did not answer. */
  readonly isPartial: boolean
}

export function toOutcome(attempt: DeliveryAttempt): Outcome {
  const tried = [...attempt.skipped, ...attempt.endpoints.flat().map(({ host }) => host)]
  const decisive = decisiveTry(attempt.endpoints)
  if (decisive === undefined) return shutdownOutcome()
  const { host, result } = decisive
  const common = { tried, remoteMta: host.host }
  if (isStsFailure(host)) return stsFailureOutcome(common, host, result)
  const isFinal = isDecisive(result) || hasEveryHostRefused(attempt)
  if (result.reply !== undefined) return replyOutcome(common, result, result.reply, isFinal)
  const { kind, text } = result.failure ?? { kind: 'protocol', text: 'no reply' }
  const summary = `${hostLabel(host)}: ${text}`
  const status = MISSING_EXTENSION_STATUS[kind]
  if (status !== undefined && isFinal)
    return {
      kind: 'bounced',
      ...common,
      summary,
      status,
      ...classifyFailure(kind, result),
      permanence: 'permanent',
    }
  return { kind: 'deferred', ...common, summary, ...classifyFailure(kind, result), permanence: 'transient' }
}

/** Whether every host of the domain refused permanently. A limitation of one host, or its opinion of us, may not apply to the next. */
function hasEveryHostRefused({ endpoints, skipped, isPartial }: DeliveryAttempt): boolean {
  if (isPartial || skipped.length > 0) return false
  const tries = finalTries(endpoints)
  const refusingHosts = new Set(
    tries.filter(({ result }) => isPermanentRefusal(result)).map(({ host }) => host.host),
  )
  return tries.every(({ host }) => refusingHosts.has(host.host))
}

interface CommonFields {
  readonly tried: readonly HostTried[]
  readonly remoteMta: string
}

function stsFailureOutcome(common: CommonFields, host: HostTried, { reply }: SmtpResult): Deferred {
  return {
    kind: 'deferred',
    ...common,
    ...given({ reply }),
    summary: `${hostLabel(host)}: MTA-STS requires TLS with a valid certificate: ${host.sts?.reason ?? 'failed'}`,
    ...STS_FAILURE,
  }
}

/** @param isFinal whether no other host could change the result */
function replyOutcome(common: CommonFields, result: SmtpResult, reply: SmtpReply, isFinal: boolean): Outcome {
  const summary = replySummary(common.remoteMta, result, reply)
  if (result.accepted) return { kind: 'delivered', ...common, reply, summary }
  const classification = classifyReply(reply, result.stage)
  if (isFinal && isPermanentReply(result.stage, reply)) {
    const { cause, scope, permanence, subtype } = classification
    return {
      kind: 'bounced',
      ...common,
      reply,
      summary,
      cause,
      scope,
      permanence,
      subtype,
      status: statusOf(reply),
    }
  }
  return { kind: 'deferred', ...common, reply, summary, ...classification, permanence: 'transient' }
}

/** Stored as the last error and shown in the trace, so a failure that is not about the recipient says so ahead of the server's words. */
function replySummary(remoteMta: string, result: SmtpResult, reply: SmtpReply): string {
  const text = formatReply(reply)
  if (isSessionError(result))
    return `${remoteMta} lost track of the SMTP session, which says nothing about the recipient: ${text}`
  const command = reply.code >= 500 ? refusedCommand(result.stage, reply) : undefined
  if (command !== undefined)
    return `${remoteMta} refused this server ${command}, which says nothing about the recipient: ${text}`
  return `${remoteMta} answered ${text}`
}

/** The command at which a server refused this server, if that is what the reply means. */
function refusedCommand(stage: Stage, reply: SmtpReply): string | undefined {
  if (isAboutMessage(stage) && !isAboutConnection(stage, reply)) return undefined
  return COMMANDS[stage]
}

const COMMANDS: Partial<Record<Stage, string>> = {
  connect: 'at the greeting',
  greeting: 'at the greeting',
  ehlo: 'at EHLO',
  starttls: 'at STARTTLS',
  auth: 'at AUTH',
  mail: 'at MAIL',
  rcpt: 'at RCPT',
  data: 'at DATA',
}

/**
 * The message needs an extension the server lacks: RFC 6531 §3.5 (X.6.7), RFC 6152 §3 (X.6.3), RFC 1870 §6.1 (X.3.4). Never counted against
 * the recipient, whose next server may offer it.
 */
const MISSING_EXTENSION_STATUS: Partial<Record<FailureKind, string>> = {
  needs_smtputf8: '5.6.7',
  needs_8bitmime: '5.6.3',
  too_big: '5.3.4',
}

function classifyFailure(kind: FailureKind, { stage }: SmtpResult): Classification {
  const subtype = stage === 'final_dot' ? 'reply_lost' : FAILURE_SUBTYPES[kind]
  if (kind === 'aborted') return { cause: 'transient', scope: 'source', permanence: 'transient', subtype }
  if (isKnownSubtype(subtype)) return { ...SUBTYPES[subtype], subtype }
  const cause = kind === 'auth_unavailable' ? 'config' : 'transient'
  return { cause, scope: 'domain', permanence: 'transient', subtype }
}

/** Subtypes that replies can have too; the others describe the connection. */
function isKnownSubtype(subtype: string): subtype is Subtype {
  return subtype in SUBTYPES
}

const FAILURE_SUBTYPES: Readonly<Record<FailureKind, string>> = {
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

/** For servers that send no enhanced code, where the reply code alone is specific enough (RFC 5321 §4.2.3, RFC 7504, RFC 7505). */
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

export function toRoutingOutcome(routing: Exclude<Routing, { kind: 'endpoints' }>): Bounced | Deferred {
  const { summary, classification } = routing
  return routing.kind === 'undeliverable'
    ? { kind: 'bounced', tried: [], summary, status: routing.status, ...classification }
    : { kind: 'deferred', tried: routing.skipped ?? [], summary, ...classification }
}

export function shutdownOutcome(): Deferred {
  return {
    kind: 'deferred',
    tried: [],
    summary: 'aborted because this server is shutting down',
    ...classifyFailure('aborted', { accepted: false, stage: 'connect' }),
  }
}

function hostLabel({ host, address }: HostTried): string {
  return address === undefined || address === host ? host : `${host} [${address}]`
}

export interface Try {
  readonly host: HostTried
  readonly result: SmtpResult
}

/**
 * The tries at one address, in order. There is more than one if a pooled connection was dead or STARTTLS failed; the last one gives the
 * result, the others appear only in the trace.
 */
export type TriesAtEndpoint = readonly Try[]

/** Whether this result ends the attempt, so that no other host is tried. */
export function isDecisive(result: SmtpResult): boolean {
  const { accepted, stage, reply, failure } = result
  if (accepted) return true
  // The server may have accepted the message; trying another host now could deliver it twice.
  if (failure !== undefined) return stage === 'final_dot' || failure.kind === 'aborted'
  // A 5xx to the message or its envelope applies to the whole domain. An earlier 5xx, or one about a capability of this host, applies to
  // the host only (RFC 5321 §5.1 lets the client try the next).
  if (!isAboutMessage(stage) || reply === undefined || reply.code < 500) return false
  return !isHostLimitation(result) && !isSessionError(result) && !isAboutConnection(stage, reply)
}

/** RFC 5321 §4.2.2: 500 to 504 are about the command, not about what it asked for. */
export function isSequenceOrSyntaxCode(code: number): boolean {
  return code >= 500 && code <= 504
}

/**
 * Whether the server complains about the dialogue rather than the message: "503 bad sequence of commands", "502 not implemented". Every SMTP
 * server knows MAIL, RCPT and DATA, so it has lost track, or something between changes the commands. Postfix bounces these; here they are
 * retried, since no recipient may be lost to a fault of the session.
 *
 * Servers also use these codes for an address, an identity or an extension they refuse (501 5.1.3), and say so in the enhanced code or text.
 */
export function isSessionError({ stage, reply }: SmtpResult): boolean {
  if (reply === undefined || !isSequenceOrSyntaxCode(reply.code)) return false
  if (stage !== 'mail' && stage !== 'rcpt' && stage !== 'data') return false
  // Nothing a message can ask for makes MAIL itself unknown or out of turn, whatever the text blames.
  if (stage === 'mail' && [500, 502, 503].includes(reply.code)) return true
  return classifyReply(reply, stage).subtype === 'protocol_error'
}

/**
 * Whether the server objects to how this server connected: its name in EHLO, no TLS, no login (530; with other codes, "authentication
 * required" is also how an address is kept to insiders). Many servers say so only in reply to MAIL or RCPT (Postfix: smtpd_delay_reject). It
 * says what a refusal at EHLO says: nothing about the message, and it ends when either side is set up properly.
 */
function isAboutConnection(stage: Stage, reply: SmtpReply): boolean {
  if (stage === 'final_dot') return false
  const { subtype } = classifyReply(reply, stage)
  return (
    subtype === 'helo_refused' ||
    subtype === 'tls_required' ||
    (subtype === 'authentication_required' && reply.code === 530)
  )
}

/** Whether this host permanently refuses the message, whatever the other hosts reply. */
function isPermanentRefusal({ stage, reply, failure }: SmtpResult): boolean {
  if (failure !== undefined) return MISSING_EXTENSION.has(failure.kind)
  return reply !== undefined && isPermanentReply(stage, reply)
}

/**
 * RFC 5321 §4.2.1: 4yz is never permanent; 5yz is, unless its text means "later". Before MAIL, a server knows only who we are: a refusal at
 * the greeting, to EHLO, STARTTLS or AUTH is about this server, so the mail is kept and retried (Postfix: smtp_skip_5xx_greeting). That
 * includes 521 at the greeting (RFC 7504), which block lists answer too.
 */
function isPermanentReply(stage: Stage, reply: NonNullable<SmtpResult['reply']>): boolean {
  if (reply.code < 500 || !isAboutMessage(stage)) return false
  if (isSessionError({ accepted: false, stage, reply }) || isAboutConnection(stage, reply)) return false
  return classifyReply(reply, stage).permanence !== 'transient'
}

/** @returns the most informative of the final tries at each address, the first among equals; undefined if no host was tried */
function decisiveTry(attempt: readonly TriesAtEndpoint[]): Try | undefined {
  return finalTries(attempt).reduce<Try | undefined>(
    (most, other) => (most === undefined || weight(other) > weight(most) ? other : most),
    undefined,
  )
}

function finalTries(attempt: readonly TriesAtEndpoint[]): Try[] {
  return attempt.flatMap(tries => tries.at(-1) ?? [])
}

/** A higher weight says more about the message. */
function weight({ host, result }: Try): number {
  const { stage, reply, failure } = result
  if (isDecisive(result)) return 7
  if (isStsFailure(host)) return 2
  if (isHostLimitation(result)) return 4
  if (reply !== undefined)
    return isAboutMessage(stage) && !isSessionError(result) && !isAboutConnection(stage, reply) ? 6 : 5
  if (failure === undefined) return 0
  if (MISSING_EXTENSION.has(failure.kind)) return 4
  if (TLS_NOT_MET.has(failure.kind)) return 2
  // After the greeting, the failure came from a server that was answering.
  return BEFORE_EHLO.has(stage) ? 1 : 3
}

/** Under `enforce`, a try that fails the policy ends before any mail is sent. */
function isStsFailure({ sts }: HostTried): boolean {
  return sts?.mode === 'enforce' && sts.result === 'failed'
}

const MISSING_EXTENSION: ReadonlySet<FailureKind> = new Set(['needs_smtputf8', 'needs_8bitmime', 'too_big'])
const TLS_NOT_MET: ReadonlySet<FailureKind> = new Set([
  'tls',
  'tls_unavailable',
  'tls_untrusted',
  'auth_unavailable',
])
const BEFORE_EHLO: ReadonlySet<Stage> = new Set(['resolve', 'connect', 'greeting', 'starttls'])

function isAboutMessage(stage: Stage): boolean {
  return stage === 'mail' || stage === 'rcpt' || stage === 'data' || stage === 'final_dot'
}

/** Refusals caused by a host's capabilities, which the next host may have. Not after the message was transmitted. */
const HOST_LIMITATIONS: ReadonlySet<Subtype> = new Set([
  'message_too_big',
  'smtputf8_unsupported',
  '8bitmime_unsupported',
])

function isHostLimitation({ stage, reply }: SmtpResult): boolean {
  return (
    reply !== undefined && stage !== 'final_dot' && HOST_LIMITATIONS.has(classifyReply(reply, stage).subtype)
  )
}
