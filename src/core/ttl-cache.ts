/**
 * A cache for lookups needed by every request: keys, workspaces, verified domains.
 *
 * It is cleared as soon as a change of its topics is reported (`db/changes.ts`). The time to live covers changes that nobody reports.
 * Failed lookups are not cached, so corrections take effect at once.
 */
export class TtlCache<T> {
  private readonly watch: Watch
  private readonly keptMs: number
  private readonly kept = new Map<string, { readonly value: T; readonly until: number }>()
  /** Version under which `kept` was filled. */
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
    // A change during the lookup may have made the value stale.
    if (version !== this.version) return value
    if (this.kept.size >= MAX_NAMES) this.kept.clear()
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

const MAX_NAMES = 10_000

/** Clock and change detection of a cache. */
export interface Watch {
  monotonic(): number
  /** Changes when cached values may be stale. Called on every access, so it must be cheap. */
  version(): number
}
