/**
 * The simulator of the sandbox: addresses at `simulator.test` play the outcome that they are named after.
 *
 * Called by `accept.ts` in the transaction that accepts a sandbox key's mail. What is played is written as the real thing is,
 * status and events, marked sandbox, so that webhooks can be tried out; nothing is queued, nobody is suppressed. `+` and
 * anything after it is ignored: `bounced+1@simulator.test`. Scheduled mail plays nothing. Fails: as the database does.
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
import type { Letter } from './letter.js'

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

interface Player {
  readonly messageId: string
  readonly workspaceId: string
  readonly to: string
  readonly steps: readonly Step[]
}

/** @returns whether anything was played */
export async function playOutcomes(tx: Tx, letters: readonly Letter[], now: number): Promise<boolean> {
  const players = letters.flatMap(toPlayers)
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

function toPlayers({ content, submitted }: Letter): Player[] {
  if (content.scheduledAt !== undefined) return []
  return submitted.flatMap(({ skip, destination, address, messageId }) => {
    if (skip !== null || destination !== DOMAIN) return []
    const [role = ''] = address.slice(0, address.lastIndexOf('@')).toLowerCase().split('+')
    const steps = PLAYS.get(role)
    return steps ? [{ messageId, workspaceId: content.workspaceId, to: address, steps }] : []
  })
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
