/** Compares settings before and after a change, as the activity log shows them. Pure. */
import type { Changes } from './activity-store.js'

/** Characters kept of a setting that is not a plain value. */
const MAX_TEXT = 2_000

/**
 * The settings that differ. Those that are not text, number, boolean or null are given as JSON.
 *
 * @param unlogged names of fields that are no settings, such as times and counts
 */
export function settingsChanges<T extends object>(
  before: T,
  after: T,
  unlogged: readonly (keyof T & string)[] = [],
): Changes {
  const names = Object.keys(after).filter(name => !(unlogged as readonly string[]).includes(name))
  const pairs = names.map(name => {
    const change = { before: valueOf(before, name), after: valueOf(after, name) }
    return [name, change] as const
  })
  return Object.fromEntries(pairs.filter(([, change]) => change.before !== change.after))
}

function valueOf(settings: object, name: string): Changes[string]['before'] {
  const value: unknown = (settings as Readonly<Record<string, unknown>>)[name] ?? null
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return value
  return JSON.stringify(value).slice(0, MAX_TEXT)
}
