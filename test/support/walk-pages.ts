/** Reads a stored list page after page, each from the position at which the one before ended. */
import type { Listed, PageOf } from '../../src/db/listing.js'

export async function walkPages<T>(read: (page: PageOf) => Promise<Listed<T>>, limit = 1): Promise<T[]> {
  const items: T[] = []
  let page = await read({ limit, offset: 0 })
  for (;;) {
    items.push(...page.items)
    const { end, total } = page
    if (end === undefined || page.items.length === 0) return items
    page = await read({ limit, offset: 0, after: { total, position: () => end } })
  }
}
