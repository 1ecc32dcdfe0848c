/**
 * Prepares what a caller gives as content (a request, a template, a campaign, a step of an automation, the header of relayed mail) for
 * acceptance: its merge tags are valid, the subject is not empty, and rendering with its data stays within the limits.
 *
 *   readTexts        the texts a request brings, each parsed once, with line and column of a fault
 *   prepareContent   with template, data and the workspace's settings: what is stored and delivered
 *
 * Long texts are parsed and rendered in a thread (`rendering/in-thread.ts`). Contact data is only known at delivery: mail that exceeds the limits
 * because of it ends as `failed`, with the reason.
 * Fails: AppError validation_error with the field's path; unavailable if the threads are busy.
 */
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { hasHeaderBreak } from '../../mail/mime/write-header-field.js'
import { mergeFault, MergeText, type MergeTextCache } from '../merge/merge-text.js'
import { MergeError } from '../merge/merge-tree.js'
import { RENDER_BOUNDS, renderTemplate } from '../merge/render-template.js'
import { EMPTY_SUBJECT, rendersEmpty } from '../rendering/mail-plan.js'
import { brandOf, type BrandSettings, type MergeData, type Merging } from '../rendering/merging.js'
import type { AskedTemplate } from '../templates/asked-template.js'
import type { UrlParameters } from '../tracking/followed-url.js'
import { INLINE_UNITS, isLong, parseInThread, type RenderThreads } from '../rendering/in-thread.js'

/** Of the workspace. */
export interface ContentSettings extends BrandSettings {
  readonly isMarketing: boolean
  readonly trackOpens: boolean
  readonly trackClicks: boolean
  readonly utmSource: string | null
  readonly utmMedium: string | null
  readonly utmCampaign: string | null
}

/** The html and text of a request, their syntax correct. */
export interface MailTexts {
  readonly html?: MergeText
  readonly text?: MergeText
  /** Set if a thread has rendered them with the request's data: the fault, or null. */
  readonly trial?: string | null
}

export interface ContentToPrepare extends MailTexts {
  /** Its syntax correct. */
  readonly subject: MergeText
  /** Its html is used in absence of another. */
  readonly template?: AskedTemplate | undefined
  readonly data?: MergeData | undefined
  /** By default, html has one. */
  readonly hasFooter?: boolean
  /** Default: the workspace's settings. */
  readonly trackOpens?: boolean | undefined
  readonly trackClicks?: boolean | undefined
  /** Field of the subject, for errors. */
  readonly subjectPath?: string
}

/** Stored as it is. */
export interface PreparedContent {
  readonly subject: string
  readonly html?: string
  readonly text?: string
  readonly templateId?: string
  readonly trackOpens: boolean
  readonly trackClicks: boolean
  /** Absent for content that is sent unchanged. */
  readonly merging?: Merging
}

export interface RequestTexts {
  readonly html?: string | undefined
  readonly text?: string | undefined
  /** Its html comes from there in absence of another. */
  readonly template_id?: string | undefined
}

/** @param cache of texts that other messages of the request share */
export async function readTexts(
  { html, text, template_id: templateId }: RequestTexts,
  data: MergeData | undefined,
  { renderQueue, workspaceId }: RenderThreads,
  cache?: MergeTextCache,
): Promise<MailTexts> {
  const textOf = (source: string | undefined, place: 'html' | 'text') =>
    source === undefined ? undefined : (cache?.get(source, place) ?? new MergeText(source, place))
  const texts = given({ html: textOf(html, 'html'), text: textOf(text, 'text') })
  const all = allOf(texts)
  const isComplete = html !== undefined || templateId === undefined
  const tried = data && isComplete ? triedInThread(all, data) : []
  const parsed = all.filter(one => tried.includes(one) || (isLong(one) && !one.isValid))
  let trial: MailTexts['trial']
  if (renderQueue && parsed.length > 0) {
    const isTried = tried.length > 0
    const refused = await parseInThread({ renderQueue, workspaceId }, parsed, isTried ? data : undefined)
    if (refused && (refused.place !== undefined || !isTried))
      throw mergeFault(refused, refused.place ?? parsed[0]?.place ?? 'html')
    trial = isTried ? (refused?.message ?? null) : undefined
  }
  for (const one of all) one.requireValid(one.place)
  return { ...texts, ...given({ trial }) }
}

/** @throws AppError validation_error, unavailable */
export async function prepareContent(
  settings: ContentSettings,
  content: ContentToPrepare,
  threads?: RenderThreads,
): Promise<PreparedContent> {
  const { subject, template, text, data, subjectPath = 'subject' } = content
  const html = content.html ?? template?.html
  const hasHtml = html !== undefined
  const {
    hasFooter = hasHtml,
    trackOpens = settings.trackOpens,
    trackClicks = settings.trackClicks,
  } = content
  const bodies = given({ html, text })
  const isFilledIn = [subject, ...allOf(bodies)].some(({ hasTags }) => hasTags)
  const filledBy = isFilledIn ? data : undefined
  const isTried = filledBy !== undefined && (await isTriedInThread(bodies, filledBy, content.trial, threads))
  requireFilledSubject(settings, subject, data, subjectPath)
  if (filledBy) {
    requireOneLine(subject, filledBy)
    if (!isTried)
      for (const one of allOf(bodies)) if (mayPassBounds(one, sizeOf(filledBy))) tryOut(one, filledBy)
  }
  const tracked = { trackOpens: hasHtml && trackOpens, trackClicks: hasHtml && trackClicks }
  const merging = mergingOf(settings, { isFilledIn, hasFooter, ...tracked })
  // Fields of all contents come first: an object literal that starts with a spread gets its own hidden class and stays slow.
  return {
    trackOpens,
    trackClicks,
    subject: subject.source,
    ...(merging ? { merging: filledBy ? { ...merging, data: filledBy } : merging } : {}),
    ...(template ? { templateId: template.id } : {}),
    ...(html ? { html: html.source } : {}),
    ...(text ? { text: text.source } : {}),
  }
}

