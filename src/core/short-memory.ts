/**
 * Remembers what was looked up for a moment, so that a thousand messages a second of the same sender ask the database once.
 *
 * Used where being a second late is no fault: keys, workspaces, verified domains. Only what was found is remembered; a
 * refusal is looked up again, so that what somebody has just mended counts at once. Pure but for the clock it is given.
 */
export class ShortMemory<T> {
  private readonly now: () => number
  private readonly keptMs: number
  private readonly kept = new Map<string, { readonly value: T; readonly until: number }>()

  /** @param now ms since epoch UTC @param keptMs also the delay with which a change takes effect */
  constructor(now: () => number, keptMs: number) {
    this.now = now
    this.keptMs = keptMs
  }

  async get(name: string, find: () => Promise<T>): Promise<T> {
    const known = this.kept.get(name)
    if (known && known.until > this.now()) return known.value
    const value = await find()
    if (this.kept.size >= MOST_NAMES) this.kept.clear()
    this.kept.set(name, { value, until: this.now() + this.keptMs })
    return value
  }
}

const MOST_NAMES = 10_000
