/**
 * Says in which blocks of a mail its faults are: renders it for a few recipients with marks around its blocks, and looks at each block's
 * piece. Runs in the delivery threads. Pure. Throws MergeError if the source cannot be parsed.
 */
import { MarkReader } from '../blocks/mark-blocks.js'
import { featureOf } from '../clients/client-features.js'
import { MergeError } from '../merge/merge-tree.js'
import type { MergeValues, TrackedUrls } from '../merge/merge-values.js'
import { renderInto } from '../merge/render-template.js'
import { nameOf, type CheckedRecipient, type RecipientFault } from './check-recipients.js'
import { inspectHtml, type HtmlFacts } from './inspect-html.js'
import { faultOfLink } from './link-fault.js'
import { valuesOf, type SubscriberLinks } from './mail-plan.js'
import type { Merging } from './merging.js'
import type { PlanCache } from './plan-cache.js'

export interface LocateRequest {
  readonly kind: 'locate'
  /** With marks around its blocks (`blocks/mark-blocks.ts`); without any, everything is outside of blocks. */
  readonly html: string
  readonly merging: Omit<Merging, 'tracking'>
  readonly recipients: readonly CheckedRecipient[]
  /** Date of the mail, ms since epoch UTC. */
  readonly date: number
  readonly links: SubscriberLinks
}

/** Faults, and what can turn out to be one: links, images, and features of HTML and CSS. */
export type Located =
  | Extract<RecipientFault, 'merge_value_missing' | 'link_empty' | 'link_broken'>
  | 'link'
  | 'link_text_misleads'
  | 'image'
  | 'image_broken'
  | 'image_without_alt'
  | 'image_with_empty_alt'
  | 'feature'

export interface LocatedPlace {
  readonly what: Located
  /** The tag, link, image or name of the feature; may be empty. */
  readonly about: string
  /** Number of the block; undefined outside of blocks. */
  readonly block: number | undefined
}

export interface LocateResult {
  readonly kind: 'located'
  /** Each once, in the order of the mail. */
  readonly places: readonly LocatedPlace[]
}

const MAX_PLACES = 5_000

export function locateFaults(request: LocateRequest, plans: PlanCache): LocateResult {
  const { html, recipients, date, links } = request
  const merging: Merging = { ...request.merging, tracking: { opens: false, clicks: {} } }
  const { body } = plans.planOf({ subject: '', html }, merging)
  const places = new Places()
  for (const { id: _, ...contact } of recipients) {
    const marks = new MarkReader()
    const pieces = new Map<number | undefined, string>()
    const note = (what: Located, about = '') => places.add(what, about, marks.block)
    const tracking: TrackedUrls = {
      pixelUrl: '',
      clickUrl: '',
      shared(url) {
        note('link', url)
        return undefined
      },
      own(written) {
        const fault = faultOfLink(written)
        if (fault) note(fault)
        return undefined
      },
    }
    const values: MergeValues = {
      ...valuesOf(merging, { contact }, contact.email, date, links, tracking),
      onEmpty: lookup => note('merge_value_missing', nameOf(lookup)),
    }
    const put = (text: string) =>
      marks.read(text, (piece, block) => pieces.set(block, (pieces.get(block) ?? '') + piece))
    try {
      const planned = body.html?.for(values)
      if (planned) renderInto({ put }, planned.template, values)
    } catch (error) {
      // Inspects what was rendered until then.
      if (!(error instanceof MergeError)) throw error
    }
    for (const [block, piece] of pieces) places.addFacts(inspectHtml(piece), block)
  }
  return { kind: 'located', places: places.all() }
}

class Places {
  private readonly found = new Map<string, LocatedPlace>()

  add(what: Located, about: string, block: number | undefined): void {
    const key = `${what} ${block} ${about}`
    if (this.found.size < MAX_PLACES && !this.found.has(key)) this.found.set(key, { what, about, block })
  }

  addFacts(facts: HtmlFacts, block: number | undefined): void {
    const all = (what: Located, abouts: readonly string[]) => {
      for (const about of abouts) this.add(what, about, block)
    }
    all('link_empty', facts.emptyLinks > 0 ? [''] : [])
    all('link_broken', facts.brokenLinks)
    all('link_text_misleads', facts.mismatchedLinks)
    all('image', facts.imageUrls)
    all('image_broken', facts.brokenImages)
    all('image_without_alt', facts.imagesWithoutAlt)
    all('image_with_empty_alt', facts.imagesWithEmptyAlt)
    all(
      'feature',
      facts.features.flatMap(slug => featureOf(slug)?.name ?? []),
    )
  }

  all(): readonly LocatedPlace[] {
    const at = ({ block }: LocatedPlace) => block ?? -1
    return [...this.found.values()].toSorted((one, other) => at(one) - at(other))
  }
}
