/**
 * One-time links that people ask for themselves, by mail, because they lost what they sign in with.
 *
 * Only accounts whose address was proved get one: the address of another may be a stranger's. Nobody learns whether an address has an account: the
 * answer is the same, and comes before the account is looked for. The password and other credentials stay as they are, and so does the code that is asked
 * for after the link.
 */
import { SYSTEM } from '../../core/actor.js'
import { describeError } from '../../core/errors.js'
import type { Services } from '../../db/services.js'
import { recordActivity } from '../../events/activity-store.js'
import type { AccountMailer } from './account-mail.js'
import type { AccountMailAllowance } from './account-mail-allowance.js'
import { findOperator } from './operator-store.js'
import { recordedAt } from './privileges.js'

export interface LostPasswordParts extends Pick<Services, 'database' | 'clock' | 'log'> {
  readonly mailer: AccountMailer
  readonly allowance: AccountMailAllowance
}

export class LostPasswords {
  private readonly parts: LostPasswordParts
  private readonly inHand = new Set<Promise<void>>()

  constructor(parts: LostPasswordParts) {
    this.parts = parts
  }

  /**
   * Mails a link if the address has an account, after the answer.
   *
   * @param peer address of who asks
   * @throws AppError rate_limited: this peer asks too often
   */
  async ask(email: string, peer: string): Promise<void> {
    await this.parts.allowance.takeForPeer(peer)
    const work = this.mail(email, peer)
      .catch((error: unknown) =>
        this.parts.log.error('sign-in link not mailed', { error: describeError(error) }),
      )
      .finally(() => this.inHand.delete(work))
    this.inHand.add(work)
  }

  async stop(): Promise<void> {
    await Promise.all(this.inHand)
  }

  private async mail(email: string, peer: string): Promise<void> {
    const { database, clock, mailer, allowance } = this.parts
    const found = await findOperator(database.reader, { email })
    if (!found || found.provedAt === null || !(await allowance.takeForLost(found.email))) return
    await database.write(async tx => {
      const operator = await findOperator(tx.db, { id: found.id })
      if (!operator || operator.provedAt === null || operator.email !== found.email) return
      await mailer.enqueue(tx, { kind: 'lost', recipient: operator.email, operatorId: operator.id })
      await recordActivity(
        tx,
        { workspaceId: recordedAt(operator), actor: { ...SYSTEM, peer } },
        clock.now(),
        { action: 'operator.link_requested', subject: operator.email },
      )
    })
  }
}
