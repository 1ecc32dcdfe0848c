/**
 * Remembers what was looked up for a moment, so that a thousand messages a second of the same sender ask the database once.
 *
 * Used for what every request asks for: keys, workspaces, verified domains. What somebody else changes is not outlived: as soon
 * as the database says that another process has committed, or a service of this one that it has changed such a thing,
 * everything is forgotten. The time is the bound for where neither can be known. Only what was found is remembered; a
 * refusal is looked up again, so that what somebody has just mended counts at once. Pure but for what it is given.
 */
export class TtlCache<T> {
  private readonly watch: Watch
  private readonly keptMs: number
  private readonly kept = new Map<string, { readonly value: T; readonly until: number }>()
  /** What `kept` was looked up under. */
  private version: number

  constructor(watch: Watch, keptMs: number) {
    this.watch = watch
    this.keptMs = keptMs
    this.version = watch.version()
  }

  async get(name: string, find: () => Promise<T>): Promise<T> {
    this.forgetOutdated()
    const known = this.kept.get(name)
    if (known && known.until > this.watch.monotonic()) return known.value
    const { version } = this
    const value = await find()
    this.forgetOutdated()
    // What was found may be from before a change that came meanwhile.
    if (version !== this.version) return value
    if (this.kept.size >= MOST_NAMES) this.kept.clear()
    this.kept.set(name, { value, until: this.watch.monotonic() + this.keptMs })
    return value
  }

  private forgetOutdated(): void {
    const version = this.watch.version()
    if (version === this.version) return
    this.version = version
    this.kept.clear()
  }
}

const MOST_NAMES = 10_000

/** What a memory goes by. */
export interface Watch {
  /** Ms that never go back. */
  monotonic(): number
  /** Another number as soon as what is remembered may be wrong. Asked for each time, so it has to be cheap. */
  version(): number
}

/** The watch that all memories of a process share, and the way for its services to say that they have changed something. */
export class SharedWatch implements Watch {
  readonly monotonic: () => number
  private readonly foreignVersion: () => number
  private changes = 0

  /** @param foreignVersion grows with commits of other processes */
  constructor(monotonic: () => number, foreignVersion: () => number) {
    this.monotonic = monotonic
    this.foreignVersion = foreignVersion
  }

  /** Both only grow, so that no change can make up for another. */
  version(): number {
    return this.foreignVersion() + this.changes
  }

  /** Call it when the change is committed. */
  readonly noteChange = (): void => {
    this.changes += 1
  }
}
