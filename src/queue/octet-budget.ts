/**
 * A bound on memory that several hold at a time: who asks for more than is left waits until others give back.
 *
 * Used by the job loader for messages that are too large to keep. Pure; first come, first served. Fails: never; one that
 * is larger than the whole budget passes when it is alone.
 */
export class OctetBudget {
  private readonly total: number
  private left: number
  private readonly waiting: { readonly octets: number; readonly begin: () => void }[] = []

  constructor(total: number) {
    this.total = total
    this.left = total
  }

  /** Resolves when so many octets are the caller's, with the function that gives them back. */
  async take(octets: number): Promise<() => void> {
    const wanted = Math.min(octets, this.total)
    if (this.waiting.length > 0 || wanted > this.left)
      await new Promise<void>(begin => this.waiting.push({ octets: wanted, begin }))
    else this.left -= wanted
    let isHeld = true
    return () => {
      if (isHeld) this.giveBack(wanted)
      isHeld = false
    }
  }

  private giveBack(octets: number): void {
    this.left += octets
    while (this.waiting[0] !== undefined && this.waiting[0].octets <= this.left) {
      const [next] = this.waiting.splice(0, 1)
      if (!next) return
      this.left -= next.octets
      next.begin()
    }
  }
}
