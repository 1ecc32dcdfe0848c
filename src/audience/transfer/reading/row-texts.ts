/**
 * The serialized rows of a run, stored outside the heap: tens of thousands of short-lived strings would burden the garbage collector.
 *
 * Filled and sorted by `address-runs.ts`, sent by `row-teller.ts`. Pure.
 */
import type { Rejection } from '../import.js'
import type { SaidRow } from './read-row.js'
import { rowText } from './row-text.js'

const FIRST_OCTETS = 1_048_576
const [OPEN, COMMA, CLOSE] = [0x5b, 0x2c, 0x5d]

export class RowTexts {
  private text = Buffer.allocUnsafeSlow(FIRST_OCTETS)
  /** Start of each row, and the end of the last. */
  private readonly starts = [0]
  /** Row numbers in sorted order; undefined for insertion order. */
  private inOrder: Uint32Array | undefined

  get count(): number {
    return this.starts.length - 1
  }

  get octets(): number {
    return this.starts.at(-1) ?? 0
  }

  add(row: SaidRow | Rejection): void {
    const text = rowText(row)
    const start = this.octets
    // The maximum in UTF-8.
    const most = 3 * text.length
    if (start + most > this.text.length) this.grow(start + most)
    this.starts.push(start + this.text.write(text, start))
  }

  /** @param compare compares row numbers */
  order(compare: (one: number, other: number) => number): void {
    this.inOrder = Uint32Array.from({ length: this.count }, (_, at) => at).sort(compare)
  }

  /** Rows in order, as a JSON array. */
  piece(from: number, to: number): Uint8Array<ArrayBuffer> {
    const end = Math.min(to, this.count)
    let octets = 2 + Math.max(0, end - from - 1)
    for (let at = from; at < end; at += 1) octets += this.lengthOf(this.rowAt(at))
    const piece = Buffer.allocUnsafeSlow(octets)
    piece[0] = OPEN
    let written = 1
    for (let at = from; at < end; at += 1) {
      if (at > from) piece[written++] = COMMA
      const row = this.rowAt(at)
      const start = this.starts[row] ?? 0
      written += this.text.copy(piece, written, start, start + this.lengthOf(row))
    }
    piece[written] = CLOSE
    return piece
  }

  private rowAt(at: number): number {
    return this.inOrder?.[at] ?? at
  }

  private lengthOf(row: number): number {
    return (this.starts[row + 1] ?? 0) - (this.starts[row] ?? 0)
  }

  private grow(least: number): void {
    const text = Buffer.allocUnsafeSlow(Math.max(2 * this.text.length, least))
    this.text.copy(text, 0, 0, this.octets)
    this.text = text
  }
}
