/**
 * Resolves a request's template and merge data into storable content, and checks that it can be rendered.
 *
 * Called by the REST sends and SMTP submission. Contact data is only known at delivery: mail that exceeds the render limits
 * because of it ends as `failed`, with the reason.
 * Fails: AppError validation_error with the field's path, and template_not_found.
 */
import type { ActingWorkspace, Workspace } from '../accounts/workspace-store.js'
import { rendersEmpty, EMPTY_SUBJECT, hasTags, type MailSource } from '../content/rendering/mail-plan.js'
import { brandOf, type MergeData, type Merging } from '../content/rendering/merging.js'
import { renderKey, type RenderQueue } from '../content/rendering/render-queue.js'
import type { RenderRequest, RenderResult } from '../content/rendering/render-request.js'
import type { UrlParameters } from '../content/tracking/followed-url.js'
import { MergeError, type MergePlace } from '../content/merge/merge-tree.js'
import { parseTemplate } from '../content/merge/parse-template.js'
import { RENDER_BOUNDS, renderTemplate } from '../content/merge/render-template.js'
import { findTemplateHtml } from '../content/templates/template-store.js'
import { AppError } from '../core/errors.js'
import { given } from '../core/given.js'
import { isUuid } from '../core/ids.js'
import type { Queries } from '../db/database.js'
import { hasHeaderBreak } from '../mail/compose/header-field.js'

/** A template named by a request. */
export interface AskedTemplate {
  readonly id: string
  readonly html: string
}

/** `MailSource` whose fields may be undefined. */
type AskedSource = { readonly [Field in keyof MailSource]: MailSource[Field] | undefined } & Pick<
  MailSource,
  'subject'
>

export interface MergeRequest {
  readonly source: AskedSource
  readonly data: MergeData | undefined
  readonly hasFooter: boolean
  readonly trackOpens: boolean
  readonly trackClicks: boolean
  /** `tryElsewhere` has already rendered it with this data. */
  readonly isTried?: boolean
}

/** @returns undefined for content that is sent unchanged */
export function mergingOf(
  workspace: Workspace,
  { source, data, hasFooter, trackOpens, trackClicks, isTried = false }: MergeRequest,
): Merging | undefined {
  const isFilledIn = hasTags(source.subject) || hasTags(source.html) || hasTags(source.text)
  // Marketing mail carries the unsubscribe header fields, which differ by recipient.
  const isTracked = trackOpens || trackClicks
  if (!isFilledIn && !hasFooter && !isTracked && !workspace.isMarketing) return undefined
  const clicks = trackClicks ? { clicks: parametersOf(workspace) } : {}
  const tracking = isTracked ? { tracking: { opens: trackOpens, ...clicks } } : {}
  const merging = { brand: brandOf(workspace), hasFooter, ...tracking }
  if (!isFilledIn || data === undefined) return merging
  tryOut(source, data, isTried)
  return { ...merging, data }
}

/**
 * A sandbox also finds its live workspace's templates.
 *
 * @param asked the template's id, if the request names one
 * @param path of the field that names it
 * @throws AppError template_not_found
 */
export async function findAskedTemplate(
  db: Queries,
  { id: workspaceId, liveId }: ActingWorkspace,
  asked: string | undefined,
  path = 'template_id',
): Promise<AskedTemplate | undefined> {
  if (asked === undefined) return undefined
  const id = asked.toLowerCase()
  const html = isUuid(id)
    ? ((await findTemplateHtml(db, workspaceId, id)) ??
      (workspaceId === liveId ? undefined : await findTemplateHtml(db, liveId, id)))
    : undefined
  if (html === undefined)
    throw new AppError('template_not_found', `${path}: no template has this id`, { path })
  return { id, html }
}

function parametersOf({ utmSource, utmMedium, utmCampaign }: Workspace): UrlParameters {
  const named = { utm_source: utmSource, utm_medium: utmMedium, utm_campaign: utmCampaign }
  return Object.fromEntries(
    Object.entries(named).flatMap(([name, value]) => (value === null ? [] : [[name, value]])),
  )
}

/** Checks merge tag syntax. @param path of the field that holds the source @throws AppError validation_error, with line and column */
export function requireReadable(source: string, place: MergePlace, path: string): void {
  if (!hasTags(source)) return
  try {
    parseTemplate(source, place)
  } catch (error) {
    throw asFault(error, path, `${path}: `)
  }
}

/** As `requireReadable`, by the result of `readElsewhere` if there is one; adds its own. */
export function requireKnownReadable(
  readable: KnownReadable,
  source: string | undefined,
  field: 'html' | 'text',
): void {
  if (source === undefined || !hasTags(source)) return
  const name = readableName(field, source)
  const known = readable.get(name)
  if (typeof known === 'string') throw fault(field, `${field}: ${known}`)
  if (known === undefined) requireReadable(source, field, field)
  readable.set(name, null)
}

/** Tags filled from the contact, which is looked up at delivery. */
const OF_CONTACTS = /^(email|firstName|first_name|lastName|last_name|company|attributes\..+)$/

