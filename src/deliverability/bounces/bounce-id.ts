/**
 * The id of a message's bounce: follows from the message and the moment, so that whoever tells of a bounce names it as the one who
 * records it does, whichever of them comes first. Sorts by the moment as all ids do. Pure.
 */
import { createHash } from 'node:crypto'
import { uuidv7 } from '../../core/ids.js'

/** @param occurredAt ms since epoch UTC */
export function bounceIdOf({
  messageId,
  occurredAt,
}: {
  readonly messageId: string
  readonly occurredAt: number
}): string {
  return uuidv7(occurredAt, createHash('sha256').update(`bounce of ${messageId}`).digest())
}
