/**
 * Reads the messages of a batch: each one by the rules of a single send.
 *
 * Called by `batch-send.ts` before anything is stored. What the schema or the fields refuse fails the whole request, its path
 * naming the message (`messages.3.to`); what the rules of the business refuse fails that message alone.
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
import type { RenderDesk } from '../../content/rendering/render-desk.js'
import type { SendParts } from './send-email.js'
import { MOST_BATCH_COPIES, type BatchMessage } from './send-schema.js'
import type { Author, Sender } from '../sender.js'

/** A message of a batch that may be accepted. */
export interface ReadMessage extends Recipients, Pick<ReadContent, 'attached'> {
  /** From 0, within the batch. */
  readonly index: number
  readonly sender: Sender
  readonly content: ReturnType<typeof fillFields>
}

export interface ReadMessages {
  readonly messages: readonly ReadMessage[]
  readonly errors: readonly BatchError[]
}

/** Messages read before other requests have their turn. */
const READ_AT_ONCE = 50
/** The same for merge tags: characters that they stand in. */
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
      // Nothing tells of copies one by one, so that one left out would be left out silently.
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

/** Who gets a copy is stored, queued and mailed like everybody else, in the one transaction of the batch. */
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

/** What many messages of a batch have in common is looked up once, and refused once. */
interface Finders {
  readonly workspace: ActingWorkspace
  readonly sender: (asked: Author) => Promise<Sender>
  readonly template: (id: string | undefined) => Promise<AskedTemplate | undefined>
  readonly readable: KnownReadable
  readonly renderDesk: RenderDesk | undefined
}

async function readMessage(
  index: number,
  message: BatchMessage,
  messageLimit: number,
  finders: Finders,
): Promise<ReadMessage> {
  const { workspace, readable, renderDesk } = finders
  const recipients = readRecipientFields(message, true)
  const senderFields = readSenderFields(message)
  await readElsewhere(renderDesk, workspace.id, message, readable)
  const { content: fields, attached } = readContentFields(
    await withLongDecoded(message),
    messageLimit,
    readable,
  )
  const data = readTemplateData(message)
  // In the contract's order: the sender's address, the template, the sender's domain.
  const asked = withWorkspaceSender(senderFields, workspace)
  const template = await finders.template(message.template_id)
  const written = { html: fields.html ?? template?.html, text: fields.text }
  const isTried = await tryElsewhere(renderDesk, workspace.id, written, data)
  const content = fillFields(workspace, fields, template, data, message, isTried)
  const sender = await finders.sender(asked)
  return { index, ...recipients, content, attached, sender }
}

function openFinders({ senders, database, renderDesk }: SendParts, workspace: ActingWorkspace): Finders {
  const sender = once(
    ({ fromAddress, name, replyTo }: Author) => JSON.stringify([fromAddress, name, replyTo]),
    asked => senders.sender(workspace, asked),
  )
  const template = once(
    (id: string | undefined) => id ?? '',
    id => findAskedTemplate(database.reader, workspace, id),
  )
  return { workspace, sender, template, readable: new Map(), renderDesk }
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

/** @throws whatever fails the whole batch, its path naming the message */
function toBatchError(error: unknown, index: number, to: string): BatchError {
  if (!(error instanceof AppError)) throw error
  const { code, message, path } = error
  if (code !== 'validation_error') return { index, to, code, message }
  const place = `messages.${index}`
  const whole = path === undefined ? place : `${place}.${path}`
  throw new AppError(code, path === undefined ? message : message.replace(path, whole), { path: whole })
}
