/**
 * Reads template_data of one message, and makes of its fields and its template what is stored.
 *
 * Called by `send-email.ts` and `batch-messages.ts`: the data is read with the other fields, the template is looked up where the contract
 * has it among its rules. Pure. Fails: AppError validation_error.
 */
import type { ActingWorkspace } from '../../../accounts/workspace-store.js'
import type { MergeData } from '../../../content/rendering/merging.js'
import { formatSize } from '../../../core/units.js'
import type { MessageContent } from '../../../messages/content-store.js'
import { mergingOf, requireFilledSubject, type AskedTemplate } from '../../merged-content.js'
import type { MessageFields } from '../send-schema.js'
import type { ContentFields } from './content-fields.js'
import { invalidField } from './field-fault.js'

/** Characters of JSON: as much as a body may have. */
const MOST_DATA = 256 * 1_024
/** On all levels together: 10,000 names are looked through in one turn of some ms. A render takes 20,000 steps at most. */
const MOST_VALUES = 10_000

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
 * The content with all that it is made of: what the request says goes before what the template says.
 *
 * @param isTried whether `tryElsewhere` has rendered it with this data
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
  // What is added stands first, as in `toContent` of `submit.ts`.
  return {
    trackOpens,
    trackClicks,
    ...(merging ? { merging } : {}),
    ...(template ? { templateId: template.id } : {}),
    ...fields,
    ...(hasHtml ? { html } : {}),
  }
}

/** Of a request; what it leaves out the workspace says. */
type TrackingFields = Pick<MessageFields, 'track_opens' | 'track_clicks'>

const TOO_LARGE = `must have at most ${formatSize(MOST_DATA)} as JSON`
const TOO_MANY = `must have at most ${MOST_VALUES} values`

/** Counts as it goes: what is far too large is neither looked through nor written down to be measured. */
function findFault(data: MergeData): string | undefined {
  let [octets, values] = [MOST_DATA, MOST_VALUES]
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
  // RFC 5322 §4: no message holds one.
  if (hasNul) return 'contains a NUL character'
  return JSON.stringify(data).length > MOST_DATA ? TOO_LARGE : undefined
}
