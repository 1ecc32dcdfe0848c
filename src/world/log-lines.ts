/**
 * What a line of the log looks like: JSON or text, with the priority in front where it goes to the journal.
 *
 * Called by `log.ts`. Pure; knows no output. Whatever the fields hold, an event is one line.
 * Standards: sd-daemon(3) for the priorities, syslog(3) for their numbers.
 */
export type LineLevel = 'debug' | 'info' | 'warn' | 'error'
export type LogFormat = 'json' | 'text'
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>

/** Names of syslog(3): LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERR. */
const PRIORITIES: Readonly<Record<LineLevel, number>> = { debug: 7, info: 6, warn: 4, error: 3 }

/** @param time ISO 8601 @returns without a line end */
export function jsonLine(level: LineLevel, time: string, event: string, fields: LogFields): string {
  const shown = JSON.stringify(fields)
  const head = `{"level":"${level}","time":"${time}","event":${JSON.stringify(event)}`
  return shown === '{}' ? `${head}}` : `${head},${shown.slice(1)}`
}

/** E.g. `2026-05-04T10:11:12.013Z info  message delivered: messageId=0190... to=ann@example.net`. */
export function textLine(level: LineLevel, time: string, event: string, fields: LogFields): string {
  let line = `${time} ${level.padEnd(5)} ${event}`
  let isFirst = true
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue
    line += `${isFirst ? ':' : ''} ${name}=${textValue(value)}`
    isFirst = false
  }
  return line
}

/** What journald takes off the line again, and keeps as its priority. */
export function journalPrefix(level: LineLevel): string {
  return `<${PRIORITIES[level]}>`
}

/** A value that ends at the next space; what could be taken for something else stands in quotes, as JSON has them. */
function textValue(value: string | number | boolean | null): string {
  if (typeof value !== 'string') return String(value)
  return /^[^\s"=\p{Cc}]+$/u.test(value) ? value : JSON.stringify(value)
}
