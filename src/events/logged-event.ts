/**
 * An event as it lies in the log. What it says is parsed when somebody asks for it: most consumers pass most events by.
 *
 * Made by `store.ts`, read by all consumers, changed by none. Fails: asking for a payload throws where it is damaged, or cannot be read
 * at the moment.
 */

export interface LoggedRow {
  readonly seq: number
  readonly kind: string
  readonly workspace_id: string
  readonly message_id: string | null
  readonly is_sandbox: number
  readonly occurred_at: number
  /** JSON; null where it is to be read when it is asked for. */
  readonly payload: string | null
}

/** Where a payload is read later. */
export interface Payloads {
  textOf(event: { readonly seq: number; readonly kind: string }): string
}

export class LoggedEvent {
  readonly seq: number
  readonly kind: string
  readonly workspaceId: string
  readonly messageId: string | null
  readonly isSandbox: boolean
  /** Ms since epoch UTC. */
  readonly occurredAt: number
  #text: string | undefined
  #parsed: unknown
  readonly #late: Payloads

  constructor(row: LoggedRow, late: Payloads) {
    this.seq = row.seq
    this.kind = row.kind
    this.workspaceId = row.workspace_id
    this.messageId = row.message_id
    this.isSandbox = row.is_sandbox === 1
    this.occurredAt = row.occurred_at
    this.#text = row.payload ?? undefined
    this.#late = late
  }

  /** @throws Error */
  get payload(): unknown {
    if (this.#parsed === undefined) {
      this.#parsed = JSON.parse(this.#text ?? this.#late.textOf(this)) as unknown
      this.#text = undefined
    }
    return this.#parsed
  }

  toJSON(): unknown {
    const { seq, kind, workspaceId, messageId, isSandbox, occurredAt, payload } = this
    return { seq, kind, workspaceId, messageId, isSandbox, occurredAt, payload }
  }
}
