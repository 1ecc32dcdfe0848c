/**
 * The simulator of the sandbox: addresses at `simulator.test` play the outcome that they are named after.
 *
 * Called by `accept.ts` in the transaction that accepts a sandbox key's mail, and by `sandbox-runner.ts` when the time of
 * scheduled mail has come. What is played is written as the real thing is, status and events, marked sandbox, so that webhooks
 * can be tried out; nothing is queued, nobody is suppressed. `+` and anything after it is ignored: `bounced+1@simulator.test`.
 * Fails: as the database does.
 */
import type { Tx } from '../db/database.js'
import type { Event } from '../events/event.js'
import { appendEvents } from '../events/store.js'
import {
  markBounced,
  markClicked,
  markComplained,
  markDelivered,
  markOpened,
} from '../queue/message-status-store.js'
import { addressDomain } from '../mail/address.js'
import type { Letter } from './letter.js'
import { insertScheduled, type DueMail } from './sandbox-schedule-store.js'

/** Reserved for tests (RFC 2606 §2), so nobody has a mailbox there. */
const DOMAIN = 'simulator.test'
const REMOTE_MTA = `mx.${DOMAIN}`

type Step = 'delivered' | 'bounced' | 'complained' | 'opened' | 'clicked'

/** What happens to the mail, in this order. */
const PLAYS: ReadonlyMap<string, readonly Step[]> = new Map([
  ['delivered', ['delivered']],
  ['bounced', ['bounced']],
  ['complained', ['delivered', 'complained']],
  ['opened', ['delivered', 'opened']],
  ['clicked', ['delivered', 'opened', 'clicked']],
])

interface Player extends DueMail {
  readonly steps: readonly Step[]
}

export interface Simulated {
  readonly hasPlayed: boolean
  /** When the first of what waits is due, ms since epoch UTC. */
  readonly firstDueAt: number | undefined
}

/** Does in a sandbox what the queue does live: plays what leaves at once, and keeps what is scheduled until then. */
export async function simulate(tx: Tx, letters: readonly Letter[], now: number): Promise<Simulated> {
  const scheduled = letters.filter(({ content }) => content.scheduledAt !== undefined)
  for (const letter of scheduled) {
    const ids = mailsOf(letter).map(({ messageId }) => messageId)
    await insertScheduled(tx.db, ids, letter.dueAt)
  }
  const dueAts = scheduled.map(({ dueAt }) => dueAt)
  const atOnce = letters.filter(({ content }) => content.scheduledAt === undefined)
  return {
    hasPlayed: await playOutcomes(tx, atOnce.flatMap(mailsOf), now),
    firstDueAt: dueAts.length === 0 ? undefined : Math.min(...dueAts),
  }
}

function mailsOf({ content, submitted }: Letter): DueMail[] {
  return submitted
    .filter(({ skip }) => skip === null)
    .map(({ messageId, address }) => ({ messageId, workspaceId: content.workspaceId, to: address }))
}

/** @returns whether anything was played */
export async function playOutcomes(tx: Tx, mails: readonly DueMail[], now: number): Promise<boolean> {
  const players = mails.flatMap(toPlayer)
  if (players.length === 0) return false
  const ids = (step: Step) =>
    players.filter(({ steps }) => steps.includes(step)).map(({ messageId }) => messageId)
  await markDelivered(tx.db, ids('delivered'), now)
  await markBounced(tx.db, ids('bounced'), 'permanent', now)
  await markComplained(tx.db, ids('complained'), now)
  await markOpened(tx.db, ids('opened'), now)
  await markClicked(tx.db, ids('clicked'), now)
  await appendEvents(
    tx,
    players.flatMap(player => eventsOf(player, now)),
  )
  return true
}

function toPlayer(mail: DueMail): Player[] {
  if (addressDomain(mail.to) !== DOMAIN) return []
  const [role = ''] = mail.to.slice(0, mail.to.lastIndexOf('@')).toLowerCase().split('+')
  const steps = PLAYS.get(role)
  return steps ? [{ ...mail, steps }] : []
}

function eventsOf({ messageId, workspaceId, to, steps }: Player, now: number): Event[] {
  const head = { workspaceId, messageId, isSandbox: true, occurredAt: now }
  return [
    { ...head, kind: 'email.sent', payload: { to } },
    ...steps.map((step): Event => ({ ...head, ...happening(step, to) })),
  ]
}

function happening(step: Step, to: string) {
  const seen = { to, ip: '192.0.2.1', userAgent: 'Postroad simulator', isBot: false }
  switch (step) {
    case 'delivered':
      return { kind: 'email.delivered' as const, payload: { to, remoteMta: REMOTE_MTA } }
    case 'bounced':
      return {
        kind: 'email.bounced' as const,
        payload: {
          to,
          bounceType: 'permanent' as const,
          cause: 'recipient' as const,
          scope: 'address' as const,
          subtype: 'no_such_mailbox',
          smtpStatus: '5.1.1',
          diagnosticCode: 'smtp; 550 5.1.1 simulated: no such mailbox',
          remoteMta: REMOTE_MTA,
        },
      }
    case 'complained':
      return { kind: 'email.complained' as const, payload: { to, feedbackType: 'abuse' } }
    case 'opened':
      return { kind: 'email.opened' as const, payload: seen }
    case 'clicked':
      return { kind: 'email.clicked' as const, payload: { ...seen, url: `https://${DOMAIN}/` } }
  }
}
