/** The node that writes was removed by others that share the database (`Database.actAs`). Clients get `unavailable`. */
export class RemovedError extends Error {
  override readonly name = 'RemovedError'

  constructor() {
    super('this node was removed by the others')
  }
}

/** Whether it is one, or was caused by one. */
export function isRemoval(thrown: unknown): boolean {
  return thrown instanceof RemovedError || (thrown instanceof Error && thrown.cause instanceof RemovedError)
}
