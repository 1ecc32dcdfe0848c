/**
 * Holds what was read from a labelled bounce against its labels.
 *
 * The labels are one careful project's opinion. Where ours differs for a reason the reason stands here, and the mail counts
 * as right.
 */
import type { ReturnedMail, ReturnedRecipient } from '../../../src/mail/returned/returned-mail.js'

/** One recipient as labelled, in the order of the mail. */
export interface Label {
  readonly status: string | null
  readonly reply_code: string | null
  /** The labeller's vocabulary: `userunknown`, `mailboxfull`, `blocked` ... */
  readonly reason: string
  readonly hard_bounce: boolean
  readonly feedback_type?: string
}

export interface Verdict {
  readonly right: { recipients: boolean; status: boolean; permanence: boolean; feedback: boolean }
  readonly complaints: readonly string[]
}

export function judge(read: ReturnedMail, labels: readonly Label[]): Verdict {
  const complaints: string[] = []
  const isRight = { recipients: true, status: true, permanence: true, feedback: true }
  const fail = (what: keyof typeof isRight, why: string): void => {
    isRight[what] = false
    complaints.push(`${what}: ${why}`)
  }
  if (read.recipients.length !== labels.length)
    fail(
      'recipients',
      `${read.recipients.map(one => one.recipient).join(' ') || 'none'}, expected ${labels.length}`,
    )
  for (const [index, label] of labels.entries()) {
    const one = read.recipients[index]
    if (!one) continue
    if (!isStatusRight(one, label)) fail('status', `${one.status}, expected ${label.status}`)
    const wrong = kindFault(read, label) ?? permanenceFault(one, label)
    if (wrong !== undefined)
      fail('permanence', `${wrong} (${label.reason}, ${one.diagnosticCode?.slice(0, 120)})`)
    if (label.feedback_type !== undefined && one.feedbackType !== label.feedback_type)
      fail('feedback', `${one.feedbackType}, expected ${label.feedback_type}`)
  }
  return { right: isRight, complaints }
}

/** x.0.9xx are the labeller's guesses for mails that state none. */
function isStatusRight({ status }: ReturnedRecipient, label: Label): boolean {
  return label.status === null || /^\d\.0\.9\d\d$/.test(label.status) || status === label.status
}

function kindFault({ kind }: ReturnedMail, { reason }: Label): string | undefined {
  const expected: Readonly<Record<string, readonly string[]>> = {
    feedback: ['feedback'],
    vacation: ['auto_reply'],
    delivered: ['success'],
  }
  const kinds = expected[reason] ?? ['bounce', 'delay']
  return kinds.includes(kind) ? undefined : `kind ${kind}`
}

/** Reasons that pass by their nature, also when they come with a 5xx. */
const PASSING: ReadonlySet<string> = new Set([
  'mailboxfull',
  'expired',
  'networkerror',
  'systemfull',
  'ratelimited',
  'speeding',
  'toomanyconn',
])
/** Reasons that are not the address's fault. */
const NOT_THE_ADDRESS: ReadonlySet<string> = new Set([
  'authfailure',
  'badreputation',
  'blocked',
  'contenterror',
  'emailtoolarge',
  'exceedlimit',
  'failedstarttls',
  'mailererror',
  'mesgtoobig',
  'norelaying',
  'notcompliantrfc',
  'policyviolation',
  'requireptr',
  'securityerror',
  'spamdetected',
  'speeding',
  'systemerror',
  'virusdetected',
])

function permanenceFault(one: ReturnedRecipient, label: Label): string | undefined {
  const { type, cause, subtype } = one
  const verdict = `${type}/${cause}/${subtype}`
  if (['feedback', 'vacation', 'delivered'].includes(label.reason))
    return type === undefined ? undefined : verdict
  // Ours: a 4yz never condemns a mailbox, whatever its words (RFC 5321 §4.2.1).
  const isTransientCode = [label.status, label.reply_code, one.status].some(
    code => code?.startsWith('4') === true,
  )
  if (isTransientCode) return type === 'transient' ? undefined : verdict
  if (label.hard_bounce) {
    // Labelled hard with no word about the recipient; see the reasons above for what may be held against an address.
    return type === 'permanent' && cause === 'recipient' ? undefined : verdict
  }
  // Ours: an over-quota mailbox is transient (RFC 3463 §3.3), and so is what only ran out of time.
  if (PASSING.has(label.reason)) return type === 'permanent' && cause === 'recipient' ? verdict : undefined
  if (NOT_THE_ADDRESS.has(label.reason))
    return type === 'permanent' && cause === 'recipient' ? verdict : undefined
  // `filtered`, `suspend`, `rejected`, `onhold`, `undefined`: the labeller calls soft what says "no such user" with a
  // code that some filters use. Words decide here, so that either verdict may be right.
  return undefined
}
