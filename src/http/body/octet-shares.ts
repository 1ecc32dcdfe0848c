/**
 * A memory budget shared fairly among holders, for request bodies and for answers not fetched yet.
 *
 * Used by `body.ts` and `app.ts`. Pure; only counts, never waits: a refused caller must be asked to retry.
 */

export interface SharesRule {
  /** In total. */
  readonly total: number
  /** Per API key, or per address without a key. */
  readonly perHolder: number
}

/** Memory held by one request. */
export interface OctetHold {
  /** @returns false, taking nothing, if the budget does not suffice */
  take(octets: number): boolean
  /** Releases everything taken; idempotent. */
  release(): void
}

export class OctetShares {
  private readonly rule: SharesRule
  private readonly held = new Map<string, number>()
  private total = 0

  constructor(rule: SharesRule) {
    this.rule = rule
  }

  hold(holder: string): OctetHold {
    let taken = 0
    return {
      take: octets => {
        if (!this.add(holder, octets)) return false
        taken += octets
        return true
      },
      release: () => {
        this.remove(holder, taken)
        taken = 0
      },
    }
  }

  private add(holder: string, octets: number): boolean {
    const theirs = (this.held.get(holder) ?? 0) + octets
    if (theirs > this.rule.perHolder || this.total + octets > this.rule.total) return false
    this.held.set(holder, theirs)
    this.total += octets
    return true
  }

  private remove(holder: string, octets: number): void {
    const left = (this.held.get(holder) ?? 0) - octets
    if (left > 0) this.held.set(holder, left)
    else this.held.delete(holder)
    this.total -= octets
  }
}
