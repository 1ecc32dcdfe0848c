/** Lets a part tell others that something happened, whichever of them opens first. Listeners are called in the order in which they came. */
export class Signal<Args extends readonly unknown[] = []> {
  private readonly listeners: ((...args: Args) => void)[] = []

  on(listener: (...args: Args) => void): void {
    this.listeners.push(listener)
  }

  readonly emit = (...args: Args): void => {
    for (const listener of this.listeners) listener(...args)
  }
}
