/**
 * Per-thread cache of mail plans: by content, for the messages of one content, and by source text, for the many contents made from one
 * template.
 *
 * Sources are cached from their second use on: most mail is sent once, and caching what is never reused costs more than it saves. The key
 * is a hash of the full source, since similar mails may differ in one name or number. Bounded by the length of the sources.
 * Fails: as planning does.
 */
import { createHash } from 'node:crypto'
import { given } from '../../core/given.js'
import { planBody, planSubject, type BodyPlan, type MailPlan, type MailSource } from './mail-plan.js'
import type { Merging } from './merging.js'

/** UTF-16 units of sources, about 70 templates of 30 KB. A plan takes about six times as many octets. */
const MAX_UNITS = 2 * 1_024 * 1_024
/** Hashes of sources seen once. */
const MAX_SEEN = 4_096

export class PlanCache {
  private readonly ofContents = new WeakMap<object, MailPlan>()
  /** By source and merge settings; least recently used first. */
  private readonly bodies = new Map<string, KeptBody>()
  private units = 0
  private readonly seen = new Set<string>()

  /** @param content the same object for all messages of a content; it and `merging` must not change */
  planOf(content: MailSource, merging: Merging): MailPlan {
    const known = this.ofContents.get(content)
    if (known) return known
    const plan = { subject: planSubject(content.subject, merging), body: this.bodyOf(content, merging) }
    this.ofContents.set(content, plan)
    return plan
  }

  private bodyOf({ html, text }: MailSource, merging: Merging): BodyPlan {
    const source = given({ html, text })
    const written = digestOf(html, text)
    if (this.isFirstSight(written)) return planBody(source, merging)
    const { brand, hasFooter, tracking } = merging
    const name = JSON.stringify([brand, hasFooter, tracking]) + written
    const known = this.bodies.get(name)
    const kept = known ?? { plan: planBody(source, merging), units: unitsOf(html) + unitsOf(text) }
    this.keep(name, kept, known !== undefined)
    return kept.plan
  }

  private isFirstSight(written: string): boolean {
    if (this.seen.has(written)) return false
    this.seen.add(written)
    const [oldest] = this.seen
    if (this.seen.size > MAX_SEEN && oldest !== undefined) this.seen.delete(oldest)
    return true
  }

  private keep(name: string, kept: KeptBody, isKnown: boolean): void {
    if (isKnown) this.bodies.delete(name)
    else this.units += kept.units
    this.bodies.set(name, kept)
    for (const [oldest, { units }] of this.bodies) {
      if (this.units <= MAX_UNITS) break
      this.bodies.delete(oldest)
      this.units -= units
    }
  }
}

interface KeptBody {
  readonly plan: BodyPlan
  readonly units: number
}

function unitsOf(part: string | undefined): number {
  return part?.length ?? 0
}

function digestOf(html: string | undefined, text: string | undefined): string {
  const parts = createHash('sha256').update(`${html?.length} ${text?.length} `)
  return parts
    .update(html ?? '')
    .update(text ?? '')
    .digest('base64')
}
