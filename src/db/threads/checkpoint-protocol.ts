/** What the server and the checkpointing thread say to each other. Holds no logic. Each message is answered by one. */

export interface CheckpointOptions {
  /** Path of the database file. */
  readonly file: string
}

export interface CheckpointAnswer {
  /** Why it could not be done. */
  readonly error?: string
}
