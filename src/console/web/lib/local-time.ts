/** What browsers take and give in fields of date and time: the viewer's own time, e.g. `2026-03-01T09:30`. Pure. */

/** @param ms since epoch */
export function toLocalField(ms: number): string {
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** @returns RFC 3339, in UTC */
export function fromLocalField(text: string): string {
  return new Date(text).toISOString()
}
