/**
 * Octets of memory that many may hold at a time, shared so that nobody holds them all: of bodies being read and worked on, and
 * of answers that their clients have not taken yet.
 *
 * Used by `body.ts` and `app.ts`. Pure; counts and never waits: who finds no room is to be told to come again.
 */

export interface SharesRule {
  /** In all. */
  readonly total: number
  /** Of one holder at most: an API key, or an address where there is no key. */
  readonly perHolder: number
}

/** What one request holds. */
export interface OctetHold {
  /** @returns whether there was room; where not, nothing is taken */
  take(octets: number): boolean
  /** Everything that was taken; harmless when repeated. */
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
