/** Reads an A/B test from a request. Pure. Fails: AppError validation_error with the field's path. */
import { refusal } from '../../audience/checks.js'
import { validText } from '../../content/merge/merge-text.js'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { readSenderFields } from '../../msa/rest/address-fields.js'
import { readSubject } from '../../msa/rest/content-fields.js'
import { DEFAULT_DECIDE_AFTER_MINUTES, type AbTest, type Variant } from '../model/ab-test.js'
import type { AbTestBody } from './ab-test-schema.js'

/** @throws AppError validation_error */
export function readAbTest(body: AbTestBody): AbTest {
  const { sample_percent: percent = null, sample_size: size = null } = body
  if ((percent === null) === (size === null))
    throw refusal('ab_test.sample_percent', 'give sample_percent or sample_size, and not both')
  return {
    variants: body.variants.map((variant, at) => readVariant(variant, `ab_test.variants.${at}`)),
    samplePercent: percent,
    sampleSize: size,
    metric: body.metric ?? 'clicks',
    decideAfterMinutes:
      body.decide_after_minutes === undefined ? DEFAULT_DECIDE_AFTER_MINUTES : body.decide_after_minutes,
    ifUnclear: body.if_unclear ?? 'best',
  }
}

function readVariant(body: AbTestBody['variants'][number], path: string): Variant {
  const { template_id: template, from_email: fromEmail = null, from_name: fromName = null } = body
  return at(path, () => {
    const subject = body.subject ?? null
    const read = subject === null ? null : readSubject(subject)
    if (read !== null) validText(read, 'subject', 'subject')
    readSenderFields(given({ from_email: fromEmail ?? undefined, from_name: fromName ?? undefined }))
    return { subject: read, templateId: template?.toLowerCase() ?? null, fromEmail, fromName }
  })
}

/** Names the variant in the path of a fault. */
function at<T>(path: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    const field = error.path
    throw new AppError(error.code, error.message, { path: field === undefined ? path : `${path}.${field}` })
  }
}
