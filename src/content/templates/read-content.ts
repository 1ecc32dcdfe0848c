/**
 * Validates the content of a template. The html is given, or rendered from the structure.
 *
 * Long HTML is parsed in another thread.
 * Throws AppError validation_error with the field's path; for merge tags with line and column.
 */
import { AppError } from '../../core/errors.js'
import { readName } from '../../core/names.js'
import { formatSize } from '../../core/units.js'
import { locateFault } from '../blocks/locate-fault.js'
import { readStructure, type Structure } from '../blocks/read-structure.js'
import { renderStructure } from '../blocks/render-structure.js'
import { mergeFault, MergeText } from '../merge/merge-text.js'
import { MergeError } from '../merge/merge-tree.js'
import { isLong, parseInThread } from '../rendering/in-thread.js'
import type { RenderQueue } from '../rendering/render-queue.js'
import type { TemplateContent } from './template-store.js'

/** Limit of html, octets of UTF-8. */
const MAX_OCTETS = 256 * 1_024

/** As in a request; undefined fields stay unchanged. */
export interface ContentInput {
  readonly name?: string | undefined
  readonly description?: string | null | undefined
  readonly html?: string | undefined
  readonly json_structure?: Readonly<Record<string, unknown>> | null | undefined
}

/** @returns undefined without blocks */
export function readGivenStructure({ json_structure: structure }: ContentInput): Structure | undefined {
  return structure === undefined || structure === null ? undefined : readStructure(structure)
}

/**
 * @param read result of `readGivenStructure` for `given`
 * @param before the current content; undefined for a new template, which must have a name
 */
export function readContent(
  given: ContentInput,
  read: Structure | undefined,
  before?: TemplateContent,
): TemplateContent {
  const { name = before?.name ?? '', description = before?.description ?? null } = given
  if (given.name !== undefined) readName(name)
  if (description !== null) refuseControls(description, 'description')
  return { name, description, ...readHtml(given, read, before) }
}

function readHtml(
  { html, json_structure: structure }: ContentInput,
  read: Structure | undefined,
  before: TemplateContent | undefined,
): Pick<TemplateContent, 'html' | 'structure'> {
  const made = html ?? (read && renderStructure(read)) ?? before?.html
  if (made === undefined) throw fault('html', 'html is required without json_structure')
  const path = html === undefined && read ? 'json_structure' : 'html'
  if (html !== undefined && html.trim() === '') throw fault('html', 'html is empty')
  if (Buffer.byteLength(made) > MAX_OCTETS)
    throw fault(path, `html must have at most ${formatSize(MAX_OCTETS)} in UTF-8`)
  if (made.includes('\0')) throw fault(path, `${path} contains a NUL character`)
  const kept = structure === undefined ? (before?.structure ?? null) : structure && JSON.stringify(structure)
  return { html: made, structure: kept }
}

/** @throws AppError validation_error, with line and column for submitted html, with the block for blocks; and as `RenderQueue` does */
export async function requireParsableHtml(
  renderQueue: RenderQueue,
  workspaceId: string,
  html: string,
  given: ContentInput,
  structure: Structure | undefined,
): Promise<void> {
  const error = await findParseError({ renderQueue, workspaceId }, new MergeText(html, 'html'))
  if (!error) return
  if (given.html !== undefined || !structure) throw mergeFault(error, 'html')
  const { path, message } = locateFault(structure, error)
  throw fault(path, message)
}

async function findParseError(
  threads: Parameters<typeof parseInThread>[0],
  html: MergeText,
): Promise<MergeError | undefined> {
  if (isLong(html)) {
    const refused = await parseInThread(threads, [html])
    return refused && new MergeError(refused.message)
  }
  try {
    void html.template
    return undefined
  } catch (error) {
    if (error instanceof MergeError) return error
    throw error
  }
}

function refuseControls(text: string, path: string): void {
  // eslint-disable-next-line no-control-regex -- line breaks may stand in a description, no other control character
  if (/[\x00-\x08\x0b-\x1f\x7f]/.test(text)) throw fault(path, `${path} contains control characters`)
}

function fault(path: string, message: string): AppError {
  return new AppError('validation_error', message, { path })
}
