/**
 * The source of a message as it is or was transmitted: header, text and attachments, composed again from what is stored.
 *
 * Rendered by an agent that delivers nothing, in a thread. The source is not signed, since a new DKIM signature would differ from the
 * transmitted one. Merge tags show the contact as it is now, as a retry would.
 */
import { AppError } from '../../core/errors.js'
import { isAppliance } from '../../core/owner.js'
import { findContents } from '../../messages/content-store.js'
import type { Message } from '../../messages/message-store.js'
import type { Queries } from '../../db/database.js'
import type { JobLoader } from '../../queue/claiming/job-loader.js'
import type { DeliveryAgent, DeliveryJob } from '../../queue/delivery-agent.js'
import { PRIORITIES } from '../../messages/mail-origin.js'

export interface SourceParts {
  readonly reader: Queries
  readonly jobLoader: Pick<JobLoader, 'load' | 'complete'>
  /** Returns what it renders as `captured`. */
  readonly composer: Pick<DeliveryAgent, 'deliver'>
}

/** @throws AppError not_found if the text is no longer stored, conflict if the message cannot be composed */
export async function messageSource(parts: SourceParts, message: Message): Promise<Buffer> {
  return (await composeMessage(parts, message, 'unsigned')).octets
}

export interface ComposedMessage {
  readonly octets: Buffer
  /** As it would be delivered now, with its keys. */
  readonly job: DeliveryJob
}

/** @throws AppError not_found if the text is no longer stored, conflict if the message cannot be composed */
export async function composeMessage(
  { reader, jobLoader, composer }: SourceParts,
  message: Message,
  how: 'signed' | 'unsigned',
): Promise<ComposedMessage> {
  const { id, recipient, contentId, workspaceId, createdAt } = message
  if (isAppliance(workspaceId))
    throw new AppError('not_found', 'the text of mail that the appliance itself sends is not shown')
  const [content] = await findContents(reader, [contentId])
  const entry = {
    messageId: id,
    workspaceId,
    recipient,
    contentId,
    destination: '',
    priority: PRIORITIES.transactional,
    attempts: 1,
    nextAttemptAt: createdAt,
    expiresAt: createdAt,
    enqueuedAt: createdAt,
    isHeld: false,
    wasOffered: false,
    isWithdrawn: false,
  }
  const { jobs: loaded } = content && !content.isPruned ? await jobLoader.load([entry]) : { jobs: [] }
  const [claimed] = loaded
  if (!claimed)
    throw new AppError('not_found', `the text of message ${id} is no longer stored (retention.content)`)
  const complete = await jobLoader.complete(claimed)
  const job = how === 'signed' ? complete : { ...complete, signingKeys: [] }
  const outcome = await composer.deliver(job, new AbortController().signal)
  if (outcome.kind === 'delivered' && outcome.captured) return { octets: Buffer.from(outcome.captured), job }
  throw new AppError('conflict', `message ${id} cannot be composed: ${outcome.summary}`)
}
