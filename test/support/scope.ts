/** What a helper needs of its caller, a test or a program of `test/proof/`: a place for what has to be undone at the end. */
export interface Scope {
  /** Undone in reverse order. */
  teardown(end: () => unknown): unknown
}
