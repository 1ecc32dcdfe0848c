/**
 * Addresses seen in a file, with the line of their first occurrence: twelve octets each.
 *
 * Called by the reader thread. Addresses are compared by a 64-bit hash. In one of ten million files with two million rows, two
 * addresses collide, and one row is wrongly rejected as a repetition. Pure.
 */
const FIRST_SLOTS = 1_024
/** Load factor; above it, probing gets slow. */
const MAX_FILLED = 0.6

export class SeenAddresses {
  private high = new Uint32Array(FIRST_SLOTS)
  private low = new Uint32Array(FIRST_SLOTS)
  /** 0 marks a free slot. */
  private lines = new Uint32Array(FIRST_SLOTS)
  private count = 0

  /** Records an address. @returns the line of its first occurrence; undefined if it is new */
  see(email: string, line: number): number | undefined {
    if (this.count >= this.lines.length * MAX_FILLED) this.grow()
    const [high, low] = hashOf(email)
    const slot = this.slotOf(high, low)
    const known = this.lines[slot]
    if (known !== undefined && known !== 0) return known
    this.put(slot, high, low, line)
    this.count += 1
    return undefined
  }

  private put(slot: number, high: number, low: number, line: number): void {
    this.high[slot] = high
    this.low[slot] = low
    this.lines[slot] = line
  }

  /** The address's slot, or the free one where it belongs. */
  private slotOf(high: number, low: number): number {
    const mask = this.lines.length - 1
    let slot = low & mask
    while (this.lines[slot] !== 0 && (this.high[slot] !== high || this.low[slot] !== low))
      slot = (slot + 1) & mask
    return slot
  }

  private grow(): void {
    const { high, low, lines } = this
    const slots = 2 * lines.length
    this.high = new Uint32Array(slots)
    this.low = new Uint32Array(slots)
    this.lines = new Uint32Array(slots)
    for (const [slot, line] of lines.entries()) {
      if (line === 0) continue
      const [h = 0, l = 0] = [high[slot], low[slot]]
      this.put(this.slotOf(h, l), h, l, line)
    }
  }
}

/** Two multiplications per character, finalized as in MurmurHash3. */
function hashOf(text: string): [high: number, low: number] {
  let [high, low] = [0xdeadbeef, 0x41c6ce57]
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    high = Math.imul(high ^ code, 0x9e3779b1)
    low = Math.imul(low ^ code, 0x5f356495)
  }
  high = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35)
  low = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35)
  return [high >>> 0, low >>> 0]
}
