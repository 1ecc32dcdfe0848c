/**
 * A message while it arrives: held in memory up to one part, and written away part by part beyond that, so that a message of
 * any size takes little memory.
 *
 * Used by those who take mail by SMTP (`smtp/receiver.ts`). Knows no database: where parts go is its owner's to say. Calls come
 * one at a time, as those of a `MailTransaction` do. Fails: as the owner's functions do; what was handed to `write` is no longer
 * held then.
 */

/** Octets of one part at most; also what a message takes in memory while it arrives. */
export const PART_OCTETS = 256 * 1_024

/** Held one by one; more are joined, since octet by octet each would take a hundred times its size. */
const MAX_PIECES = 256

export interface PartStore {
  /** Resolves once the part is stored. @param part 0 for the first that is written, then in order */
  write(part: number, octets: Buffer): Promise<void>
  /** Deletes what was written. */
  remove(): Promise<void>
}

export class MessageSpool {
  private readonly store: PartStore
  private pieces: Buffer[] = []
  private octets = 0
  private parts = 0
  private octetsInParts = 0

  constructor(store: PartStore) {
    this.store = store
  }

  /** Octets in memory. */
  get bufferedBytes(): number {
    return this.octets
  }

  /** Octets handed to the store. */
  get writtenBytes(): number {
    return this.octetsInParts
  }

  /** Parts handed to the store; the number of the next one. */
  get partsWritten(): number {
    return this.parts
  }

  /** @param piece is copied: whoever has it may use its memory again */
  add(piece: Buffer): void {
    this.pieces.push(Buffer.from(piece))
    this.octets += piece.length
    if (this.pieces.length === MAX_PIECES) this.pieces = [concat(this.pieces)]
  }

  /** Cuts so many octets off the front, or all that are held. */
  take(octets = this.octets): Buffer {
    const all = concat(this.pieces)
    // Its own memory: a window would keep what was cut off.
    this.pieces = octets < all.length ? [Buffer.from(all.subarray(octets))] : []
    this.octets = Math.max(0, this.octets - octets)
    return all.subarray(0, octets)
  }

  /** Writes all that makes whole parts. */
  async writeWholeParts(): Promise<void> {
    while (this.octets >= PART_OCTETS) await this.write(PART_OCTETS)
  }

  /** Writes so many octets off the front as one part, or all that are held, if any. */
  async write(octets = this.octets): Promise<void> {
    if (octets === 0) return
    const part = this.take(octets)
    // Counted before: what failed halfway is removed as well.
    this.parts += 1
    this.octetsInParts += part.length
    await this.store.write(this.parts - 1, part)
  }

  /** The message is given up: nothing is held, and what was written is removed. Not for one that was accepted. */
  async discard(): Promise<void> {
    this.pieces = []
    this.octets = 0
    if (this.parts > 0) await this.store.remove()
  }
}

function concat(pieces: readonly Buffer[]): Buffer {
  const [only] = pieces
  return pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces)
}
