/**
 * The simulator of the sandbox: addresses at `simulator.test` play the outcome that they are named after.
 *
 * Called by `accept.ts` in the transaction that accepts a sandbox key's mail. What is played is written as the real thing is,
 * status and events, marked sandbox, so that webhooks can be tried out; nothing is queued, nobody is suppressed. `+` and
 * anything after it is ignored: `bounced+1@simulator.test`. Scheduled mail plays nothing. Fails: as the database does.
 */
import type { Tx } from '../db/database.js'
import { recordHappenings, type Happening } from '../queue/message-history.js'
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
  readonly steps: readonly Step[]
}

/** @returns whether anything was played */
export async function playOutcomes(tx: Tx, letters: readonly Letter[], now: number): Promise<boolean> {
  const players = letters.flatMap(toPlayers)
  if (players.length === 0) return false
  await recordHappenings(
    tx,
    players.flatMap(player => happeningsOf(player, now)),
  )
  return true
}

function toPlayers({ content, submitted }: Letter): Player[] {
  if (content.scheduledAt !== undefined) return []
  return submitted.flatMap(({ skip, destination, address, messageId }) => {
    if (skip !== null || destination !== DOMAIN) return []
    const [role = ''] = address.slice(0, address.lastIndexOf('@')).toLowerCase().split('+')
    const steps = PLAYS.get(role)
    return steps ? [{ messageId, steps }] : []
  })
}

function happeningsOf({ messageId, steps }: Player, at: number): Happening[] {
  return [
    { messageId, at, what: 'handed_over' },
    ...steps.map((step): Happening => ({ messageId, at, ...happening(step) })),
  ]
}

function happening(step: Step) {
  const seen = { ip: '192.0.2.1', userAgent: 'Postroad simulator', isBot: false }
  switch (step) {
    case 'delivered':
      return { what: step, facts: { remoteMta: REMOTE_MTA } } as const
    case 'bounced':
      return {
        what: step,
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
    case 'complained':
      return { what: step, facts: { feedbackType: 'abuse' } } as const
    case 'opened':
      return { what: step, facts: seen } as const
    case 'clicked':
      return { what: step, facts: { ...seen, url: `https://${DOMAIN}/` } } as const
  }
}
