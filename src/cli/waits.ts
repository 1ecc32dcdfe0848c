/** `waiting_for` of the APIs in tables of commands. */
import type { ShownWaiting } from '../http/answer/waiting-for.js'

/** E.g. `hourly_limit until 2026-01-05T11:00:00.000Z`; `-` if it does not wait. */
export function waitCell(waiting: ShownWaiting | null | undefined): string {
  if (!waiting) return '-'
  return waiting.until === undefined ? waiting.reason : `${waiting.reason} until ${waiting.until}`
}

/** With what to do about it. */
export function waitText(waiting: ShownWaiting | null): string | null {
  return waiting && `${waitCell(waiting)}: ${waiting.detail}`
}
