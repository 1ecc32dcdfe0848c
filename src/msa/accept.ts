/**
 * Takes letters in: stores them, queues what is mailed, and tells the event log, in the transaction of its caller.
 *
 * Called by `submit.ts` for one letter and by `batch-send.ts` for up to a thousand, whose rows are then inserted together.
 * Decides nothing: who is mailed, from whom and when was settled before. Fails: as the database does.
 */
import type { NewId } from '../core/ids.js'
import type { Tx } from '../db/database.js'
import type { Event } from '../events/event.js'
import { appendEvents } from '../events/store.js'
import { insertContents, insertPart, isLargeContent, type MessageContent } from '../messages/content-store.js'
import { PART_OCTETS } from '../mail/message-spool.js'
import { laneKey } from '../queue/lane.js'
import { originOf, priorityOf, type MailOrigin } from '../messages/mail-origin.js'
import { insertAllMessages } from '../messages/message-store.js'
import type { MessageStatus } from '../messages/message-status.js'
import { insertQueueEntries } from '../queue/queue-store.js'
import { nextTurn } from '../world/time/clock.js'
import type { Letter, Submitted } from './letter.js'
import type { Recipient } from './recipients.js'
import { simulate } from './sandbox/simulator.js'

export interface AcceptParts {
  readonly newId: NewId
  /** How long a message is tried before it is given up, ms. */
  readonly expireMs: number
  /** Tells the queue that mail in this lane was committed. */
  readonly onEnqueued: (lane: string, dueAt: number) => void
  /** Gives the queue a content that was just committed, so that it need not read it back. */
  readonly onStored?: (content: MessageContent) => void
  /** Tells the consumers of the event log of what settles nothing later on: suppressed recipients, a sandbox's outcomes. */
  readonly onSuppressed?: () => void
  /** Tells that mail of a sandbox waits for this moment, ms since epoch UTC. */
  readonly onSandboxScheduled?: (dueAt: number) => void
}

/**
 * Messages stored before sockets and timers have their turn, or one letter's where that has more. Who writes waits until all
 * are stored; who reads sees none of them meanwhile.
 */
const MESSAGES_AT_ONCE = 64
/** The same for letters that are long: characters of their text. */
const CHARACTERS_AT_ONCE = 1_048_576

/** @param now ms since epoch UTC @param isSandbox stores, and queues nothing */
export async function acceptLetters(
  tx: Tx,
  parts: AcceptParts,
  letters: readonly Letter[],
  isSandbox: boolean,
  now: number,
): Promise<void> {
  for (const [index, some] of inTurns(letters).entries()) {
    if (index > 0) await nextTurn()
    await acceptSome(tx, parts, some, isSandbox, now)
  }
}

function inTurns(letters: readonly Letter[]): Letter[][] {
  const turns: Letter[][] = []
  let [messages, characters] = [MESSAGES_AT_ONCE, 0]
  for (const letter of letters) {
    const { content, submitted } = letter
    if (messages + submitted.length > MESSAGES_AT_ONCE || characters >= CHARACTERS_AT_ONCE) {
      turns.push([])
      messages = characters = 0
    }
    turns.at(-1)?.push(letter)
    messages += submitted.length
    characters += (content.html?.length ?? 0) + (content.text?.length ?? 0)
  }
  return turns
}

async function acceptSome(
  tx: Tx,
  parts: AcceptParts,
  letters: readonly Letter[],
  isSandbox: boolean,
  now: number,
): Promise<void> {
  await insertContents(
    tx.db,
    letters.map(({ content }) => content),
  )
  for (const { content, attached } of letters)
    if (attached && attached.length > 0)
      await insertPart(tx.db, content.id, 1, attached.subarray(0, PART_OCTETS))
  await insertAllMessages(tx.db, isSandbox, letters.map(toMessages))
  if (!isSandbox) await enqueue(tx, parts, letters, now)
  await appendEvents(
    tx,
    letters.flatMap(({ content, submitted }) => {
      const origin = originOf(content)
      return submitted.flatMap(one => toEvent(one, content, origin, isSandbox))
    }),
  )
  const simulated = isSandbox ? await simulate(tx, letters, now) : undefined
  const waitsUntil = simulated?.firstDueAt
  if (waitsUntil !== undefined) tx.onCommit(() => parts.onSandboxScheduled?.(waitsUntil))
  if (
    simulated?.hasPlayed ||
    letters.some(({ submitted }) => submitted.some(({ skip }) => skip === 'suppressed'))
  )
    tx.onCommit(() => parts.onSuppressed?.())
}

function toMessages({ content, submitted, reporting }: Letter) {
  const messages = submitted.map(one => ({
    id: one.messageId,
    recipient: one.address,
    status: firstStatus(one, content),
    reason: one.skip,
    ...reporting?.get(one.asked),
  }))
  return { content, messages }
}

function firstStatus({ skip }: Recipient, { scheduledAt }: MessageContent): MessageStatus {
  if (skip === null) return scheduledAt === undefined ? 'sent' : 'scheduled'
  return skip === 'suppressed' ? 'suppressed' : 'failed'
}

async function enqueue(tx: Tx, parts: AcceptParts, letters: readonly Letter[], now: number): Promise<void> {
  const firstDue = new Map<string, number>()
  const entries = letters.flatMap(({ content, submitted, dueAt, reporting }) => {
    const priority = priorityOf(content)
    const isLarge = isLargeContent(content)
    return submitted
      .filter(one => one.skip === null)
      .map(one => {
        const lane = laneKey(one.destination, priority, content.workspaceId, isLarge)
        firstDue.set(lane, Math.min(dueAt, firstDue.get(lane) ?? Infinity))
        const notify = reporting?.get(one.asked)?.notify
        return {
          messageId: one.messageId,
          workspaceId: content.workspaceId,
          destination: one.destination,
          priority,
          nextAttemptAt: dueAt,
          expiresAt: dueAt + parts.expireMs,
          enqueuedAt: now,
          contentId: content.id,
          recipient: one.address,
          isLarge,
          ...(notify === undefined ? {} : { notify }),
        }
      })
  })
  await insertQueueEntries(tx.db, entries)
  tx.onCommit(() => {
    for (const { content, dueAt } of letters) if (dueAt <= now) parts.onStored?.(content)
    for (const [lane, dueAt] of firstDue) parts.onEnqueued(lane, dueAt)
  })
}

function toEvent(one: Submitted, content: MessageContent, origin: MailOrigin, isSandbox: boolean): Event[] {
  const head = {
    workspaceId: content.workspaceId,
    messageId: one.messageId,
    isSandbox,
    occurredAt: content.createdAt,
    payload: { to: one.address, ...origin },
  }
  if (one.skip === null) return [{ ...head, kind: 'email.accepted' }]
  return one.skip === 'suppressed' ? [{ ...head, kind: 'email.suppressed' }] : []
}
