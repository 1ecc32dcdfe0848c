/**
 * What a mail made of a template would look like: rendered with somebody's tags, the compliance footer added. Nothing is sent.
 *
 * Called by the preview route. Fails: throws AppError validation_error where the rendering goes past its bounds.
 */
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { MergeError } from '../merge/merge-error.js'
import type { MergeContact } from '../merge/merge-values.js'
import { brandOf, type BrandSettings } from '../rendering/merging.js'
import { planBody, planSubject, renderMail, valuesOf } from '../rendering/mail-plan.js'

/** They lead nowhere: a preview is nobody's mail. */
const NO_LINKS = { unsubscribeUrl: '#', preferencesUrl: '#', viewUrl: '#' }

export interface PreviewOf {
  readonly html: string
  readonly subject: string | undefined
  readonly data: Readonly<Record<string, unknown>> | undefined
  readonly contact: MergeContact | undefined
}

export function preview(
  { html, subject, data, contact }: PreviewOf,
  settings: BrandSettings,
  now: number,
): { subject: string | null; html: string; text: string } {
  const merging = { brand: brandOf(settings), hasFooter: true }
  const values = valuesOf(merging, given({ data, contact }), '', now, NO_LINKS)
  try {
    const plan = { subject: planSubject(subject ?? '', merging), body: planBody({ html }, merging) }
    const { subject: line, html: rendered = '', text = '' } = renderMail(plan, values)
    return { subject: subject === undefined ? null : line, html: rendered, text }
  } catch (error) {
    if (error instanceof MergeError)
      throw new AppError('validation_error', error.message, { path: 'template_data' })
    throw error
  }
}