/**
 * Rejects a subject that renders empty for every recipient. One with contact tags is checked at delivery instead.
 *
 * @throws AppError validation_error
 */
export function requireFilledSubject(
  workspace: Workspace,
  subject: string,
  data: MergeData | undefined,
  path = 'subject',
): void {
  if (!hasTags(subject)) return
  const { names } = parseTemplate(subject, 'subject')
  if (names.some(name => OF_CONTACTS.test(name))) return
  if (rendersEmpty(subject, brandOf(workspace), given({ data })))
    throw fault(path, `${EMPTY_SUBJECT}: template_data has no value for ${names.join(', ')}`)
}

/** UTF-16 units of source and data that are checked inline, which takes a few milliseconds at most. */
const SHORT = 16_384

/** Parsed sources, keyed by `readableName`: the syntax error, or null. */
export type KnownReadable = Map<string, string | null>

export function readableName(place: 'html' | 'text', source: string): string {
  return `${place} ${source}`
}

/**
 * Parses long sources with merge tags in another thread, and nowhere else: while all threads are busy, the main thread must not be as well.
 *
 * @param known receives the results
 * @throws AppError unavailable if the threads are busy
 */
export async function readElsewhere(
  desk: RenderQueue | undefined,
  workspaceId: string,
  sources: { readonly html?: string | null | undefined; readonly text?: string | null | undefined },
  known: KnownReadable,
): Promise<void> {
  if (!desk) return
  for (const place of ['html', 'text'] as const) {
    const source = sources[place]
    if (typeof source !== 'string' || source.length <= SHORT || !hasTags(source)) continue
    const name = readableName(place, source)
    if (known.has(name)) continue
    const result = await renderedElsewhere(desk, workspaceId, { kind: 'parse', source, place })
    known.set(name, result.kind === 'refused' ? result.message : null)
  }
}

/**
 * Renders a long html or text with its data in another thread, to check it against the limits.
 *
 * @returns false if it is short, or cannot exceed the limits
 * @throws AppError validation_error if it exceeds the limits, unavailable if the threads are busy
 */
export async function tryElsewhere(
  desk: RenderQueue | undefined,
  workspaceId: string,
  { html = '', text = '' }: { readonly html?: string | undefined; readonly text?: string | undefined },
  data: MergeData | undefined,
): Promise<boolean> {
  if (!desk || data === undefined || !(hasTags(html) || hasTags(text))) return false
  const size = JSON.stringify(data).length
  if (html.length + text.length + size <= SHORT) return false
  const sources = [
    { source: html, place: 'html' as const },
    { source: text, place: 'text' as const },
  ].filter(({ source }) => mayPassBounds(source, size))
  if (sources.length === 0) return false
  const result = await renderedElsewhere(desk, workspaceId, { kind: 'try', sources, data })
  if (result.kind === 'refused') throw fault('template_data', `with this template_data, ${result.message}`)
  return true
}

function renderedElsewhere(
  desk: RenderQueue,
  workspaceId: string,
  request: RenderRequest,
): Promise<RenderResult> {
  const key = renderKey('source', request)
  return desk.render({ key, workspaceId, load: () => Promise.resolve(request) })
}

function tryOut({ subject, html, text }: AskedSource, data: MergeData, isTried: boolean): void {
  if (hasTags(subject)) {
    // Rendered as text, since subject rendering would remove the line breaks this looks for.
    const line = tryRendering({ ...parseTemplate(subject, 'subject'), place: 'text' }, data)
    if (hasHeaderBreak(line))
      throw fault('template_data', 'template_data brings a line break or control character into the subject')
  }
  if (isTried) return
  const size = JSON.stringify(data).length
  if (html !== undefined && mayPassBounds(html, size)) tryRendering(parseTemplate(html, 'html'), data)
  if (text !== undefined && mayPassBounds(text, size)) tryRendering(parseTemplate(text, 'text'), data)
}

/** Longest output of one UTF-16 unit of a value: three when upper-cased, each percent-encoded. */
const MAX_GROWTH = 20

/** Without `#each`, each tag is rendered at most once. @param size of the data as JSON */
function mayPassBounds(source: string, size: number): boolean {
  if (/\{\{\s*#\s*each\b/.test(source)) return true
  let tags = 0
  for (let at = source.indexOf('{{'); at >= 0; at = source.indexOf('{{', at + 2)) tags += 1
  return source.length + tags * size * MAX_GROWTH > RENDER_BOUNDS.units
}

function tryRendering(template: ReturnType<typeof parseTemplate>, data: MergeData): string {
  try {
    return renderTemplate(template, { system: {}, data })
  } catch (error) {
    throw asFault(error, 'template_data', 'with this template_data, ')
  }
}

function asFault(error: unknown, path: string, before: string): unknown {
  return error instanceof MergeError ? fault(path, `${before}${error.message}`) : error
}

function fault(path: string, message: string): AppError {
  return new AppError('validation_error', message, { path })
}
