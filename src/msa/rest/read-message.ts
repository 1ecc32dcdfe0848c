/**
 * Reads one message of a request by the rules of the contract, in the contract's order: valid fields, sender address, template, sender
 * domain. Shared by single sends and batches.
 *
 * Fails: AppError validation_error with the field's path, no_content, missing_from_email, template_not_found, domain_invalid; unavailable
 * while long texts cannot be checked.
 */
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import { MergeTextCache } from '../../content/merge/merge-text.js'
import { prepareContent, readTexts, type PreparedContent } from '../../content/preparation/prepare-content.js'
import type { RenderThreads } from '../../content/rendering/in-thread.js'
import type { RenderQueue } from '../../content/rendering/render-queue.js'
import { findAskedTemplate, type AskedTemplate } from '../../content/templates/asked-template.js'
import type { Database } from '../../db/database.js'
import type { Author, Sender, SenderCache } from '../sender.js'
import {
  readRecipientFields,
  readSenderFields,
  withWorkspaceSender,
  type Recipients,
} from './address-fields.js'
import { withLongDecoded } from './attachment-fields.js'
import { readContentFields, readTemplateData, type ReadContent } from './content-fields.js'
import type { MessageFields } from './send-schema.js'

export interface ReadParts {
  readonly database: Pick<Database, 'reader'>
  readonly senders: SenderCache
  /** Parses and tries long texts off the main thread; absent in commands. */
  readonly renderQueue?: RenderQueue
  /** Limit of an encoded message, octets. */
  readonly messageLimit: number
}

export interface ReadMessage extends Recipients, Pick<ReadContent, 'attached'> {
  /** The sender that the request names. */
  readonly asked: Author
  readonly sender: Sender
  /** Stored as it is. */
  readonly content: PreparedContent & ReadContent['others']
}

/** Where a message finds what it names; the messages of a batch share it. */
export interface RequestContext {
  readonly workspace: ActingWorkspace
  readonly messageLimit: number
  readonly threads: RenderThreads
  readonly texts?: MergeTextCache
  readonly findSender: (asked: Author) => Promise<Sender>
  readonly findTemplate: (id: string | undefined) => Promise<AskedTemplate | undefined>
}

export function openRequestContext(
  { senders, database, renderQueue, messageLimit }: ReadParts,
  workspace: ActingWorkspace,
): RequestContext {
  return {
    workspace,
    messageLimit,
    threads: { renderQueue, workspaceId: workspace.id },
    findSender: asked => senders.sender(workspace, asked),
    findTemplate: id => findAskedTemplate(database.reader, workspace, id),
  }
}

/** For a batch: what several messages name is found once, and texts they share are parsed once. */
export function openBatchContext(parts: ReadParts, workspace: ActingWorkspace): RequestContext {
  const { findSender, findTemplate, ...context } = openRequestContext(parts, workspace)
  return {
    ...context,
    texts: new MergeTextCache(),
    findSender: once(
      ({ fromAddress, name, replyTo }: Author) => JSON.stringify([fromAddress, name, replyTo]),
      findSender,
    ),
    findTemplate: once(id => id ?? '', findTemplate),
  }
}

/** @param isOneOfMany for a batch message: an invalid address does not fail the request, even if it is the only one */
export async function readMessage(
  fields: MessageFields & Parameters<typeof readRecipientFields>[0],
  context: RequestContext,
  isOneOfMany = false,
): Promise<ReadMessage> {
  const { workspace, messageLimit, threads, texts: cache } = context
  const recipients = readRecipientFields(fields, isOneOfMany)
  const senderFields = readSenderFields(fields)
  const { subject, others, attached, ...written } = readContentFields(
    await withLongDecoded(fields),
    messageLimit,
  )
  const data = readTemplateData(fields)
  const texts = await readTexts({ ...written, template_id: fields.template_id }, data, threads, cache)
  const asked = withWorkspaceSender(senderFields, workspace)
  const template = await context.findTemplate(fields.template_id)
  const { track_opens: trackOpens, track_clicks: trackClicks } = fields
  const prepared = await prepareContent(
    workspace,
    { subject, ...texts, template, data, trackOpens, trackClicks },
    threads,
  )
  const sender = await context.findSender(asked)
  return { ...recipients, asked, sender, content: { ...prepared, ...others }, attached }
}

/** Lookups that messages share are made once, failing ones included. */
function once<A, R>(nameOf: (asked: A) => string, find: (asked: A) => Promise<R>): (asked: A) => Promise<R> {
  const known = new Map<string, Promise<R>>()
  return asked => {
    const name = nameOf(asked)
    const found = known.get(name) ?? find(asked)
    known.set(name, found)
    return found
  }
}