export interface MergeNeeds {
  readonly isFilledIn: boolean
  readonly hasFooter: boolean
  readonly trackOpens: boolean
  readonly trackClicks: boolean
}

/** @returns undefined for content that is sent unchanged */
export function mergingOf(
  settings: ContentSettings,
  { isFilledIn, hasFooter, trackOpens, trackClicks }: MergeNeeds,
): Merging | undefined {
  // Marketing mail carries the unsubscribe header fields, which differ by recipient.
  const isTracked = trackOpens || trackClicks
  if (!isFilledIn && !hasFooter && !isTracked && !settings.isMarketing) return undefined
  const clicks = trackClicks ? { clicks: parametersOf(settings) } : {}
  const tracking = isTracked ? { tracking: { opens: trackOpens, ...clicks } } : {}
  return { brand: brandOf(settings), hasFooter, ...tracking }
}

function parametersOf({ utmSource, utmMedium, utmCampaign }: ContentSettings): UrlParameters {
  const named = { utm_source: utmSource, utm_medium: utmMedium, utm_campaign: utmCampaign }
  return Object.fromEntries(
    Object.entries(named).flatMap(([name, value]) => (value === null ? [] : [[name, value]])),
  )
}

/** Tags filled from the contact, which is looked up at delivery. */
const OF_CONTACTS = /^(email|firstName|first_name|lastName|last_name|company|attributes\..+)$/

/** Rejects a subject that renders empty for every recipient. One with contact tags is checked at delivery instead. */
function requireFilledSubject(
  settings: ContentSettings,
  subject: MergeText,
  data: MergeData | undefined,
  path: string,
): void {
  if (!subject.hasTags) return
  const { names } = subject.template
  if (names.some(name => OF_CONTACTS.test(name))) return
  if (rendersEmpty(subject, brandOf(settings), given({ data })))
    throw fault(path, `${EMPTY_SUBJECT}: template_data has no value for ${names.join(', ')}`)
}

/** Whether a thread rendered them with the data. @throws AppError if that exceeded the limits */
async function isTriedInThread(
  bodies: Pick<MailTexts, 'html' | 'text'>,
  data: MergeData,
  known: MailTexts['trial'],
  threads: RenderThreads | undefined,
): Promise<boolean> {
  let trial = known
  if (trial === undefined) {
    const tried = threads?.renderQueue ? triedInThread(allOf(bodies), data) : []
    if (!threads?.renderQueue || tried.length === 0) return false
    const { renderQueue, workspaceId } = threads
    trial = (await parseInThread({ renderQueue, workspaceId }, tried, data))?.message ?? null
  }
  if (trial !== null) throw exceeding(trial)
  return true
}

/** The texts to be rendered in a thread: none if they are short, or cannot exceed the limits. */
function triedInThread(texts: readonly MergeText[], data: MergeData): readonly MergeText[] {
  if (!texts.some(({ hasTags }) => hasTags)) return []
  const size = sizeOf(data)
  const units = texts.reduce((sum, { source }) => sum + source.length, size)
  return units <= INLINE_UNITS ? [] : texts.filter(text => mayPassBounds(text, size))
}

/** Rendered as text, since rendering as a subject would remove the line breaks this looks for. */
function requireOneLine(subject: MergeText, data: MergeData): void {
  if (!subject.hasTags) return
  const line = tryOut({ template: { ...subject.template, place: 'text' } }, data)
  if (hasHeaderBreak(line))
    throw fault('template_data', 'template_data brings a line break or control character into the subject')
}

function tryOut({ template }: Pick<MergeText, 'template'>, data: MergeData): string {
  try {
    return renderTemplate(template, { system: {}, data })
  } catch (error) {
    throw error instanceof MergeError ? exceeding(error.message) : error
  }
}

/** Longest output of one UTF-16 unit of a value: three when upper-cased, each percent-encoded. */
const MAX_GROWTH = 20

/** Without `#each`, each tag is rendered at most once. @param size of the data as JSON */
function mayPassBounds({ source }: MergeText, size: number): boolean {
  if (/\{\{\s*#\s*each\b/.test(source)) return true
  let tags = 0
  for (let at = source.indexOf('{{'); at >= 0; at = source.indexOf('{{', at + 2)) tags += 1
  return source.length + tags * size * MAX_GROWTH > RENDER_BOUNDS.units
}

const sizes = new WeakMap<MergeData, number>()

/** UTF-16 units as JSON. */
function sizeOf(data: MergeData): number {
  const size = sizes.get(data) ?? JSON.stringify(data).length
  sizes.set(data, size)
  return size
}

function allOf({ html, text }: Pick<MailTexts, 'html' | 'text'>): readonly MergeText[] {
  return [html, text].filter(one => one !== undefined)
}

function exceeding(message: string): AppError {
  return fault('template_data', `with this template_data, ${message}`)
}

function fault(path: string, message: string): AppError {
  return new AppError('validation_error', message, { path })
}
