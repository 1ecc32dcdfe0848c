/**
 * What the server and a thread that writes by itself say to each other. Holds no logic.
 *
 * The thread asks for a turn, gets it, says that its transactions are over, and hears whether what it committed counts; nothing else is
 * said between the first and the last of these, but now and then, where it has the turn for long, that it has committed. That it is to end the
 * turn it reads in memory that both share.
 */
import type { LogEvent } from '../../world/log-events.js'
import type { LogFields } from '../../world/log.js'

export interface WritingOptions {
  /** Path of the database file. */
  readonly file: string
  /** Of the server's clock as the thread is started; what both write is compared with it. */
  readonly now: number
  /** 1 from when the thread is to end the turn that it has, until it has the next one. One Int32. */
  readonly wanted: SharedArrayBuffer
}

/** Why nothing was committed, as the database said it. */
export interface WritingFault {
  readonly message: string
  /** SQLite's. */
  readonly code: string
}

/** For whoever asked for the write: it does not count. */
export interface WritingRefusal {
  readonly message: string
  readonly retryAfterMs?: number
}

/** From the thread. */
export type WritingMessage =
  | { readonly kind: 'turn' }
  | { readonly kind: 'committed'; readonly durationsMs: readonly number[] }
  | { readonly kind: 'over'; readonly durationsMs: readonly number[]; readonly fault?: WritingFault }
  | { readonly kind: 'trouble'; readonly event: LogEvent<'error'>; readonly fields: LogFields }
  /** There is nothing left to do, or it was told to stop. */
  | { readonly kind: 'finished' }

/** To the thread. */
export type WritingAnswer =
  | { readonly kind: 'turn' }
  | { readonly kind: 'settled'; readonly refusal?: WritingRefusal }
  | { readonly kind: 'stop' }
