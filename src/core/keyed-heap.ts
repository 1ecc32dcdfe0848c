/** A binary min-heap of unique values whose keys can be changed or removed in O(log n). Used for schedules whose due times move. */
interface Entry<T> {
  readonly value: T
  key: number
  index: number
}

export class KeyedHeap<T> {
  private readonly entries: Entry<T>[] = []
  private readonly places = new Map<T, Entry<T>>()

  get size(): number {
    return this.entries.length
  }

  /** The smallest key; undefined if empty. */
  get nextKey(): number | undefined {
    return this.entries[0]?.key
  }

  set(value: T, key: number): void {
    const known = this.places.get(value)
    const entry = known ?? { value, key, index: this.entries.length }
    entry.key = key
    if (!known) {
      this.places.set(value, entry)
      this.entries.push(entry)
    }
    this.rise(entry)
    this.sink(entry)
  }

  delete(value: T): void {
    const entry = this.places.get(value)
    if (!entry) return
    this.places.delete(value)
    const last = this.entries.pop()
    if (!last || last === entry) return
    this.place(last, entry.index)
    this.rise(last)
    this.sink(last)
  }

  /** Removes the value with the smallest key, if that is at most `limit`. */
  popUpTo(limit: number): T | undefined {
    const first = this.entries[0]
    if (!first || first.key > limit) return undefined
    this.delete(first.value)
    return first.value
  }

  private rise(entry: Entry<T>): void {
    while (entry.index > 0) {
      const above = this.entries[(entry.index - 1) >> 1]
      if (!above || above.key <= entry.key) return
      this.swap(above, entry)
    }
  }

  private sink(entry: Entry<T>): void {
    for (;;) {
      const left = this.entries[2 * entry.index + 1]
      const right = this.entries[2 * entry.index + 2]
      const below = left && right && right.key < left.key ? right : left
      if (!below || below.key >= entry.key) return
      this.swap(entry, below)
    }
  }

  private swap(one: Entry<T>, other: Entry<T>): void {
    const { index } = one
    this.place(one, other.index)
    this.place(other, index)
  }

  private place(entry: Entry<T>, index: number): void {
    entry.index = index
    this.entries[index] = entry
  }
}
