/** Which captured mails were opened in this browser. Kept there: the inbox belongs to everybody. */
import { untrack } from 'svelte'
import { SvelteSet } from 'svelte/reactivity'

const KEY = 'postroad-captured-read'
/** The inbox keeps as many. */
const MOST = 1_000

const opened = new SvelteSet<string>(readKept())

function readKept(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]')
    return Array.isArray(kept) ? kept.map(String) : []
  } catch {
    return []
  }
}

export function isRead(id: number): boolean {
  return opened.has(String(id))
}

/** An effect that calls it depends on nothing here. */
export function markRead(id: string): void {
  untrack(() => {
    opened.add(id)
    localStorage.setItem(KEY, JSON.stringify([...opened].slice(-MOST)))
  })
}
