/**
 * A fault in a merge template, with its position, to be shown to the author.
 *
 * Thrown by `parse-template.ts` on submission, and by `render-template.ts` when rendering exceeds its limits.
 */
export class MergeError extends Error {
  override readonly name = 'MergeError'
  /** From 1; 0 if the fault has no position. */
  readonly line: number
  /** From 1, in UTF-16 units as in editors; 0 if the fault has no position. */
  readonly column: number
  /** The message without the position. */
  readonly reason: string

  /** @param reason one sentence without a full stop; may quote the source, never a value */
  constructor(reason: string, line = 0, column = 0) {
    super(line === 0 ? reason : `line ${line}, column ${column}: ${reason}`)
    this.reason = reason
    this.line = line
    this.column = column
  }
}

/** @param offset of the source, in UTF-16 units */
export function mergeErrorAt(source: string, offset: number, reason: string): MergeError {
  let line = 1
  let start = 0
  for (let end = source.indexOf('\n'); end >= 0 && end < offset; end = source.indexOf('\n', end + 1)) {
    line++
    start = end + 1
  }
  return new MergeError(reason, line, offset - start + 1)
}
