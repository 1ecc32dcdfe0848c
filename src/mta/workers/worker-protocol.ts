/**
 * Messages between the server and a delivery thread.
 *
 * Each post is an array, so that everything from one turn of the event loop crosses together. The thread handles instructions in order;
 * this makes it safe to `drop` a value right after the job that needs it.
 */
import type { RenderRequest, RenderResult } from '../../content/rendering/render-request.js'
import type { DkimKey } from '../../mail/dkim/dkim-sign.js'
import type { Outcome } from '../../mail/outcome.js'
import type { DeliveryJob } from '../../queue/delivery-agent.js'
import type { AgentOptions } from './worker-agent.js'

export interface DeliveryThreadOptions {
  readonly agent: AgentOptions
  /** Time after which building one long message or one rendering is interrupted, ms. */
  readonly taskLimitMs: number
}

/** Values that many jobs may share; the thread keeps those used repeatedly. */
export type SharedValue = DeliveryJob['content'] | readonly DkimKey[]

/** A job with ids in place of shared values. */
export interface JobMessage extends Omit<DeliveryJob, 'content' | 'signingKeys' | 'submission' | 'dueAt'> {
  readonly content: number | DeliveryJob['content']
  /** Absent if the mail is not signed. */
  readonly signingKeys?: number | readonly DkimKey[]
}

export type Instruction =
  | { readonly kind: 'keep'; readonly id: number; readonly value: SharedValue }
  | { readonly kind: 'drop'; readonly id: number }
  /** `number` identifies this attempt until its outcome is reported. */
  | { readonly kind: 'deliver'; readonly number: number; readonly job: JobMessage }
  /** Aborts one delivery; ignored if its outcome was already sent. */
  | { readonly kind: 'abort'; readonly number: number }
  /** Renders for a waiting request; `number` as above. */
  | { readonly kind: 'render'; readonly number: number; readonly request: RenderRequest }
  /** Closes idle connections. Sent last, when no job is in flight. */
  | { readonly kind: 'close' }

export type Report =
  /** The first report: the thread is ready. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'outcome'; readonly number: number; readonly outcome: Outcome }
  | { readonly kind: 'rendered'; readonly number: number; readonly result: RenderResult }
  /** Ended by the limit, after this much CPU time, ms: little if the machine or another task took the rest of the time. */
  | { readonly kind: 'interrupted'; readonly number: number; readonly cpuMs: number }
  /** Not begun, since the thread is spent: for another thread. */
  | { readonly kind: 'returned'; readonly numbers: readonly number[] }
  /** A task was interrupted. The thread finishes what it has begun and begins nothing more. */
  | { readonly kind: 'spent' }
  /** A bug: the agent rejected, or a rendering threw. */
  | { readonly kind: 'fault'; readonly number: number; readonly text: string }
  /** The last report: the thread may be terminated. */
  | { readonly kind: 'closed' }
