/** A log that keeps its lines for assertions. */
import type { Log, LogFields } from './log.js'

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly event: string
  readonly fields: LogFields
}

export class FakeLog implements Log {
  readonly lines: LogLine[] = []

  debug(event: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'debug', event, fields })
  }
  info(event: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'info', event, fields })
  }
  warn(event: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'warn', event, fields })
  }
  error(event: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'error', event, fields })
  }
  setLevel(): void {
    // Records every level.
  }
  setFormat(): void {
    // Records fields, not text.
  }
  flush(): Promise<void> {
    return Promise.resolve()
  }
}
