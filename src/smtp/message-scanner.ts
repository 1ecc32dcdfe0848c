/**
 * Finds the end of a message in the octets that come in, undoes dot-stuffing, and watches over line ends and lengths.
 *
 * Called by `envelope.ts` for each piece of DATA and BDAT. Works on the buffer it is given and copies nothing, except to
 * close the gaps of removed dots; keeps a state and no octets. A message ends at CR LF . CR LF and at nothing else: a CR
 * or LF by itself is a fault of the message wherever it stands, since servers disagree on what it means and a second
 * message can hide behind that (SMTP smuggling, CVE-2023-51764). Standards: RFC 5321 §2.3.8, §4.1.1.4, §4.5.2.
 *
 * ```
 * line start   '.' (DATA only) -> after dot      anything else -> in line
 * after dot    CR -> after dot CR                anything else -> in line          (the dot is dropped either way)
 * after dot CR LF -> the message is complete     anything else -> fault, in line
 * in line      CR LF -> line start               CR or LF alone -> fault
 * after CR     (the last octet of a piece) LF -> line start; anything else -> fault, in line
 * ```
 */

/** What is wrong with a message; the first fault counts. */
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
  private readonly isDotted: boolean
  private state: State = 'line start'
  private lineLength = 0
  private isInHeader = true

  /** Whether the final dot was seen; never with BDAT. */
  isComplete = false
  fault: MessageFault | undefined
  /** Octets of the message so far. */
  size = 0
  /** The part of the last buffer that belongs to the message: `[keptFrom, keptTo)`. Empty once there is a fault. */
  keptFrom = 0
  keptTo = 0

  /** @param isDotted true for DATA, false for BDAT, whose end is counted */
  constructor(limits: ScanLimits, isDotted: boolean) {
    this.limits = limits
    this.isDotted = isDotted
  }

  /** Whether the last octets were a line end, or there were none. */
  get isAtLineStart(): boolean {
    return this.state === 'line start'
  }

  /**
   * Takes the octets from `from` to the end. Moves octets within the buffer, which must be the caller's own.
   *
   * @returns where the message ends in this buffer; its length where the message goes on
   */
  scan(octets: Buffer, from: number): number {
    this.keptFrom = this.keptTo = from
    const nul = octets.indexOf(NUL, from)
    const end = this.walk(octets, from)
    if (nul !== -1 && nul < end) this.fail('nul')
    if (this.fault !== undefined) this.keptTo = this.keptFrom
    return end
  }

  /** The octets that BDAT counted are all here: a CR that nothing followed is one by itself. */
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
          if (this.isDotted && octets[at] === DOT) {
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

  /** To the end of the line, or of what is there; only native searches touch each octet. */
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
    // The line that is nothing but its end closes the header (RFC 5322 §2.1).
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
