/** Scales of charts and heat maps. Pure. */

const STEPS = [1, 1.5, 2, 3, 4, 5, 6, 8, 10]

/** The next round whole number, for the top of a chart. @param most at least 1 */
export function roundTop(most: number): number {
  const size = 10 ** Math.floor(Math.log10(most))
  return STEPS.map(step => step * size).find(step => step >= most && Number.isInteger(step)) ?? most
}

/** By the order of magnitude. @returns 0 only for nothing, up to `shades` */
export function shadeOf(count: number, most: number, shades: number): number {
  if (count === 0) return 0
  return Math.max(1, Math.ceil((Math.log1p(count) / Math.log1p(most)) * shades))
}

/** The next of `count` points for an arrow key; from none, the first or the last. */
export function stepTo(at: number | undefined, step: 1 | -1, count: number): number {
  return Math.min(count - 1, Math.max(0, (at ?? (step > 0 ? -1 : count)) + step))
}
