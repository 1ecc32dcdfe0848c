/**
 * Sandbox simulator: addresses at `simulator.test` produce the outcome they are named after.
 *
 * Called by `store-submissions.ts` in the transaction that accepts a sandbox key's mail, and by `sandbox-runner.ts` when scheduled
 * mail is due. Outcomes are stored like real ones, status and events, marked sandbox, so that webhooks can be tested; nothing is
 * queued and no address is suppressed. A `+` suffix is ignored: `bounced+1@simulator.test`.
 */
import type { Tx } from '../../db/database.js'
import { addressDomain } from '../../mail/address.js'
import { isMarketingMail } from '../../messages/mail-origin.js'
import { recordTransitions, type Transition } from '../../messages/message-history.js'
import type { AcceptedSubmission, StoreParts } from '../mail-submission.js'
import { insertScheduled, type DueMail } from './sandbox-schedule-store.js'

/** Reserved for tests (RFC 2606 §2); no real mailbox can exist there. */
const DOMAIN = 'simulator.test'
const REMOTE_MTA = `mx.${DOMAIN}`

type Step = 'delivered' | 'bounced' | 'failed' | 'complained' | 'opened' | 'clicked'

/** Events per address, in order. */
const PLAYS: ReadonlyMap<string, readonly Step[]> = new Map([
  ['delivered', ['delivered']],
  ['bounced', ['bounced']],
  // Like a message that cannot be built: it is never offered to a server.
  ['failed', ['failed']],
  ['complained', ['delivered', 'complained']],
  ['opened', ['delivered', 'opened']],
  // The open is inferred from the click, as for a reader who blocks images.
  ['clicked', ['delivered', 'clicked']],
])

interface Player extends DueMail {
  readonly steps: readonly Step[]
}

/** The sandbox counterpart of `enqueueMessages`: simulates immediate mail and schedules the rest. */
export async function simulateDelivery(
  tx: Tx,
  parts: StoreParts,
  accepted: readonly AcceptedSubmission[],
  now: number,
): Promise<void> {
  const scheduled = accepted.filter(({ content }) => content.scheduledAt !== undefined)
  for (const one of scheduled) {
    const ids = mailsOf(one).map(({ messageId }) => messageId)
    await insertScheduled(tx.db, ids, one.dueAt)
  }
  if (scheduled.length > 0) {
    const firstDueAt = Math.min(...scheduled.map(({ dueAt }) => dueAt))
    tx.onCommit(() => parts.onSandboxScheduled?.(firstDueAt))
  }
  const atOnce = accepted.filter(({ content }) => content.scheduledAt === undefined)
  if (await playOutcomes(tx, atOnce.flatMap(mailsOf), now)) tx.onCommit(() => parts.onEvents?.())
}

function mailsOf({ content, recipients }: AcceptedSubmission): DueMail[] {
  return recipients
    .filter(({ skip }) => skip === null)
    .map(({ messageId, address }) => ({
      messageId,
      workspaceId: content.workspaceId,
      to: address,
      isMarketing: isMarketingMail(content),
    }))
}

/** @returns whether any address had an outcome */
export async function playOutcomes(tx: Tx, mails: readonly DueMail[], now: number): Promise<boolean> {
  const players = mails.flatMap(toPlayer)
  if (players.length === 0) return false
  await recordTransitions(
    tx,
    players.flatMap(player => transitionsOf(player, now)),
  )
  return true
}

function toPlayer(mail: DueMail): Player[] {
  if (addressDomain(mail.to) !== DOMAIN) return []
  const [role = ''] = mail.to.slice(0, mail.to.lastIndexOf('@')).toLowerCase().split('+')
  const steps = PLAYS.get(role)
  return steps ? [{ ...mail, steps }] : []
}

function transitionsOf({ messageId, steps }: Player, at: number): Transition[] {
  const isOffered = !steps.includes('failed')
  return [
    ...(isOffered ? [{ messageId, at, kind: 'offered' } as const] : []),
    ...steps.map((step): Transition => ({ messageId, at, ...transition(step) })),
  ]
}

function transition(step: Step) {
  const seen = { ip: '192.0.2.1', userAgent: 'Postroad simulator', isBot: false }
  switch (step) {
    case 'delivered':
      return { kind: step, facts: { remoteMta: REMOTE_MTA } } as const
    case 'bounced':
      return {
        kind: step,
        facts: {
          bounceType: 'permanent',
          cause: 'recipient',
          scope: 'address',
          subtype: 'no_such_mailbox',
          smtpStatus: '5.1.1',
          diagnosticCode: 'smtp; 550 5.1.1 simulated: no such mailbox',
          remoteMta: REMOTE_MTA,
        },
      } as const
    case 'failed':
      return { kind: step, facts: { reason: 'simulated: the message could not be built' } } as const
    case 'complained':
      return { kind: step, facts: { feedbackType: 'abuse' } } as const
    case 'opened':
      return { kind: step, facts: seen } as const
    case 'clicked':
      return { kind: step, facts: { ...seen, url: `https://${DOMAIN}/` } } as const
  }
}
