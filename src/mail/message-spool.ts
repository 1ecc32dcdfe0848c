/**
 * Buffers an incoming message in memory up to one part, and writes it to a store in parts beyond that, so that messages of any size need
 * little memory. Calls are sequential, like those of a `MailTransaction`. Errors of the store propagate; data passed to it is then no
 * longer buffered.
 */

/** Maximum octets of a part, and of memory used per message. */
export const PART_OCTETS = 256 * 1_024

/** More pieces than this are concatenated: tiny Buffers would take a hundred times their size. */
const MAX_PIECES = 256

export interface PartStore {
  /** Resolves once the part is stored. @param part 0, 1, ... in order */
  write(part: number, octets: Buffer): Promise<void>
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

  get bufferedBytes(): number {
    return this.octets
  }

  get writtenBytes(): number {
    return this.octetsInParts
  }

  /** Also the number of the next part. */
  get partsWritten(): number {
    return this.parts
  }

  /** @param piece is copied; the caller may reuse its memory */
  add(piece: Buffer): void {
    this.pieces.push(Buffer.from(piece))
    this.octets += piece.length
    if (this.pieces.length === MAX_PIECES) this.pieces = [concat(this.pieces)]
  }

  /** Removes and returns the first `octets` octets, or everything. */
  take(octets = this.octets): Buffer {
    const all = concat(this.pieces)
    // Copied: a view would keep the removed octets in memory.
    this.pieces = octets < all.length ? [Buffer.from(all.subarray(octets))] : []
    this.octets = Math.max(0, this.octets - octets)
    return all.subarray(0, octets)
  }

  async writeWholeParts(): Promise<void> {
    while (this.octets >= PART_OCTETS) await this.write(PART_OCTETS)
  }

  /** Writes the first `octets` octets as one part, or everything, if not empty. */
  async write(octets = this.octets): Promise<void> {
    if (octets === 0) return
    const part = this.take(octets)
    // Counted first, so that a part that failed halfway is removed too.
    this.parts += 1
    this.octetsInParts += part.length
    await this.store.write(this.parts - 1, part)
  }

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
