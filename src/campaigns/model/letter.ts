/**
 * A campaign's content and sender, rendered once when it is sent and stored until its last email is queued.
 *
 * Called by the sending routes and by the runner, which makes a new content from it every hour, so that emails carry a current date and a
 * removed sender domain is noticed.
 * Fails: AppError missing_from_email, template_not_found, domain_invalid.
 */
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import { MergeText } from '../../content/merge/merge-text.js'
import { withPreheader } from '../../content/preheader.js'
import { prepareContent } from '../../content/preparation/prepare-content.js'
import type { MergeData, Merging } from '../../content/rendering/merging.js'
import { findAskedTemplate } from '../../content/templates/asked-template.js'
import { given } from '../../core/given.js'
import type { Queries } from '../../db/database.js'
import type { SubmittedContent } from '../../msa/mail-submission.js'
import { readSenderFields, withWorkspaceSender } from '../../msa/rest/address-fields.js'
import type { Author, SenderCache } from '../../msa/sender.js'
import { withVariant } from './ab-test.js'
import type { CampaignFields } from './campaign.js'

export interface Letter {
  readonly author: Author
  readonly subject: string
  readonly html: string
  readonly templateId: string
  readonly trackOpens: boolean
  readonly trackClicks: boolean
  readonly merging?: Merging
}

export type LetterFields = Pick<
  CampaignFields,
  'subject' | 'preheader' | 'templateId' | 'fromEmail' | 'fromName' | 'replyTo' | 'trackOpens' | 'trackClicks'
>

/**
 * Uses the template as it is now.
 *
 * @param data values of merge tags that all recipients share
 * @throws AppError missing_from_email, template_not_found; validation_error if it cannot be rendered with that data
 */
export async function makeLetter(
  db: Queries,
  workspace: ActingWorkspace,
  campaign: LetterFields,
  data?: MergeData,
): Promise<Letter> {
  const { subject, preheader, templateId, fromEmail, fromName, replyTo } = campaign
  const asked = given({
    from_email: fromEmail ?? undefined,
    from_name: fromName ?? undefined,
    reply_to: replyTo ?? undefined,
  })
  const author = withWorkspaceSender(readSenderFields(asked), workspace)
  const template = await findAskedTemplate(db, workspace, templateId)
  const {
    html = '',
    trackOpens,
    trackClicks,
    merging,
  } = await prepareContent(workspace, {
    subject: new MergeText(subject, 'subject'),
    template,
    ...(preheader === null || !template
      ? {}
      : { html: new MergeText(withPreheader(template.html.source, preheader), 'html') }),
    data,
    trackOpens: campaign.trackOpens ?? undefined,
    trackClicks: campaign.trackClicks ?? undefined,
  })
  return { author, subject, html, templateId, trackOpens, trackClicks, ...given({ merging }) }
}

/** One, or one for each variant of its A/B test. @throws AppError as `makeLetter` */
export async function lettersOf(
  db: Queries,
  workspace: ActingWorkspace,
  campaign: LetterFields & Pick<CampaignFields, 'abTest'>,
  data?: MergeData,
): Promise<Letter[]> {
  const letters: Letter[] = []
  for (const variant of campaign.abTest?.variants ?? [undefined])
    letters.push(await makeLetter(db, workspace, withVariant(campaign, variant), data))
  return letters
}

/** Content for the next messages. @param isOf the campaign's id; absent for a test @throws AppError domain_invalid */
export async function contentOf(
  senders: SenderCache,
  workspace: ActingWorkspace,
  letter: Letter,
  id: string,
  isOf?: string,
): Promise<SubmittedContent> {
  const { author, ...said } = letter
  const sender = await senders.sender(workspace, author)
  return { id, ...sender, ...said, ...given({ campaignId: isOf }) }
}
