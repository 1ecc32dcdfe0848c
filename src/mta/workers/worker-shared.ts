/**
 * What one delivery thread has been given to keep: the server's account of it, and the means not to give it many times.
 *
 * Called by `worker-thread.ts`, one account per thread. The server alone decides what is kept and what is dropped, so
 * the thread never has to ask. Most contents are of one message: what is asked for the first time goes along with its job
 * and is forgotten with it, and only what is asked for again is kept. (What is kept grows old in the garbage collector's
 * eyes, and to get rid of it costs as much as half a signature.) Fails: never throws.
 */
import type { Instruction, SharedValue } from './worker-protocol.js'

/**
 * For one thread. Some 80 newsletters of 50 KB; the queue's own cache of contents is as large as two of these.
 * What is dropped while it is still wanted is only sent again.
 */
const KEPT_BYTES = 8 * 1_024 * 1_024
/** Values of which it is known that they were asked for. */
const KNOWN = 4_096

/** The same object has the same number in every thread, for as long as somebody holds it. */
const numbers = new WeakMap<SharedValue, number>()
let lastNumber = 0

export class SharedAccount {
  /** Bytes by number; used longest ago first. */
  private readonly kept = new Map<number, number>()
  private bytes = 0
  /** Numbers of what was asked for once; longest ago first. */
  private readonly askedOnce = new Set<number>()

  /**
   * Adds what the thread needs to be told before it can use the value.
   *
   * @returns the value's number; the value itself where it is not kept
   */
  give<V extends SharedValue>(value: V, instructions: Instruction[]): number | V {
    const id = numberOf(value)
    const known = this.kept.get(id)
    if (known === undefined && !this.askedOnce.delete(id)) {
      this.note(id)
      return value
    }
    const bytes = known ?? bytesOf(value)
    if (known === undefined) {
      instructions.push({ kind: 'keep', id, value })
      this.bytes += bytes
    }
    this.kept.delete(id)
    this.kept.set(id, bytes)
    return id
  }

  private note(id: number): void {
    this.askedOnce.add(id)
    const [oldest] = this.askedOnce
    if (this.askedOnce.size > KNOWN && oldest !== undefined) this.askedOnce.delete(oldest)
  }

  /** To be called when every job that uses what was given has been added. */
  dropOldest(instructions: Instruction[]): void {
    for (const [id, bytes] of this.kept) {
      if (this.bytes <= KEPT_BYTES) break
      instructions.push({ kind: 'drop', id })
      this.kept.delete(id)
      this.bytes -= bytes
    }
  }
}

function numberOf(value: SharedValue): number {
  const known = numbers.get(value)
  if (known !== undefined) return known
  lastNumber += 1
  numbers.set(value, lastNumber)
  return lastNumber
}

/** Strings take up to two bytes a character in memory; the rest is rounded up. */
function bytesOf(value: SharedValue): number {
  if (!('kind' in value)) return textBytes(value.map(key => key.privateKey))
  const data = value.merging?.data === undefined ? '' : JSON.stringify(value.merging.data)
  if (value.kind === 'relayed') return value.message.length + textBytes([data, value.letter?.html ?? ''])
  const { subject, html = '', text = '', headers = [], attachments = [] } = value
  const attached = attachments.reduce((sum, { octets }) => sum + octets.length, 0)
  return textBytes([subject, html, text, data, ...headers.map(header => header.value)]) + attached
}

function textBytes(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + 2 * text.length, 1_000)
}
