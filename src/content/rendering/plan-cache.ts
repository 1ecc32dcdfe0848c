/**
 * The plans of mails as one delivery thread keeps them: by content, for the messages of one, and by what is written in it, for
 * the many contents that are made of one template.
 *
 * What is written is kept from the second time on: most mail that is sent once is never sent again, and what is kept and then
 * dropped costs more than what was never kept. Bounded by the length of what was written. Fails: as planning does.
 */
import { given } from '../../core/given.js'
import { planBody, planSubject, type BodyPlan, type MailPlan, type MailSource } from './mail-plan.js'
import type { Merging } from './merging.js'

/** UTF-16 units of sources: some 130 templates of 30 KB. */
const MOST_UNITS = 4 * 1_024 * 1_024
/** Sources of which it is known that they were seen. */
const MOST_SEEN = 4_096
/** Where a source is looked at to know it again. */
const SAMPLES = 16

export class PlanCache {
  private readonly ofContents = new WeakMap<object, MailPlan>()
  /** Used longest ago first. */
  private readonly bodies = new Map<string, BodyPlan>()
  private units = 0
  private readonly seen = new Set<string>()

  /** @param content the same object for all messages of a content; both it and `merging` stay as they are */
  planOf(content: MailSource, merging: Merging): MailPlan {
    const known = this.ofContents.get(content)
    if (known) return known
    const plan = { subject: planSubject(content.subject, merging), body: this.bodyOf(content, merging) }
    this.ofContents.set(content, plan)
    return plan
  }

  private bodyOf({ html, text }: MailSource, merging: Merging): BodyPlan {
    const source = given({ html, text })
    const written = `${html ?? ''}\0${text ?? ''}`
    if (this.isFirstSight(written)) return planBody(source, merging)
    const { brand, hasFooter, tracking } = merging
    const name =
      JSON.stringify([brand, hasFooter, tracking, html === undefined, text === undefined]) + written
    const known = this.bodies.get(name)
    const plan = known ?? planBody(source, merging)
    this.keep(name, plan, known !== undefined)
    return plan
  }

  private isFirstSight(written: string): boolean {
    const step = Math.max(1, Math.floor(written.length / SAMPLES))
    let print = `${written.length}`
    for (let at = 0; at < written.length; at += step) print += ` ${written.charCodeAt(at)}`
    if (this.seen.has(print)) return false
    this.seen.add(print)
    const [oldest] = this.seen
    if (this.seen.size > MOST_SEEN && oldest !== undefined) this.seen.delete(oldest)
    return true
  }

  private keep(name: string, plan: BodyPlan, isKnown: boolean): void {
    if (isKnown) this.bodies.delete(name)
    else this.units += name.length
    this.bodies.set(name, plan)
    for (const [oldest] of this.bodies) {
      if (this.units <= MOST_UNITS) break
      this.bodies.delete(oldest)
      this.units -= oldest.length
    }
  }
}
