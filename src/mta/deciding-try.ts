/**
 * Which of the tries of one attempt has the last word.
 *
 * Called by `smtp-agent.ts` (whether to go on to the next host) and `conclude.ts` (what the attempt came to). Pure.
 * Standards: RFC 5321 §5.1 (hosts in order), §4.2.1. Of several hosts the one that said most about the message decides:
 * where the primary asks for patience and the backup is dead, the domain has asked for patience, and is not unreachable.
 */
import { classifyReply } from '../mail/classify/classify.js'
import type { Subtype } from '../mail/classify/classify-subtypes.js'
import type { HostTried, Stage } from '../mail/outcome.js'
import type { BreakKind, SmtpEnd } from './smtp-end.js'

/** One host and how it ended there. */
export interface Try {
  readonly host: HostTried
  readonly end: SmtpEnd
}

/**
 * The tries at one address, in order: more than one where an idle connection was dead or STARTTLS is broken there. The last
 * one says how it ended; the others are for the trace.
 */
export type TriesAtEndpoint = readonly Try[]

/** Whether another host must not, or need not, be asked after this. */
export function isVerdict(end: SmtpEnd): boolean {
  const { accepted, stage, reply, broken } = end
  if (accepted) return true
  // The message may have been taken: offering it elsewhere at once would make the duplicate certain.
  if (broken !== undefined) return stage === 'final_dot' || broken.kind === 'aborted'
  // A 5xx to the message or its envelope holds for the domain; one before that, or one that only tells what this host
  // cannot do, is about this host (RFC 5321 §5.1 lets the client go on to the next).
  return isAboutMessage(stage) && reply !== undefined && reply.code >= 500 && !isInability(end)
}

/** Whether this host said for good that it takes no such message from us, whatever others may say. */
export function isDefiniteNo({ stage, reply, broken }: SmtpEnd): boolean {
  if (broken !== undefined) return LACKING_EXTENSION.has(broken.kind)
  return reply !== undefined && isForGood(stage, reply)
}

/**
 * RFC 5321 §4.2.1: 4yz is never for good; 5yz is, unless its text shows that it means "later". Refused TLS or a wrong
 * password is between the operator and a relay, and no recipient's loss: mail waits until it is mended.
 */
export function isForGood(stage: Stage, reply: NonNullable<SmtpEnd['reply']>): boolean {
  if (reply.code < 500 || stage === 'starttls' || stage === 'auth') return false
  return classifyReply(reply, stage).permanence !== 'transient'
}

/** @returns the most telling of how it ended at each address, of equals the first; undefined where nobody was tried */
export function decidingTry(attempt: readonly TriesAtEndpoint[]): Try | undefined {
  return endingsOf(attempt).reduce<Try | undefined>(
    (most, other) => (most === undefined || weight(other) > weight(most) ? other : most),
    undefined,
  )
}

/** @returns how it ended at each address */
export function endingsOf(attempt: readonly TriesAtEndpoint[]): Try[] {
  return attempt.flatMap(tries => tries.at(-1) ?? [])
}

/** More is more telling. */
function weight({ host, end }: Try): number {
  const { stage, reply, broken } = end
  if (isVerdict(end)) return 7
  if (isStsFailure(host)) return 2
  if (isInability(end)) return 4
  if (reply !== undefined) return isAboutMessage(stage) ? 6 : 5
  if (broken === undefined) return 0
  if (LACKING_EXTENSION.has(broken.kind)) return 4
  if (UNMET_DEMAND.has(broken.kind)) return 2
  // What breaks after the greeting broke with a server that had answered.
  return NEVER_ANSWERED.has(stage) ? 1 : 3
}

/** Under `enforce` a try that fails the policy ends before any mail is offered. */
export function isStsFailure({ sts }: HostTried): boolean {
  return sts?.mode === 'enforce' && sts.result === 'failed'
}

const LACKING_EXTENSION: ReadonlySet<BreakKind> = new Set(['needs_smtputf8', 'needs_8bitmime', 'too_big'])
const UNMET_DEMAND: ReadonlySet<BreakKind> = new Set([
  'tls',
  'tls_unavailable',
  'tls_untrusted',
  'auth_unavailable',
])
const NEVER_ANSWERED: ReadonlySet<Stage> = new Set(['resolve', 'connect', 'greeting', 'starttls'])

function isAboutMessage(stage: Stage): boolean {
  return stage === 'mail' || stage === 'rcpt' || stage === 'data' || stage === 'final_dot'
}

/** What a host may refuse because of what it is, and the next one may take; once the message has crossed, all has been said. */
const INABILITIES: ReadonlySet<Subtype> = new Set([
  'message_too_big',
  'smtputf8_unsupported',
  '8bitmime_unsupported',
])

function isInability({ stage, reply }: SmtpEnd): boolean {
  return reply !== undefined && stage !== 'final_dot' && INABILITIES.has(classifyReply(reply, stage).subtype)
}
