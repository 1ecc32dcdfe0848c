/**
 * Scales a picture down: each new pixel is the average of the area it covers.
 *
 * Needs no more memory than the result and a row. Transparent pixels count for nothing in colours, so they do not show at edges. Pure.
 */
import type { Pixels } from './codecs.js'

/** Source pixels that a new one covers, in one direction. */
interface Cover {
  readonly first: number
  readonly last: number
  /** Share of the first one, 0 to 1; those between count whole. */
  readonly firstShare: number
  readonly lastShare: number
}

/** @param width smaller than that of the picture; the height follows */
export function scaleDown({ data, width: fullWidth, height: fullHeight }: Pixels, width: number): Pixels {
  const height = Math.max(1, Math.round((fullHeight * width) / fullWidth))
  const columns = coversOf(fullWidth, width)
  const rows = coversOf(fullHeight, height)
  const scaled = new Uint8ClampedArray(width * height * 4)
  // Red, green and blue times opacity; opacity; area.
  const sums = new Float64Array(width * 5)
  for (const [y, row] of rows.entries()) {
    sums.fill(0)
    for (let from = row.first; from <= row.last; from++)
      addRow(sums, data, from * fullWidth * 4, columns, shareOf(row, from))
    writeRow(scaled, y * width * 4, sums)
  }
  return { data: scaled, width, height }
}

function coversOf(full: number, wanted: number): Cover[] {
  const step = full / wanted
  return Array.from({ length: wanted }, (_, at) => {
    const [start, end] = [at * step, Math.min(full, (at + 1) * step)]
    const first = Math.floor(start)
    const last = Math.max(first, Math.ceil(end) - 1)
    return first === last
      ? { first, last, firstShare: end - start, lastShare: end - start }
      : { first, last, firstShare: first + 1 - start, lastShare: end - last }
  })
}

function shareOf({ first, last, firstShare, lastShare }: Cover, at: number): number {
  if (at === first) return firstShare
  return at === last ? lastShare : 1
}

function addRow(
  sums: Float64Array,
  data: Uint8ClampedArray,
  start: number,
  columns: readonly Cover[],
  rowShare: number,
): void {
  for (let x = 0; x < columns.length; x++) {
    const column = columns[x] as Cover
    let [red, green, blue, opacity, area] = [0, 0, 0, 0, 0]
    for (let from = column.first; from <= column.last; from++) {
      const at = start + from * 4
      const share = from === column.first ? column.firstShare : from === column.last ? column.lastShare : 1
      const weight = (data[at + 3] as number) * share
      red += (data[at] as number) * weight
      green += (data[at + 1] as number) * weight
      blue += (data[at + 2] as number) * weight
      opacity += weight
      area += share
    }
    const sum = x * 5
    sums[sum] = (sums[sum] as number) + red * rowShare
    sums[sum + 1] = (sums[sum + 1] as number) + green * rowShare
    sums[sum + 2] = (sums[sum + 2] as number) + blue * rowShare
    sums[sum + 3] = (sums[sum + 3] as number) + opacity * rowShare
    sums[sum + 4] = (sums[sum + 4] as number) + area * rowShare
  }
}

function writeRow(scaled: Uint8ClampedArray, start: number, sums: Float64Array): void {
  for (let sum = 0, to = start; sum < sums.length; sum += 5, to += 4) {
    const opacity = sums[sum + 3] as number
    if (opacity === 0) continue
    for (let color = 0; color < 3; color++) scaled[to + color] = (sums[sum + color] as number) / opacity
    scaled[to + 3] = opacity / (sums[sum + 4] as number)
  }
}
