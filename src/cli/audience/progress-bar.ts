/** A line of standard error that is drawn over: how much of something is done. Only where that is a terminal; elsewhere nothing. */

const WIDTH = 30
const TO_END_OF_LINE = '\x1b[K'

/** @param done 0 to 1; undefined where nobody knows how much there is */
export function drawProgress(done: number | undefined, remark: string): void {
  if (!process.stderr.isTTY) return
  if (done === undefined) {
    process.stderr.write(`\r${remark}${TO_END_OF_LINE}`)
    return
  }
  const filled = Math.round(WIDTH * done)
  const bar = '#'.repeat(filled) + '-'.repeat(WIDTH - filled)
  process.stderr.write(`\r[${bar}] ${Math.round(100 * done)}% ${remark}${TO_END_OF_LINE}`)
}

/** The line goes, for what is printed next. */
export function endProgress(): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${TO_END_OF_LINE}`)
}
