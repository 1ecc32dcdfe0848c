/** Messages between the server and the checkpoint thread: one response per request. Holds no logic. */

export interface CheckpointOptions {
  /** Path of the database file. */
  readonly file: string
}

export interface CheckpointAnswer {
  /** Why it failed. */
  readonly error?: string
}
