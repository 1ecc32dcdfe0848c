/** A fault of a trigger or step that keeps an automation from becoming active: a stable reason for programs, and a text. Pure. */

export const FAULT_REASONS = [
  'missing',
  'unknown',
  'dynamic_list',
  'own_automation',
  'no_sender',
  'sender_not_verified',
  'invalid_rule',
] as const

export interface FlowFault {
  readonly reason: (typeof FAULT_REASONS)[number]
  /** Of the configuration, e.g. `listId`. */
  readonly field: string
  /** Completes the name of the step or trigger, e.g. "has no subject". */
  readonly text: string
}

export function missing(field: string): FlowFault {
  return { reason: 'missing', field, text: `has no ${field}` }
}

/** @param what e.g. `a list` */
export function unknown(field: string, what: string, id?: string): FlowFault {
  const named = id === undefined ? '' : `: ${id}`
  return { reason: 'unknown', field, text: `refers to ${what} that does not exist${named}` }
}
