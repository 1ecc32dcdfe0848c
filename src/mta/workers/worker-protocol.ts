/**
 * What the server and a delivery thread say to each other.
 *
 * Spoken by `worker-thread.ts` (server) and `worker-jobs.ts` (thread). Holds no logic. Every message is a list, so that
 * what comes up in the same turn of the event loop crosses over together. The thread obeys instructions in the order
 * given; that is what makes `drop` safe right after the job that needed the value.
 */
import type { RenderRequest, RenderResult } from '../../content/rendering/render-request.js'
import type { DkimKey } from '../../mail/dkim/dkim-sign.js'
import type { Outcome } from '../../mail/outcome.js'
import type { DeliveryJob } from '../../queue/delivery-agent.js'

/** What many jobs may have in common; a thread keeps what is asked for again. */
export type SharedValue = DeliveryJob['content'] | readonly DkimKey[]

/** A job with numbers in place of what it shares with others. */
export interface JobSlip extends Omit<DeliveryJob, 'content' | 'signingKeys' | 'submission' | 'dueAt'> {
  readonly content: number | DeliveryJob['content']
  /** Absent where nobody signs. */
  readonly signingKeys?: number | readonly DkimKey[]
}

/** From the server to the thread. */
export type Instruction =
  | { readonly kind: 'keep'; readonly id: number; readonly value: SharedValue }
  | { readonly kind: 'drop'; readonly id: number }
  /** `number` stands for this one attempt until its outcome has been reported. */
  | { readonly kind: 'deliver'; readonly number: number; readonly slip: JobSlip }
  /** Breaks this one off, as the agent's signal does; nothing happens where its outcome is on its way already. */
  | { readonly kind: 'abort'; readonly number: number }
  /** A rendering that a request waits for; `number` as above. */
  | { readonly kind: 'render'; readonly number: number; readonly request: RenderRequest }
  /** Ends idle connections; the last instruction, given when no job is in hand. */
  | { readonly kind: 'close' }

/** From the thread to the server. */
export type Report =
  /** The first one: everything is loaded. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'outcome'; readonly number: number; readonly outcome: Outcome }
  | { readonly kind: 'rendered'; readonly number: number; readonly result: RenderResult }
  /** The agent broke its promise never to reject, or a rendering failed by a mistake of ours. */
  | { readonly kind: 'fault'; readonly number: number; readonly text: string }
  /** The last one: the thread may be ended. */
  | { readonly kind: 'closed' }
