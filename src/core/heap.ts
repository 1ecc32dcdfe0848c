/**
 * A binary min-heap: the smallest key first, O(log n) in and out. Used for "what falls due next" among many.
 */
export class MinHeap<T> {
  private readonly entries: { readonly key: number; readonly value: T }[] = []

  get size(): number {
    return this.entries.length
  }

  /** The smallest key, or undefined when empty. */
  get nextKey(): number | undefined {
    return this.entries[0]?.key
  }

  push(key: number, value: T): void {
    const { entries } = this
    let index = entries.length
    const entry = { key, value }
    entries.push(entry)
    while (index > 0) {
      const parent = (index - 1) >> 1
      const above = entries[parent]
      if (!above || above.key <= key) break
      entries[index] = above
      index = parent
    }
    entries[index] = entry
  }

  pop(): T | undefined {
    const { entries } = this
    const top = entries[0]
    const last = entries.pop()
    if (!top || !last) return undefined
    if (entries.length > 0) this.sink(last)
    return top.value
  }

  /** Puts the entry in at the root and lets it sink to its place. */
  private sink(entry: { readonly key: number; readonly value: T }): void {
    const { entries } = this
    let index = 0
    for (;;) {
      const left = entries[2 * index + 1]
      const right = entries[2 * index + 2]
      const isRight = left && right && right.key < left.key
      const child = isRight ? right : left
      if (!child || child.key >= entry.key) break
      entries[index] = child
      index = 2 * index + (isRight ? 2 : 1)
    }
    entries[index] = entry
  }
}
