/**
 * Reads template_data, and merges a message's fields and template into the stored content.
 *
 * Called by `send-email.ts` and `batch-messages.ts`; they look the template up at the point the contract's order of checks
 * prescribes. Pure. Fails: AppError validation_error.
 */
import type { ActingWorkspace } from '../../../accounts/workspace-store.js'
import type { MergeData } from '../../../content/rendering/merging.js'
import { formatSize } from '../../../core/units.js'
import type { MessageContent } from '../../../messages/content-store.js'
import { mergingOf, requireFilledSubject, type AskedTemplate } from '../../merged-content.js'
import type { MessageFields } from '../send-schema.js'
import type { ContentFields } from './content-fields.js'
import { invalidField } from './field-fault.js'

/** Characters of JSON; the same as the limit of html. */
const MAX_DATA = 256 * 1_024
/** Over all levels; 10,000 take a few milliseconds to check, and rendering is limited to 20,000 steps anyway. */
const MAX_VALUES = 10_000

/** @throws AppError validation_error */
export function readTemplateData({ template_data: data }: MessageFields): MergeData | undefined {
  if (data === undefined) return undefined
  const fault = findFault(data)
  if (fault !== undefined) throw invalidField('template_data', `template_data ${fault}`)
  return isEmpty(data) ? undefined : data
}

function isEmpty(data: MergeData): boolean {
  for (const _ in data) return false
  return true
}

/**
 * Fields of the request override the template's.
 *
 * @param isTried `tryElsewhere` has rendered it with this data
 * @throws AppError validation_error
 */
export function fillFields(
  workspace: ActingWorkspace,
  fields: ContentFields,
  template: AskedTemplate | undefined,
  data: MergeData | undefined,
  asked: TrackingFields,
  isTried = false,
): ContentFields & Pick<MessageContent, 'merging' | 'templateId' | 'trackOpens' | 'trackClicks'> {
  const { subject, html = template?.html, text } = fields
  const {
    track_opens: trackOpens = workspace.trackOpens,
    track_clicks: trackClicks = workspace.trackClicks,
  } = asked
  requireFilledSubject(workspace, subject, data)
  const hasHtml = html !== undefined
  const merging = mergingOf(workspace, {
    source: { subject, html, text },
    data,
    hasFooter: hasHtml,
    trackOpens: hasHtml && trackOpens,
    trackClicks: hasHtml && trackClicks,
    isTried,
  })
  // Added fields come first, as in `toContent` of `submit.ts`.
  return {
    trackOpens,
    trackClicks,
    ...(merging ? { merging } : {}),
    ...(template ? { templateId: template.id } : {}),
    ...fields,
    ...(hasHtml ? { html } : {}),
  }
}

/** Default: the workspace's settings. */
type TrackingFields = Pick<MessageFields, 'track_opens' | 'track_clicks'>

const TOO_LARGE = `must have at most ${formatSize(MAX_DATA)} as JSON`
const TOO_MANY = `must have at most ${MAX_VALUES} values`

/** Stops at the limits, so that oversized data is neither traversed nor serialized. */
function findFault(data: MergeData): string | undefined {
  let [octets, values] = [MAX_DATA, MAX_VALUES]
  let hasNul = false
  const waiting: unknown[] = [data]
  while (waiting.length > 0) {
    const value = waiting.pop()
    octets -= 1
    if (typeof value === 'string') {
      octets -= value.length
      hasNul ||= value.includes('\0')
    } else if (typeof value === 'object' && value !== null) {
      const keys = Object.keys(value)
      values -= keys.length
      if (values < 0) return TOO_MANY
      for (const key of keys) {
        octets -= Array.isArray(value) ? 1 : key.length
        waiting.push((value as Record<string, unknown>)[key])
      }
    }
    if (octets < 0) return TOO_LARGE
  }
  // RFC 5322 §4: NUL is not allowed in messages.
  if (hasNul) return 'contains a NUL character'
  return JSON.stringify(data).length > MAX_DATA ? TOO_LARGE : undefined
}
