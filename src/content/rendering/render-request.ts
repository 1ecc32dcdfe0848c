/**
 * A rendering that a request waits for, such as a preview or the view-in-browser page, as plain values that can cross threads. Pure. Never
 * throws for faulty templates or data; the result is then `refused`.
 */
import { given } from '../../core/given.js'
import { MergeError, type MergePlace } from '../merge/merge-tree.js'
import { parseTemplate } from '../merge/parse-template.js'
import { renderTemplate } from '../merge/render-template.js'
import { checkRecipients, type CheckRequest, type CheckResult } from './check-recipients.js'
import { locateFaults, type LocateRequest, type LocateResult } from './locate-faults.js'
import { renderMail, valuesOf, type MailSource, type SubscriberLinks } from './mail-plan.js'
import type { MergeData, Merging, RecipientValues } from './merging.js'
import type { PlanCache } from './plan-cache.js'

export type RenderRequest = MailRequest | ParseRequest | TryRequest | CheckRequest | LocateRequest

/** One mail rendered for one recipient. Its links are not redirected. */
export interface MailRequest {
  readonly kind: 'mail'
  readonly source: MailSource
  /** Absent if there is nothing to merge. */
  readonly merging?: Omit<Merging, 'tracking'>
  readonly own: RecipientValues
  readonly recipient: string
  /** Date of the mail, ms since epoch UTC. */
  readonly date: number
  readonly links: SubscriberLinks
  /** Skips the text if there is HTML. */
  readonly isHtmlEnough: boolean
}

export interface ParseRequest {
  readonly kind: 'parse'
  readonly source: string
  readonly place: MergePlace
}

/** Checks that rendering the sources with this data stays within the limits for any recipient. */
export interface TryRequest {
  readonly kind: 'try'
  readonly sources: readonly { readonly source: string; readonly place: MergePlace }[]
  readonly data: MergeData
}

export type RenderResult =
  | ({ readonly kind: 'mail' } & MailSource)
  | { readonly kind: 'parsed' | 'tried' }
  | CheckResult
  | LocateResult
  /** The source or its data cannot be rendered; with line and column if known. */
  | { readonly kind: 'refused'; readonly message: string }

export function runRenderRequest(request: RenderRequest, plans: PlanCache): RenderResult {
  try {
    if (request.kind === 'mail') return mailOf(request, plans)
    if (request.kind === 'parse') {
      parseTemplate(request.source, request.place)
      return { kind: 'parsed' }
    }
    if (request.kind === 'check') return checkRecipients(request, plans)
    if (request.kind === 'locate') return locateFaults(request, plans)
    const { sources, data } = request
    for (const { source, place } of sources)
      renderTemplate(parseTemplate(source, place), { system: {}, data })
    return { kind: 'tried' }
  } catch (error) {
    if (error instanceof MergeError) return { kind: 'refused', message: error.message }
    throw error
  }
}

function mailOf(
  { source, merging, own, recipient, date, links, isHtmlEnough }: MailRequest,
  plans: PlanCache,
): RenderResult {
  if (!merging) return { kind: 'mail', ...source }
  const plan = plans.planOf(source, merging)
  const values = valuesOf(merging, own, recipient, date, links)
  if (!isHtmlEnough || plan.body.html === undefined) return { kind: 'mail', ...renderMail(plan, values) }
  const html = renderTemplate(plan.body.html.for(values).template, values)
  return { kind: 'mail', subject: renderTemplate(plan.subject, values), ...given({ html }) }
}
