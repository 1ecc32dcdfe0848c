/**
 * The log: lines on standard output, one event each, for journald and whatever reads it.
 *
 * Callers name the event in a few words and give the facts as fields. Secrets, message bodies and whole
 * addresses lists are never handed over. Writing is asynchronous and bounded (`line-writer.ts`): what `kill -9` can cost are the lines of
 * the last 50 milliseconds.
 */
import { fstatSync } from 'node:fs'
import { LineWriter } from './line-writer.js'
import type { LogEvent } from './log-events.js'
import {
  journalPrefix,
  jsonLine,
  textLine,
  type LineLevel,
  type LogFields,
  type LogFormat,
} from './log-lines.js'

export type LogLevel = LineLevel | 'silent'

export interface Log {
  debug(event: LogEvent<'debug'>, fields?: LogFields): void
  info(event: LogEvent<'info'>, fields?: LogFields): void
  warn(event: LogEvent<'warn'>, fields?: LogFields): void
  error(event: LogEvent<'error'>, fields?: LogFields): void
  /** The same log with the level changed, as after a SIGHUP. */
  setLevel(level: LogLevel): void
  setFormat(format: LogFormat): void
  /** Resolves once every line so far is written. */
  flush(): Promise<void>
}

const STANDARD_OUTPUT = 1
const ORDER: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent']

export interface LogOptions {
  readonly level: LogLevel
  /** `$JOURNAL_STREAM` of systemd: device and inode of the stream that leads to the journal. */
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

/** Many lines share a millisecond. */
function timeNow(): string {
  const now = Date.now()
  if (now !== lastMs) [lastMs, lastTime] = [now, new Date(now).toISOString()]
  return lastTime
}

/** systemd.exec(5): a program whose output was led elsewhere still has the variable. */
function leadsTo(fd: number, journalStream: string): boolean {
  try {
    const { dev, ino } = fstatSync(fd)
    return journalStream === `${dev}:${ino}`
  } catch {
    return false
  }
}
