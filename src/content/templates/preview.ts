/**
 * Previews a template: renders it with the given tags and the compliance footer, in another thread. Nothing is sent.
 *
 * Throws AppError validation_error if it cannot be rendered with that data, and as the render desk does.
 */
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import type { MergeContact } from '../merge/merge-values.js'
import { brandOf, type BrandSettings } from '../rendering/merging.js'
import { renderKey, type RenderDesk } from '../rendering/render-desk.js'
import type { MailRequest } from '../rendering/render-request.js'
import type { Template } from './template-store.js'

/** Dead links, since a preview belongs to no recipient. */
const NO_LINKS = { unsubscribeUrl: '#', preferencesUrl: '#', viewUrl: '#' }
/** How long a preview may be cached, and so the precision of its date tags. */
const SAME_MS = 60_000

export interface PreviewOf {
  readonly workspaceId: string
  readonly template: Pick<Template, 'id' | 'version' | 'html'>
  readonly subject: string | undefined
  readonly data: Readonly<Record<string, unknown>> | undefined
  readonly contact: MergeContact | undefined
}

export async function preview(
  desk: RenderDesk,
  { workspaceId, template: { id, version, html }, subject, data, contact }: PreviewOf,
  settings: BrandSettings,
  now: number,
): Promise<{ subject: string | null; html: string; text: string }> {
  const request: MailRequest = {
    kind: 'mail',
    source: { subject: subject ?? '', html },
    merging: { brand: brandOf(settings), hasFooter: true },
    own: given({ data, contact }),
    recipient: '',
    date: now - (now % SAME_MS),
    links: NO_LINKS,
    isHtmlEnough: false,
  }
  const key = renderKey('preview', id, version, { ...request, source: { subject } })
  const result = await desk.render({ key, workspaceId, load: () => Promise.resolve(request) })
  if (result.kind === 'refused')
    throw new AppError('validation_error', result.message, { path: 'template_data' })
  const { subject: line, html: rendered = '', text = '' } = result.kind === 'mail' ? result : { subject: '' }
  return { subject: subject === undefined ? null : line, html: rendered, text }
}
