/**
 * Reads the messages of a batch: each one by the rules of a single send.
 *
 * Called by `batch-send.ts` before anything is stored. What the schema or the fields refuse fails the whole request, its path
 * naming the message (`messages.3.to`); what the rules of the business refuse fails that message alone.
 */
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import { AppError } from '../../core/errors.js'
import { nextTurn } from '../../world/time/clock.js'
import type { BatchError } from '../batch-store.js'
import { withLongDecoded } from './fields/attachment-fields.js'
import { readContentFields, type ReadContent } from './fields/content-fields.js'
import { invalidField } from './fields/field-fault.js'
import { readRecipientFields, shownRecipient, type Recipients } from './fields/recipient-fields.js'
import { readSenderFields, withWorkspaceSender } from './fields/sender-fields.js'
import { refuseTemplate, type SendParts } from './send-email.js'
import { MOST_BATCH_COPIES, type BatchMessage } from './send-schema.js'
import type { Sender } from '../sender.js'
import type { SenderCache } from '../sender-cache.js'

/** A message of a batch that may be accepted. */
export interface ReadMessage extends Recipients, ReadContent {
  /** From 0, within the batch. */
  readonly index: number
  readonly sender: Sender
  readonly trackOpens: boolean
  readonly trackClicks: boolean
}

export interface ReadMessages {
  readonly messages: readonly ReadMessage[]
  readonly errors: readonly BatchError[]
}

/** Messages read before other requests have their turn. */
const READ_AT_ONCE = 50

/** @throws AppError validation_error */
export async function readBatchMessages(
  parts: SendParts,
  workspace: ActingWorkspace,
  messages: readonly BatchMessage[],
): Promise<ReadMessages> {
  refuseTooManyCopies(messages)
  const findSender = senderFinder(parts.senders, workspace)
  const read: ReadMessage[] = []
  const errors: BatchError[] = []
  for (const [index, message] of messages.entries()) {
    if (index % READ_AT_ONCE === READ_AT_ONCE - 1) await nextTurn()
    try {
      const one = await readMessage(index, message, parts.messageLimit, findSender)
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

type FindSender = (message: BatchMessage) => Promise<Sender>

async function readMessage(
  index: number,
  message: BatchMessage,
  messageLimit: number,
  findSender: FindSender,
): Promise<ReadMessage> {
  const recipients = readRecipientFields(message, true)
  const content = readContentFields(await withLongDecoded(message), messageLimit)
  // In the contract's order: the sender's address, the template, the sender's domain.
  const sender = await findSender(message)
  const { track_opens: trackOpens = true, track_clicks: trackClicks = true } = message
  return { index, ...recipients, ...content, sender, trackOpens, trackClicks }
}

/** The messages of a batch mostly have the same sender, who is looked up once, and refused once. */
function senderFinder(senders: SenderCache, workspace: ActingWorkspace): FindSender {
  const known = new Map<string, Promise<Sender>>()
  return message => {
    const asked = withWorkspaceSender(readSenderFields(message), workspace)
    refuseTemplate(message)
    const name = JSON.stringify([asked.fromAddress, asked.name, asked.replyTo])
    const found = known.get(name) ?? senders.sender(workspace, asked)
    known.set(name, found)
    return found
  }
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
