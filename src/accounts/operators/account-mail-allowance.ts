/**
 * Shares of the appliance's own mail, so that nobody floods a mailbox with it or uses it up for others.
 *
 * Within an hour: by mailbox, by acting operator, and by workspace. Operators of all workspaces have a share of each mailbox of their own,
 * which no workspace can use up. The limits hold over all nodes; a restart of a server that is alone ends them.
 */
import { AppError } from '../../core/errors.js'
import { SlidingWindow, type OpenWindow } from '../../http/sliding-window.js'
import type { OperatorPrincipal } from '../../http/operator.js'
import { likelyMailbox } from '../../mail/address.js'
import type { Clock } from '../../world/time/clock.js'

const HOUR_MS = 3_600_000
/** Mails an hour. */
const PER_MAILBOX = 3
/** From all workspaces together. */
const PER_MAILBOX_IN_ALL = 6
const PER_OPERATOR = 30
const PER_WORKSPACE = 30
/** Links that people ask for themselves have shares of their own, so that nobody can use up those of operators. */
const LOST_PER_MAILBOX = 3
const LOST_PER_PEER = 10

interface Share {
  readonly name: string
  readonly limit: number
  readonly what: string
}

export class AccountMailAllowance {
  private readonly window: SlidingWindow

  constructor(clock: Clock, openWindow: OpenWindow = (_, windowMs) => new SlidingWindow(clock, windowMs)) {
    this.window = openWindow('account mails', HOUR_MS)
  }

  /**
   * @param workspaceId of the acting operator; undefined for one of all workspaces
   * @throws AppError rate_limited
   */
  async take(acting: OperatorPrincipal, email: string, workspaceId: string | undefined): Promise<void> {
    await this.takeAll(sharesOf(acting, likelyMailbox(email), workspaceId))
  }

  /** Of a link that somebody asks for without an account. @throws AppError rate_limited */
  async takeForPeer(peer: string): Promise<void> {
    await this.takeAll([{ name: `lost, peer ${peer}`, limit: LOST_PER_PEER, what: 'from your address' }])
  }

  /** Of the same, once an account is found. @returns whether the mailbox may get another; who asks must not learn it */
  async takeForLost(email: string): Promise<boolean> {
    const name = `lost, mailbox ${likelyMailbox(email)}`
    await this.window.prepare(name, 1, LOST_PER_MAILBOX)
    return this.window.take(name, 1, LOST_PER_MAILBOX).isAllowed
  }

  private async takeAll(shares: readonly Share[]): Promise<void> {
    for (const { name, limit } of shares) await this.window.prepare(name, 1, limit)
    const taken: Share[] = []
    for (const share of shares) {
      const { isAllowed, retryAfterMs } = this.window.take(share.name, 1, share.limit)
      if (isAllowed) {
        taken.push(share)
        continue
      }
      for (const { name } of taken) this.window.giveBack(name, 1)
      throw new AppError('rate_limited', `too many invitations and resets ${share.what}; try again later`, {
        retryAfterMs,
      })
    }
  }
}

function sharesOf(
  { id, credential }: OperatorPrincipal,
  mailbox: string,
  workspaceId: string | undefined,
): readonly Share[] {
  const operator =
    credential.kind === 'shell'
      ? []
      : [{ name: `operator ${id}`, limit: PER_OPERATOR, what: 'by one operator' }]
  const to = { limit: PER_MAILBOX, what: `to ${mailbox}` }
  if (workspaceId === undefined) return [{ ...to, name: `mailbox ${mailbox}` }, ...operator]
  return [
    { ...to, name: `mailbox ${mailbox} ${workspaceId}` },
    { ...to, name: `mailbox ${mailbox} of workspaces`, limit: PER_MAILBOX_IN_ALL },
    ...operator,
    { name: `workspace ${workspaceId}`, limit: PER_WORKSPACE, what: 'from this workspace' },
  ]
}
