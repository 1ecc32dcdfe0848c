/**
 * What a mail made of a template would look like: rendered with somebody's tags, the compliance footer added. Nothing is sent.
 *
 * Called by the preview route. Fails: throws AppError validation_error where the rendering goes past its bounds.
 */
import { AppError } from '../../core/errors.js'
import { plainTextOf } from '../../mail/compose/plain-text.js'
import { addComplianceFooter } from '../footer/compliance-footer.js'
import { dateTags } from '../merge/date-tags.js'
import { MergeError } from '../merge/merge-error.js'
import type { MergeContact } from '../merge/merge-values.js'
import { parseTemplate } from '../merge/parse-template.js'
import { renderTemplate } from '../merge/render-template.js'

/** What a workspace says of itself in its mail. */
export interface Brand {
  readonly companyName: string | null
  readonly companyAddress: string | null
  /** Whether the footer carries the attribution line. */
  readonly attribution: boolean
  /** IANA name of a time zone. */
  readonly timezone: string
}

/** Leads nowhere: a preview is nobody's mail. */
const NO_LINK = '#'
/** Less than a mail may take: a preview is made where requests are answered. */
const PREVIEW_BOUNDS = { steps: 20_000, units: 1_024 * 1_024 }
const ATTRIBUTION = 'Sent with Postroad'

export interface PreviewOf {
  readonly html: string
  readonly subject: string | undefined
  readonly data: Readonly<Record<string, unknown>> | undefined
  readonly contact: MergeContact | undefined
}

export function preview(
  { html, subject, data, contact }: PreviewOf,
  brand: Brand,
  now: number,
): { subject: string | null; html: string; text: string } {
  const address = brand.companyAddress ?? ''
  const footed = addComplianceFooter(html, {
    companyAddress: address,
    attribution: brand.attribution ? ATTRIBUTION : '',
  })
  const system = {
    unsubscribe_url: NO_LINK,
    preferences_url: NO_LINK,
    company_name: brand.companyName ?? '',
    company_address: address,
    ...dateTags(now, brand.timezone),
  }
  const values = { system, ...(data && { data }), ...(contact && { contact }) }
  try {
    const rendered = renderTemplate(parseTemplate(footed, 'html'), values, PREVIEW_BOUNDS)
    const line = subject === undefined ? null : renderTemplate(parseTemplate(subject, 'subject'), values)
    return { subject: line, html: rendered, text: plainTextOf(rendered) }
  } catch (error) {
    if (error instanceof MergeError)
      throw new AppError('validation_error', error.message, { path: 'template_data' })
    throw error
  }
}
