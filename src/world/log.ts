/**
 * The log: one event per line on standard output, as JSON or text, with a syslog priority if it goes to the journal.
 *
 * Events are declared in `log-events.ts`; facts go into fields. Never log secrets, message bodies or address lists. Writes are
 * asynchronous and bounded (`line-writer.ts`); `kill -9` can lose the last 50 ms.
 * Standards: sd-daemon(3) for priorities, syslog(3) for their numbers.
 */
import { fstatSync } from 'node:fs'
import { visibleText } from '../core/names.js'
import { LineWriter } from './line-writer.js'
import type { LogEvent } from './log-events.js'

export type LogLevel = LineLevel | 'silent'

export interface Log {
  debug(event: LogEvent<'debug'>, fields?: LogFields): void
  info(event: LogEvent<'info'>, fields?: LogFields): void
  warn(event: LogEvent<'warn'>, fields?: LogFields): void
  error(event: LogEvent<'error'>, fields?: LogFields): void
  setLevel(level: LogLevel): void
  setFormat(format: LogFormat): void
  flush(): Promise<void>
}

const STANDARD_OUTPUT = 1
const ORDER: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent']

export interface LogOptions {
  readonly level: LogLevel
  /** systemd's `$JOURNAL_STREAM`: device and inode of the journal's stream. */
  readonly journalStream?: string | undefined
}

export function openLog({ level, journalStream }: LogOptions): Log {
  const writer = new LineWriter(STANDARD_OUTPUT)
  let hasLines = false
  const isJournal = journalStream !== undefined && leadsTo(STANDARD_OUTPUT, journalStream)
  let least = ORDER.indexOf(level)
  let toLine = jsonLine
  const add = (at: LineLevel, event: string, fields: LogFields) => {
    if (!hasLines) process.on('exit', () => writer.finish())
    hasLines = true
    const line = toLine(at, timeNow(), event, fields)
    return writer.add(isJournal ? journalPrefix(at) + line : line)
  }
  const log = (at: LineLevel, event: string, fields: LogFields) => {
    if (ORDER.indexOf(at) < least) return
    if (add(at, event, fields) && writer.hasRoom) {
      const lines = writer.takeDropped()
      if (lines > 0) add('warn', 'log lines dropped', { lines })
    }
  }
  return {
    debug: (event, fields = {}) => log('debug', event, fields),
    info: (event, fields = {}) => log('info', event, fields),
    warn: (event, fields = {}) => log('warn', event, fields),
    error: (event, fields = {}) => log('error', event, fields),
    setLevel(next) {
      least = ORDER.indexOf(next)
    },
    setFormat(format) {
      toLine = format === 'json' ? jsonLine : textLine
    },
    flush: () => writer.flush(),
  }
}

let [lastMs, lastTime] = [0, '']

/** Cached per millisecond. */
function timeNow(): string {
  const now = Date.now()
  if (now !== lastMs) [lastMs, lastTime] = [now, new Date(now).toISOString()]
  return lastTime
}

/** systemd.exec(5): the variable is set even if the output was redirected. */
function leadsTo(fd: number, journalStream: string): boolean {
  try {
    const { dev, ino } = fstatSync(fd)
    return journalStream === `${dev}:${ino}`
  } catch {
    return false
  }
}

export type LineLevel = 'debug' | 'info' | 'warn' | 'error'
export type LogFormat = 'json' | 'text'
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>

/** Names of syslog(3): LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERR. */
const PRIORITIES: Readonly<Record<LineLevel, number>> = { debug: 7, info: 6, warn: 4, error: 3 }

/** @param time ISO 8601 */
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

/** journald strips it and stores it as the priority. */
export function journalPrefix(level: LineLevel): string {
  return `<${PRIORITIES[level]}>`
}

/** Quotes strings that contain spaces, quotes, `=` or control characters, as JSON. */
function textValue(value: string | number | boolean | null): string {
  if (typeof value !== 'string') return String(value)
  return /^[^\s"=\p{Cc}]+$/u.test(value) ? value : visibleText(JSON.stringify(value))
}
