/** A log that keeps its lines, so that a test can say what the operator would have read. */
import type { Log } from './log.js'
import type { LogFields } from './log-lines.js'

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
    // Tests read every level.
  }
  setFormat(): void {
    // And the fields themselves.
  }
  flush(): Promise<void> {
    return Promise.resolve()
  }
}
