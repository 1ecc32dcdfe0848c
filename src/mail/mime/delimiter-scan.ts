/**
 * Finds multipart delimiter lines, for all multiparts open at the reader's position.
 *
 * Each line starting with `--` is examined once. Never throws; linear in the input.
 * Standards: RFC 2046 §5.1.1 (the line ending before a delimiter belongs to it).
 */

export interface Delimiter {
  /** End of the content before it, without its line ending. */
  readonly contentEnd: number
  readonly next: number
  readonly level: number
  readonly closes: boolean
}

/** RFC 2046 §5.1.1 allows 70; some programs write more. */
const MAX_BOUNDARY = 200
/** White space after a boundary, and the closing dashes. */
const MAX_BEHIND = 80
/** Octets examined one by one before a native search, which is slower for short lines. */
const NEAR = 256
const LF = 0x0a
const CR = 0x0d
const SP = 0x20
const DASH = 0x2d

/** A remembered search result, so that a long search is not repeated. */
interface PendingSearch {
  readonly octets: Buffer
  from: number
  /** -1: no further match. */
  at: number
}

export class DelimiterScan {
  private readonly message: Buffer
  private readonly isLenient: boolean
  private readonly searches: readonly PendingSearch[]
  /** Boundary to level. If two are equal, the outer one wins. */
  private readonly open = new Map<string, number>()
  private readonly boundaries = new Map<number, string>()
  /** Number of open boundaries by first octet, which rules out most lines of dashes. */
  private readonly firstOctets = new Uint16Array(256)

  /** @param isLenient accepts delimiters indented by one space, which is wrong but occurs */
  constructor(message: Buffer, isLenient: boolean) {
    this.message = message
    this.isLenient = isLenient
    const starts = isLenient ? ['\n--', '\n --'] : ['\n--']
    this.searches = starts.map(text => ({ octets: Buffer.from(text, 'latin1'), from: Infinity, at: -1 }))
  }

  /**
   * Opens a multipart, unless it has no boundary or the same one as an outer multipart.
   *
   * @param level one more than the enclosing multipart
   * @returns the first delimiter of any open multipart
   */
  openAt(boundary: string, level: number, from: number): Delimiter | undefined {
    if (boundary !== '' && boundary.length <= MAX_BOUNDARY && !this.open.has(boundary)) {
      this.open.set(boundary, level)
      this.boundaries.set(level, boundary)
      this.count(boundary, 1)
    }
    return this.find(from)
  }

  close(level: number): void {
    const boundary = this.boundaries.get(level)
    if (boundary === undefined) return
    this.open.delete(boundary)
    this.boundaries.delete(level)
    this.count(boundary, -1)
  }

  private count(boundary: string, change: 1 | -1): void {
    const octet = boundary.charCodeAt(0) & 0xff
    this.firstOctets[octet] = (this.firstOctets[octet] ?? 0) + change
  }

  /** @param from start of a line, where the content begins */
  find(from: number): Delimiter | undefined {
    if (this.open.size === 0) return undefined
    const first = this.readAt(from, from)
    if (first) return first
    for (let line = this.nextLine(from); line >= 0; line = this.nextLine(line)) {
      const delimiter = this.readAt(line, from)
      if (delimiter) return delimiter
    }
    return undefined
  }

  /** The delimiter at this line, with no content before it. @param lineStart start of a line */
  at(lineStart: number): Delimiter | undefined {
    return this.open.size === 0 ? undefined : this.readAt(lineStart, lineStart)
  }

  /** @returns the start of the line after the one containing `at`, or the end of the message */
  afterLine(at: number): number {
    const { message } = this
    const near = Math.min(at + NEAR, message.length)
    for (let end = at; end < near; end++) if (message[end] === LF) return end + 1
    const end = message.indexOf(LF, near)
    return end < 0 ? message.length : end + 1
  }

  /** @returns the start of the next line after `from` that may be a delimiter, or -1 */
  private nextLine(from: number): number {
    const { message } = this
    const near = Math.min(from + NEAR, message.length)
    for (let at = from; at < near; at++)
      if (message[at] === LF && message[this.dashesOf(at + 1)] === DASH) return at + 1
    let next = -1
    for (const sought of this.searches) {
      if (sought.from > near || (sought.at >= 0 && sought.at < near)) {
        sought.from = near
        sought.at = message.indexOf(sought.octets, near)
      }
      if (sought.at >= 0 && (next < 0 || sought.at < next)) next = sought.at
    }
    return next < 0 ? -1 : next + 1
  }

  private readAt(lineStart: number, contentStart: number): Delimiter | undefined {
    const { message } = this
    const dashes = this.dashesOf(lineStart)
    if (message[dashes] !== DASH || message[dashes + 1] !== DASH) return undefined
    if (!this.firstOctets[message[dashes + 2] ?? 0]) return undefined
    const lineEnd = this.endOfDelimiter(dashes + 2)
    if (lineEnd < 0) return undefined
    const text = message.toString('latin1', dashes + 2, lineEnd).trimEnd()
    const own = this.open.get(text)
    const level = own ?? (text.endsWith('--') ? this.open.get(text.slice(0, -2)) : undefined)
    if (level === undefined) return undefined
    const lineEndBefore = message[lineStart - 2] === CR ? 2 : 1
    return {
      contentEnd: Math.max(contentStart, lineStart - lineEndBefore),
      next: Math.min(lineEnd + 1, message.length),
      level,
      closes: own === undefined,
    }
  }

  /** Offset of the dashes in a delimiter line. */
  private dashesOf(lineStart: number): number {
    return this.isLenient && this.message[lineStart] === SP ? lineStart + 1 : lineStart
  }

  /** @returns the offset of the LF, or the end of the message; -1 if the line is too long for a delimiter */
  private endOfDelimiter(from: number): number {
    const { message } = this
    const most = from + MAX_BOUNDARY + MAX_BEHIND
    for (let at = from; at <= most; at++) if (at >= message.length || message[at] === LF) return at
    return -1
  }
}
