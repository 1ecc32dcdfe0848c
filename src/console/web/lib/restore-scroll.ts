/** Scrolls back to where a screen was left, as far as its rows are there, and again as more come. */

/** Rows that take longer are not waited for. */
const PATIENCE_MS = 5_000
/** Whoever scrolls or types meanwhile stays where they are. */
const OWN_MOVES = ['wheel', 'touchmove', 'keydown', 'pointerdown'] as const

/** @param top in pixels @returns a function that ends it */
export function restoreScroll(top: number): () => void {
  const scroll = () => {
    scrollTo(0, top)
    if (Math.abs(scrollY - top) < 2) end()
  }
  const observer = new ResizeObserver(scroll)
  const timer = setTimeout(end, PATIENCE_MS)
  function end(): void {
    observer.disconnect()
    clearTimeout(timer)
    for (const name of OWN_MOVES) removeEventListener(name, end)
  }
  for (const name of OWN_MOVES) addEventListener(name, end, { passive: true })
  observer.observe(document.documentElement)
  scroll()
  return end
}
