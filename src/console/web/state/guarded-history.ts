/**
 * The browser's history, asked before a screen with unsaved changes is left.
 *
 * When a person goes back or forward, the browser has already changed the address before it says so. Each entry carries its place in the
 * order, so that the way back to where one was is known. How far each entry was scrolled is kept for the return to it: the browser itself
 * would scroll before the rows of a list are there.
 */

/** What of a window the history needs. */
export interface HistoryWindow {
  readonly history: {
    readonly state: unknown
    pushState(state: unknown, unused: string, url: string): void
    replaceState(state: unknown, unused: string, url?: string): void
    go(steps: number): void
    scrollRestoration?: ScrollRestoration
  }
  readonly scrollY: number
  addEventListener(type: 'popstate', listener: () => void): void
}

export class GuardedHistory {
  private readonly window: HistoryWindow
  private readonly mayDiscard: () => boolean
  /** Position of the entry that is shown. */
  private at: number
  private guard: (() => boolean) | undefined
  /** How far entries were scrolled, by position. */
  private readonly scrolled = new Map<number, number>()
  /** Whether the next `popstate` is our own return after "no". */
  private isReturning = false

  /**
   * @param onMove called after the address changed
   * @param mayDiscard asks whether unsaved changes may be lost
   */
  constructor(window: HistoryWindow, onMove: () => void, mayDiscard: () => boolean) {
    this.window = window
    this.mayDiscard = mayDiscard
    this.at = positionOf(window.history.state) ?? 0
    this.mark()
    window.history.scrollRestoration = 'manual'
    window.addEventListener('popstate', () => {
      if (this.hasMoved()) onMove()
    })
  }

  /** @returns whether the address was changed; false if the person wants to stay */
  push(url: string): boolean {
    if (!this.mayLeave()) return false
    this.keepScroll()
    this.at += 1
    this.scrolled.delete(this.at)
    this.window.history.pushState({ at: this.at }, '', url)
    return true
  }

  /** Changes the address of the entry that is shown; nobody is asked. */
  replace(url: string): void {
    this.window.history.replaceState({ at: this.at }, '', url)
  }

  /** @returns a function that ends the guard */
  guardWith(hasChanges: () => boolean): () => void {
    this.guard = hasChanges
    return () => {
      if (this.guard === hasChanges) this.guard = undefined
    }
  }

  /** After `popstate`: @returns whether the place is a new one */
  private hasMoved(): boolean {
    if (this.isReturning) {
      this.isReturning = false
      return false
    }
    const state: unknown = this.window.history.state
    // An entry without a position is one that the browser made, for a fragment typed into the address.
    const to = positionOf(state) ?? this.at + 1
    if (to !== this.at && !this.mayLeave()) {
      this.isReturning = true
      this.window.history.go(this.at - to)
      return false
    }
    this.keepScroll()
    this.at = to
    if (positionOf(state) === undefined) this.mark()
    return true
  }

  /** How far the shown entry was scrolled when it was left, in pixels; 0 if it is a new one. */
  scrollToRestore(): number {
    return this.scrolled.get(this.at) ?? 0
  }

  private keepScroll(): void {
    this.scrolled.set(this.at, this.window.scrollY)
  }

  private mayLeave(): boolean {
    return this.guard?.() !== true || this.mayDiscard()
  }

  private mark(): void {
    this.window.history.replaceState({ at: this.at }, '')
  }
}

function positionOf(state: unknown): number | undefined {
  const at = (state as { at?: unknown } | null)?.at
  return typeof at === 'number' ? at : undefined
}
