/** A progress bar on standard error; prints nothing unless that is a terminal. */

const WIDTH = 30
const TO_END_OF_LINE = '\x1b[K'

/** @param done 0 to 1; undefined if the total is unknown */
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

/** Clears the bar before other output. */
export function endProgress(): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${TO_END_OF_LINE}`)
}
