/**
 * Messages between the server and a writing thread. Holds no logic.
 *
 * The thread requests a turn, receives it, reports its end, and learns whether its commits were acknowledged. In a long turn it also
 * reports commits periodically. The server signals the end of a turn through shared memory.
 */
import type { LogEvent } from '../../world/log-events.js'
import type { LogFields } from '../../world/log.js'

export interface WritingOptions {
  /** Path of the database file. */
  readonly file: string
  /** The server's clock when the thread was started, to keep timestamps consistent. */
  readonly now: number
  /** One Int32: 1 from when the thread should end its turn until it gets the next one. */
  readonly wanted: SharedArrayBuffer
}

/** Why nothing was committed: the database's error. */
export interface WritingFault {
  readonly message: string
  /** SQLite's code. */
  readonly code: string
}

/** For the caller of the write, which was not acknowledged. */
export interface WritingRefusal {
  readonly message: string
  readonly retryAfterMs?: number
}

/** Sent by the thread. */
export type WritingMessage =
  | { readonly kind: 'turn' }
  | { readonly kind: 'committed'; readonly durationsMs: readonly number[] }
  | { readonly kind: 'over'; readonly durationsMs: readonly number[]; readonly fault?: WritingFault }
  | { readonly kind: 'trouble'; readonly event: LogEvent<'error'>; readonly fields: LogFields }
  /** The work is done, or was stopped. */
  | { readonly kind: 'finished' }

/** Sent to the thread. */
export type WritingAnswer =
  | { readonly kind: 'turn' }
  | { readonly kind: 'settled'; readonly refusal?: WritingRefusal }
  | { readonly kind: 'stop' }
