/** Who did something, as the activity log and API handlers name them. */

export const ACTOR_TYPES = ['api_key', 'operator', 'operator_token', 'shell', 'system'] as const

export interface Actor {
  readonly type: (typeof ACTOR_TYPES)[number]
  /** Id of the key, operator or token. */
  readonly id?: string
  /** Name of the key, email address of the operator, name of the system user. */
  readonly name?: string
  /** IP address the request came from. */
  readonly peer?: string
}

export const SYSTEM: Actor = { type: 'system' }

/** A user of the shell whose name is not known. */
export const SHELL: Actor = { type: 'shell' }
