/**
 * Closes parts in reverse order of opening.
 *
 * Fails: all parts are closed even if one fails; the first error is thrown at the end.
 */
export class AsyncDisposableStack implements AsyncDisposable {
  private readonly steps: (() => PromiseLike<void> | void)[] = []

  defer(step: () => PromiseLike<void> | void): void {
    this.steps.push(step)
  }

  use<T extends AsyncDisposable | Disposable>(part: T): T {
    this.defer(() => (Symbol.asyncDispose in part ? part[Symbol.asyncDispose]() : part[Symbol.dispose]()))
    return part
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = []
    for (let step = this.steps.pop(); step; step = this.steps.pop())
      try {
        await step()
      } catch (error) {
        failures.push(error)
      }
    if (failures.length > 0) throw failures[0]
  }
}
