/**
 * Scans incoming message data: finds its end, undoes dot-stuffing, checks line endings and sizes.
 *
 * Works on the caller's buffer and copies nothing, except to close the gaps of removed dots. A message ends at CRLF.CRLF only. A bare CR or
 * LF is an error anywhere in the message: servers disagree on its meaning, which lets a second message be smuggled in (CVE-2023-51764).
 * Standards: RFC 5321 §2.3.8, §4.1.1.4, §4.5.2.
 *
 * ```
 * line start   '.' (DATA only) -> after dot      anything else -> in line
 * after dot    CR -> after dot CR                anything else -> in line          (the dot is removed either way)
 * after dot CR LF -> message complete            anything else -> error, in line
 * in line      CRLF -> line start                bare CR or LF -> error
 * after CR     (last octet of a piece) LF -> line start; anything else -> error, in line
 * ```
 */

/** The first error of a message counts. */
export type MessageFault = 'line-end' | 'nul' | 'line-length' | 'header-size' | 'message-size'

export interface ScanLimits {
  /** Octets. */
  readonly messageSize: number
  readonly textLine: number
  readonly header: number
}

type State = 'line start' | 'after dot' | 'after dot CR' | 'in line' | 'after CR'

const NUL = 0
const LF = 10
const CR = 13
const DOT = 46

export class MessageScanner {
  private readonly limits: ScanLimits
  private readonly isDotStuffed: boolean
  private state: State = 'line start'
  private lineLength = 0
  private isInHeader = true

  /** Whether the final dot was found; never with BDAT. */
  isComplete = false
  fault: MessageFault | undefined
  /** Octets of the message so far. */
  size = 0
  /** The part of the last buffer that belongs to the message: `[keptFrom, keptTo)`. Empty after an error. */
  keptFrom = 0
  keptTo = 0

  /** @param isDotStuffed true for DATA, false for BDAT, which is counted */
  constructor(limits: ScanLimits, isDotted: boolean) {
    this.limits = limits
    this.isDotStuffed = isDotted
  }

  /** True before the first octet as well. */
  get isAtLineStart(): boolean {
    return this.state === 'line start'
  }

  /**
   * Scans from `from` to the end of the buffer. Moves octets within the buffer, which the caller must own.
   *
   * @returns where the message ends in this buffer; the buffer's length if it continues
   */
  scan(octets: Buffer, from: number): number {
    this.keptFrom = this.keptTo = from
    const nul = octets.indexOf(NUL, from)
    const end = this.walk(octets, from)
    if (nul !== -1 && nul < end) this.fail('nul')
    if (this.fault !== undefined) this.keptTo = this.keptFrom
    return end
  }

  /** The end of BDAT data: a trailing CR is a bare one. */
  end(): void {
    if (this.state === 'after CR') this.fail('line-end')
  }

  private walk(octets: Buffer, from: number): number {
    const to = octets.length
    let at = from
    while (at < to) {
      switch (this.state) {
        case 'line start':
          this.lineLength = 0
          if (this.isDotStuffed && octets[at] === DOT) {
            this.state = 'after dot'
            at += 1
          } else {
            this.state = 'in line'
          }
          break
        case 'after dot':
          if (octets[at] === CR) {
            this.state = 'after dot CR'
            at += 1
          } else {
            this.state = 'in line'
          }
          break
        case 'after dot CR':
          if (octets[at] === LF) {
            this.isComplete = true
            this.state = 'line start'
            return at + 1
          }
          this.fail('line-end')
          this.state = 'in line'
          break
        case 'after CR':
          if (octets[at] === LF) {
            this.keep(octets, at, at + 1)
            at += 1
            this.endLine()
          } else {
            this.fail('line-end')
            this.state = 'in line'
          }
          break
        case 'in line':
          at = this.walkLine(octets, at)
          break
      }
    }
    return to
  }

  /** Scans to the end of the line or of the buffer, with native searches only. */
  private walkLine(octets: Buffer, at: number): number {
    const to = octets.length
    const lf = octets.indexOf(LF, at)
    const stop = lf === -1 ? to : lf + 1
    const endsInCr = lf === -1 ? octets[to - 1] === CR : lf > at && octets[lf - 1] === CR
    if (this.fault === undefined) {
      const cr = octets.indexOf(CR, at)
      const lastCr = endsInCr ? (lf === -1 ? to : lf) - 1 : stop
      if (cr !== -1 && cr < lastCr) this.fail('line-end')
      else if (lf !== -1 && !endsInCr) this.fail('line-end')
      else this.keep(octets, at, stop)
    }
    if (lf === -1) this.state = endsInCr ? 'after CR' : 'in line'
    else if (endsInCr) this.endLine()
    return stop
  }

  private endLine(): void {
    // RFC 5322 §2.1: an empty line ends the header.
    if (this.lineLength === 2) this.isInHeader = false
    this.state = 'line start'
  }

  private keep(octets: Buffer, from: number, to: number): void {
    const length = to - from
    this.size += length
    this.lineLength += length
    if (this.size > this.limits.messageSize) this.fail('message-size')
    else if (this.lineLength > this.limits.textLine) this.fail('line-length')
    else if (this.isInHeader && this.size > this.limits.header) this.fail('header-size')
    if (this.keptTo === from) {
      this.keptTo = to
    } else if (this.keptTo === this.keptFrom) {
      this.keptFrom = from
      this.keptTo = to
    } else {
      octets.copyWithin(this.keptTo, from, to)
      this.keptTo += length
    }
  }

  private fail(fault: MessageFault): void {
    this.fault ??= fault
  }
}
