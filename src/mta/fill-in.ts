/**
 * Fills a content in for one recipient: footer, merge tags, links, and the fields that tell of an unsubscribe link.
 *
 * Called by `render.ts` for each message whose content is not finished. What the recipients have in common is planned once
 * (`content/rendering/plan-cache.ts`). Fails: MergeError where a mail passes the bounds of rendering, EmptySubject
 * where its subject comes out empty.
 */
import type { Merging } from '../content/rendering/merging.js'
import { PlanCache } from '../content/rendering/plan-cache.js'
import { EMPTY_SUBJECT, isEmptied, renderFilled, valuesOf } from '../content/rendering/mail-plan.js'
import type { Filled, Letter } from '../mail/compose/compose.js'
import type { DeliveryJob } from '../queue/delivery-agent.js'
import type { MailLinks } from './mail-links.js'

export class EmptySubject extends Error {
  override readonly name = 'EmptySubject'

  constructor() {
    super(EMPTY_SUBJECT)
  }
}

export type FillIn = <L extends Letter>(job: DeliveryJob, letter: L, merging: Merging) => Filled<L>

/** @param mailLinks absent where nothing that has links is delivered */
export function openFilling(mailLinks: MailLinks | undefined): FillIn {
  const plans = new PlanCache()
  return (job, letter, merging) => {
    if (!mailLinks) throw new Error('there is nothing to make its links with')
    const { messageId, workspaceId, recipient, acceptedAt, own = {}, origin } = job
    const message = { messageId, workspaceId, recipient }
    const links = mailLinks.of(message)
    const plan = plans.planOf(letter, merging)
    const tracking = merging.tracking && mailLinks.tracked(workspaceId, links, merging.tracking)
    const filled = renderFilled(plan, valuesOf(merging, own, recipient, acceptedAt, links, tracking))
    if (isEmptied(letter.subject, filled.subject)) throw new EmptySubject()
    if (!plan.body.hasUnsubscribeLink && origin?.isMarketing !== true) return { ...letter, ...filled }
    const headers = [...(letter.headers ?? []), ...mailLinks.listUnsubscribe(message, links)]
    return { ...letter, ...filled, headers }
  }
}
