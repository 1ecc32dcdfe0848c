/**
 * Renders a mail for many recipients and reports faults with the recipients affected, without keeping the mails. Runs in the delivery threads.
 *
 * Links are rendered as they are sent, but for the tokens in them. Pure. Throws MergeError if the source cannot be parsed.
 */
import { MergeError, type Lookup } from '../merge/merge-tree.js'
import type { TrackedUrls } from '../merge/merge-values.js'
import { renderTemplate } from '../merge/render-template.js'
import { inspectHtml, type HtmlFacts } from './inspect-html.js'
import { faultOfLink } from './link-fault.js'
import { isEmptied, valuesOf, type MailSource, type SubscriberLinks } from './mail-plan.js'
import type { MergeContact } from '../merge/merge-values.js'
import type { Merging } from './merging.js'
import type { PlanCache } from './plan-cache.js'

export interface CheckedRecipient extends MergeContact {
  readonly id: string
}

export interface CheckRequest {
  readonly kind: 'check'
  readonly source: MailSource
  readonly merging: Omit<Merging, 'tracking'>
  /** Whether links will be redirected, which makes them longer. */
  readonly tracksClicks: boolean
  readonly recipients: readonly CheckedRecipient[]
  /** Date of the mail, ms since epoch UTC. */
  readonly date: number
  readonly links: SubscriberLinks
  /** Whether the first recipient's HTML is inspected. */
  readonly inspects: boolean
}

export const RECIPIENT_FAULTS = [
  'merge_value_missing',
  'link_empty',
  'link_broken',
  'subject_empty',
  'too_large',
  'not_renderable',
] as const
export type RecipientFault = (typeof RECIPIENT_FAULTS)[number]

/** How many recipients have the fault. */
export interface FaultCount {
  readonly fault: RecipientFault
  /** The tag of a missing value, or why it cannot be rendered; else empty. */
  readonly about: string
  readonly count: number
  /** Ids of contacts. */
  readonly examples: readonly string[]
}

export interface CheckResult {
  readonly kind: 'checked'
  readonly faults: readonly FaultCount[]
  /** Links that are the same for all recipients. */
  readonly links: readonly string[]
  /** Of the longest HTML, octets. */
  readonly largest: number
  /** Of the first recipient's HTML, if asked for; absent if nothing was rendered. */
  readonly html?: HtmlFacts
}

/** Gmail hides what follows; octets of HTML. */
export const CLIPPED_OCTETS = 102 * 1_024
const MAX_EXAMPLES = 5
/** Different tags that are reported. */
const MAX_ABOUT = 100
const MAX_LINKS = 500
const MAX_ABOUT_LENGTH = 200
/** Of a redirected link besides the target, and of the pixel: host, path and token. */
const LINK_OCTETS = 120

export function checkRecipients(request: CheckRequest, plans: PlanCache): CheckResult {
  const { source, recipients, tracksClicks, date, links } = request
  const merging: Merging = { ...request.merging, tracking: { opens: false, clicks: {} } }
  const plan = plans.planOf(source, merging)
  const counts = new FaultCounts()
  const shared = new Set<string>()
  let largest = 0
  let html: HtmlFacts | undefined
  for (const { id, ...contact } of recipients) {
    const note = (fault: RecipientFault, about = '') => counts.add(fault, about, id)
    let added = LINK_OCTETS
    const own: string[] = []
    const linkOctets = (url: string) => (tracksClicks ? LINK_OCTETS + Math.ceil(url.length / 3) : 0)
    const tracking: TrackedUrls = {
      pixelUrl: '',
      clickUrl: '',
      shared(url) {
        if (shared.size < MAX_LINKS) shared.add(url)
        added += linkOctets(url)
        return undefined
      },
      own(written) {
        const fault = faultOfLink(written)
        if (fault) {
          note(fault)
          own.push(written)
        }
        added += linkOctets(written)
        return undefined
      },
    }
    const onEmpty = (lookup: Lookup) => note('merge_value_missing', nameOf(lookup))
    const values = { ...valuesOf(merging, { contact }, contact.email, date, links, tracking), onEmpty }
    try {
      if (isEmptied(source.subject, renderTemplate(plan.subject, values))) note('subject_empty')
      const planned = plan.body.html?.for(values)
      if (!planned) continue
      const written = renderTemplate(planned.template, values)
      if (request.inspects) html ??= withoutOwnLinks(inspectHtml(written), own)
      const octets = Buffer.byteLength(written) + added
      largest = Math.max(largest, octets)
      if (octets > CLIPPED_OCTETS) note('too_large')
    } catch (error) {
      if (!(error instanceof MergeError)) throw error
      note('not_renderable', error.message.slice(0, MAX_ABOUT_LENGTH))
    }
  }
  return { kind: 'checked', faults: counts.all(), links: [...shared], largest, ...(html ? { html } : {}) }
}

/** Leaves links that are the same for all. @param faulty URLs of this recipient's own links, as attributes */
function withoutOwnLinks(facts: HtmlFacts, faulty: readonly string[]): HtmlFacts {
  const own = faulty.map(written => written.replaceAll('&amp;', '&').trim())
  const empty = own.filter(url => faultOfLink(url) === 'link_empty').length
  return {
    ...facts,
    emptyLinks: Math.max(0, facts.emptyLinks - empty),
    brokenLinks: facts.brokenLinks.filter(url => !own.includes(url)),
  }
}

/** As written in a tag. */
export function nameOf(lookup: Lookup): string {
  if (lookup.of === 'root') return lookup.name
  return lookup.of === 'loop' ? `@${lookup.variable}` : ['this', ...lookup.path].join('.')
}

interface Counted {
  readonly fault: RecipientFault
  readonly about: string
  count: number
  readonly examples: string[]
}

/** Adds up the faults of recipients. */
export class FaultCounts {
  private readonly counts = new Map<string, Counted>()
  /** The last recipient counted, by fault and tag: each counts once. */
  private readonly last = new Map<string, string>()

  add(fault: RecipientFault, about: string, contactId: string): void {
    const key = `${fault} ${about}`
    if (this.last.get(key) === contactId) return
    this.last.set(key, contactId)
    this.merge({ fault, about, count: 1, examples: [contactId] })
  }

  merge({ fault, about, count, examples }: FaultCount): void {
    const key = `${fault} ${about}`
    const known = this.counts.get(key)
    if (known) {
      known.count += count
      known.examples.push(...examples.slice(0, MAX_EXAMPLES - known.examples.length))
    } else if (this.counts.size < MAX_ABOUT)
      this.counts.set(key, { fault, about, count, examples: [...examples] })
  }

  all(): readonly FaultCount[] {
    return [...this.counts.values()]
  }
}
