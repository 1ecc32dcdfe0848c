/**
 * Puts footer and tracking into finished mail (SMTP submission) for one recipient, where its submitter asked for them.
 *
 * Called by `render.ts` for each message of such a content, before it is brought to 7 bits and signed. What its recipients have in
 * common is planned once for a content (`content/rendering/relayed-plan.ts`); a recipient's mail is put together of octets that stay and of the texts that
 * differ, links being one token each.
 * Fails: never throws; what cannot be read leaves as it came.
 */
import { valuesOf } from '../content/rendering/mail-plan.js'
import type { Merging } from '../content/rendering/merging.js'
import { foldField } from '../mail/compose/header-field.js'
import type { RelayedContent } from '../mail/relayed-content.js'
import type { DeliveryJob } from '../queue/delivery-agent.js'
import type { MailLinks } from './mail-links.js'
import { planRelayed, type OwnTexts, type RelayedPlan } from '../content/rendering/relayed-plan.js'

export type FinishRelayed = (job: DeliveryJob, content: RelayedContent, merging: Merging) => Buffer

/** @param mailLinks absent where nothing that has links is delivered */
export function openFinishing(mailLinks: MailLinks | undefined): FinishRelayed {
  const plans = new WeakMap<RelayedContent, RelayedPlan>()
  return (job, content, merging) => {
    if (!mailLinks) throw new Error('there is nothing to make its links with')
    const plan = plans.get(content) ?? planRelayed(content.message, merging, job.origin?.isMarketing === true)
    plans.set(content, plan)
    const { messageId, workspaceId, recipient, acceptedAt } = job
    const message = { messageId, workspaceId, recipient }
    const links = mailLinks.of(message)
    const tracking = merging.tracking && mailLinks.tracked(workspaceId, links, merging.tracking)
    const own: OwnTexts = {
      values: valuesOf(merging, {}, recipient, acceptedAt, links, tracking),
      unsubscribeFields: () =>
        mailLinks
          .listUnsubscribe(message, links)
          .map(({ name, value }) => `${foldField(name, value) ?? `${name}: ${value}`}\r\n`)
          .join(''),
    }
    return Buffer.concat(plan.map(piece => (Buffer.isBuffer(piece) ? piece : piece(own))))
  }
}
