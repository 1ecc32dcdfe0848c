/**
 * The log: JSON lines on standard output, one event each, for journald and whatever reads it.
 *
 * Callers name the event in a few words and give the facts as fields. Secrets, message bodies and whole
 * addresses lists are never handed over.
 */
import { pino } from 'pino'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>

export interface Log {
  debug(event: string, fields?: LogFields): void
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
  /** The same log with the level changed, as after a SIGHUP. */
  setLevel(level: LogLevel): void
}

export function openLog(level: LogLevel): Log {
  const logger = pino({
    level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: label => ({ level: label }) },
    messageKey: 'event',
  })
  return {
    debug: (event, fields = {}) => logger.debug(fields, event),
    info: (event, fields = {}) => logger.info(fields, event),
    warn: (event, fields = {}) => logger.warn(fields, event),
    error: (event, fields = {}) => logger.error(fields, event),
    setLevel(next) {
      logger.level = next
    },
  }
}
