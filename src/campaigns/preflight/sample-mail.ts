/**
 * The complete mail of one recipient, much as it is sent: what a spam filter is asked about. Its links are dead, and it is not signed.
 *
 * Throws AppError if it cannot be rendered.
 */
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import type { CheckedRecipient } from '../../content/rendering/check-recipients.js'
import { brandOf } from '../../content/rendering/merging.js'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { composeMessage } from '../../mail/compose/compose.js'
import { LINK_PATHS } from '../../mail/links/links.js'
import type { Sender } from '../../msa/sender.js'
import type { Letter } from '../model/letter.js'
import type { PreflightParts } from './preflight-parts.js'
import type { SpamEnvelope } from './spam-score.js'

/** As long as those of real links. */
const TOKEN = 'x'.repeat(80)

export interface SampleOf {
  /** Of the check and its variant; unique. */
  readonly id: string
  readonly workspace: ActingWorkspace
  readonly workspaceId: string
  readonly letter: Letter
  readonly sender: Sender
  readonly recipient: CheckedRecipient
}

export async function sampleMail(
  { renderQueue, send: { clock }, hostname, publicUrl }: PreflightParts,
  { id, workspace, workspaceId, letter, sender, recipient }: SampleOf,
): Promise<{ readonly message: Buffer; readonly envelope: SpamEnvelope }> {
  const { subject, html, merging } = letter
  const { id: _, ...contact } = recipient
  const date = clock.now()
  const links = {
    unsubscribeUrl: `${publicUrl}${LINK_PATHS.unsubscribe}${TOKEN}`,
    preferencesUrl: `${publicUrl}${LINK_PATHS.preferences}${TOKEN}`,
    viewUrl: `${publicUrl}${LINK_PATHS.view}${TOKEN}`,
  }
  const request = {
    kind: 'mail' as const,
    source: { subject, html },
    merging: { brand: brandOf(workspace), hasFooter: true, ...given({ data: merging?.data }) },
    own: { contact },
    recipient: recipient.email,
    date,
    links,
    isHtmlEnough: false,
  }
  const rendered = await renderQueue.render({
    key: `check ${id} sample`,
    workspaceId,
    load: () => Promise.resolve(request),
  })
  if (rendered.kind !== 'mail')
    throw new AppError('validation_error', rendered.kind === 'refused' ? rendered.message : rendered.kind)
  const headers = [{ name: 'List-Unsubscribe', value: `<${links.unsubscribeUrl}>` }]
  if (publicUrl.startsWith('https:'))
    headers.push({ name: 'List-Unsubscribe-Post', value: 'List-Unsubscribe=One-Click' })
  const { from, replyTo } = sender
  const { kind: _kind, ...filled } = rendered
  const message = await composeMessage(
    { kind: 'composed', from, ...given({ replyTo }), ...filled, headers },
    { to: recipient.email, date, messageId: `${id}@${hostname}` },
  )
  return { message, envelope: { from: from.address, to: recipient.email, hostname } }
}
