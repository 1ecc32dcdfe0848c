/**
 * Validates the messages of a batch by the rules of a single send.
 *
 * Called by `batch-send.ts` before anything is stored. An invalid field fails the whole request, with a path that names the message
 * (`messages.3.to`); a violated sending rule fails only that message.
 */
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import { hasTags } from '../../content/rendering/mail-plan.js'
import { AppError } from '../../core/errors.js'
import { nextTurn } from '../../world/time/clock.js'
import type { BatchError } from '../batch-store.js'
import { withLongDecoded } from './fields/attachment-fields.js'
import { readContentFields, type ReadContent } from './fields/content-fields.js'
import { invalidField } from './fields/field-fault.js'
import { readRecipientFields, shownRecipient, type Recipients } from './fields/recipient-fields.js'
import { readSenderFields, withWorkspaceSender } from './fields/sender-fields.js'
import {
  findAskedTemplate,
  readElsewhere,
  tryElsewhere,
  type AskedTemplate,
  type KnownReadable,
} from '../merged-content.js'
import { fillFields, readTemplateData } from './fields/template-fields.js'
import type { RenderQueue } from '../../content/rendering/render-queue.js'
import type { SendParts } from './send-email.js'
import { MOST_BATCH_COPIES, type BatchMessage } from './send-schema.js'
import type { Author, Sender } from '../sender.js'

/** A valid message of a batch. */
export interface ReadMessage extends Recipients, Pick<ReadContent, 'attached'> {
  /** Position in the batch, from 0. */
  readonly index: number
  readonly sender: Sender
  readonly content: ReturnType<typeof fillFields>
}

export interface ReadMessages {
  readonly messages: readonly ReadMessage[]
  readonly errors: readonly BatchError[]
}

/** Messages read before yielding to the event loop. */
const READ_AT_ONCE = 50
/** Characters of text with merge tags read before yielding. */
const CHARACTERS_AT_ONCE = 262_144

/** @throws AppError validation_error */
export async function readBatchMessages(
  parts: SendParts,
  workspace: ActingWorkspace,
  messages: readonly BatchMessage[],
): Promise<ReadMessages> {
  refuseTooManyCopies(messages)
  const finders = openFinders(parts, workspace)
  const read: ReadMessage[] = []
  const errors: BatchError[] = []
  let [waiting, characters] = [0, 0]
  for (const [index, message] of messages.entries()) {
    if (++waiting >= READ_AT_ONCE || characters >= CHARACTERS_AT_ONCE) {
      await nextTurn()
      waiting = characters = 0
    }
    characters += taggedLength(message)
    try {
      const one = await readMessage(index, message, parts.messageLimit, finders)
      // Results do not list copies, so a skipped one would go unnoticed.
      if (one.copyFault === undefined) read.push(one)
      else
        errors.push({
          index,
          to: shownRecipient(message.to),
          code: 'validation_error',
          message: one.copyFault,
        })
    } catch (error) {
      errors.push(toBatchError(error, index, shownRecipient(message.to)))
    }
  }
  return { messages: read, errors }
}

/** Copies are stored and queued like other recipients, in the batch's one transaction. */
function refuseTooManyCopies(messages: readonly BatchMessage[]): void {
  let copies = 0
  for (const [index, { cc = [], bcc = [] }] of messages.entries()) {
    copies += [cc].flat().length + [bcc].flat().length
    if (copies > MOST_BATCH_COPIES)
      throw invalidField(
        `messages.${index}`,
        `messages.${index}: cc and bcc of all messages together must have at most ${MOST_BATCH_COPIES} addresses`,
      )
  }
}

/** Caches lookups that messages of a batch share, including failed ones. */
interface Finders {
  readonly workspace: ActingWorkspace
  readonly sender: (asked: Author) => Promise<Sender>
  readonly template: (id: string | undefined) => Promise<AskedTemplate | undefined>
  readonly readable: KnownReadable
  readonly renderQueue: RenderQueue | undefined
}

async function readMessage(
  index: number,
  message: BatchMessage,
  messageLimit: number,
  finders: Finders,
): Promise<ReadMessage> {
  const { workspace, readable, renderQueue } = finders
  const recipients = readRecipientFields(message, true)
  const senderFields = readSenderFields(message)
  await readElsewhere(renderQueue, workspace.id, message, readable)
  const { content: fields, attached } = readContentFields(
    await withLongDecoded(message),
    messageLimit,
    readable,
  )
  const data = readTemplateData(message)
  // Order of checks in the contract: sender address, template, sender domain.
  const asked = withWorkspaceSender(senderFields, workspace)
  const template = await finders.template(message.template_id)
  const written = { html: fields.html ?? template?.html, text: fields.text }
  const isTried = await tryElsewhere(renderQueue, workspace.id, written, data)
  const content = fillFields(workspace, fields, template, data, message, isTried)
  const sender = await finders.sender(asked)
  return { index, ...recipients, content, attached, sender }
}

function openFinders({ senders, database, renderQueue }: SendParts, workspace: ActingWorkspace): Finders {
  const sender = once(
    ({ fromAddress, name, replyTo }: Author) => JSON.stringify([fromAddress, name, replyTo]),
    asked => senders.sender(workspace, asked),
  )
  const template = once(
    (id: string | undefined) => id ?? '',
    id => findAskedTemplate(database.reader, workspace, id),
  )
  return { workspace, sender, template, readable: new Map(), renderQueue }
}

function once<A, R>(nameOf: (asked: A) => string, find: (asked: A) => Promise<R>): (asked: A) => Promise<R> {
  const known = new Map<string, Promise<R>>()
  return asked => {
    const name = nameOf(asked)
    const found = known.get(name) ?? find(asked)
    known.set(name, found)
    return found
  }
}

function taggedLength({ html = '', text = '' }: BatchMessage): number {
  return (hasTags(html) ? html.length : 0) + (hasTags(text) ? text.length : 0)
}

/** @throws AppError validation_error, which fails the whole batch, its path prefixed with the message */
function toBatchError(error: unknown, index: number, to: string): BatchError {
  if (!(error instanceof AppError)) throw error
  const { code, message, path } = error
  if (code !== 'validation_error') return { index, to, code, message }
  const place = `messages.${index}`
  const whole = path === undefined ? place : `${place}.${path}`
  throw new AppError(code, path === undefined ? message : message.replace(path, whole), { path: whole })
}
