/**
 * A rendering that a request waits for, such as a preview or the view-in-browser page, as plain values that can cross threads. Pure. Never
 * throws for faulty templates or data; the result is then `refused`.
 */
import { given } from '../../core/given.js'
import { MergeError, type MergePlace, type MergeTemplate } from '../merge/merge-tree.js'
import { parseTemplate } from '../merge/parse-template.js'
import { renderTemplate } from '../merge/render-template.js'
import { checkRecipients, type CheckRequest, type CheckResult } from './check-recipients.js'
import { locateFaults, type LocateRequest, type LocateResult } from './locate-faults.js'
import { renderMail, valuesOf, type MailSource, type SubscriberLinks } from './mail-plan.js'
import type { MergeData, Merging, RecipientValues } from './merging.js'
import type { PlanCache } from './plan-cache.js'

export type RenderRequest = MailRequest | ParseRequest | CheckRequest | LocateRequest

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

/** Checks the syntax of sources. */
export interface ParseRequest {
  readonly kind: 'parse'
  readonly sources: readonly { readonly source: string; readonly place: MergePlace }[]
  /** Also checks that rendering the sources with it stays within the limits for any recipient. */
  readonly data?: MergeData
}

export type RenderResult =
  | ({ readonly kind: 'mail' } & MailSource)
  | { readonly kind: 'parsed' }
  | CheckResult
  | LocateResult
  /** The source or its data cannot be rendered; with line and column if known. `place`: of the source that cannot be parsed. */
  | { readonly kind: 'refused'; readonly message: string; readonly place?: MergePlace }

export function runRenderRequest(request: RenderRequest, plans: PlanCache): RenderResult {
  try {
    if (request.kind === 'mail') return mailOf(request, plans)
    if (request.kind === 'parse') return parseAll(request)
    if (request.kind === 'check') return checkRecipients(request, plans)
    return locateFaults(request, plans)
  } catch (error) {
    if (error instanceof MergeError) return { kind: 'refused', message: error.message }
    throw error
  }
}

/** @throws MergeError if rendering with the data exceeds the limits */
function parseAll({ sources, data }: ParseRequest): RenderResult {
  const templates: MergeTemplate[] = []
  for (const { source, place } of sources)
    try {
      templates.push(parseTemplate(source, place))
    } catch (error) {
      if (error instanceof MergeError) return { kind: 'refused', message: error.message, place }
      throw error
    }
  if (data) for (const template of templates) renderTemplate(template, { system: {}, data })
  return { kind: 'parsed' }
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
