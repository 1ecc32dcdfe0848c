/**
 * Merge tags in the texts of steps: webhook URLs, headers and bodies, names of tags, values of attributes.
 *
 * Filled from what started the run, then from the contact. What a contact holds is a stranger's word: in a URL each value is
 * percent-encoded and stands behind the host, and in a header it stays one line. Pure.
 * Fails: AppError validation_error where a text is written; StepFault where one is merged.
 */
import { toUSVString } from 'node:util'
import { refusal } from '../../audience/checks.js'
import type { Contact } from '../../audience/contacts/contact.js'
import { MergeError } from '../../content/merge/merge-error.js'
import type { MergeNode, MergeTemplate } from '../../content/merge/merge-tree.js'
import type { MergeValues } from '../../content/merge/merge-values.js'
import { parseTemplate } from '../../content/merge/parse-template.js'
import { renderTemplate } from '../../content/merge/render-template.js'
import { hasTags } from '../../content/rendering/mail-plan.js'
import { requireReadable } from '../../msa/merged-content.js'
import type { Run } from '../runs/run.js'
import { checked, text, type Field } from './config-fields.js'
import { StepFault } from './step-type.js'

const MOST_URL = 4_096
const MOST_HEADER = 4_000

/** Scheme and host as written, ended by a path, query or fragment: no tag stands in them. */
const FIXED_HOST = /^https?:\/\/[^\s/\\?#{}@]+(?=[/?#])/i

/** A text that may have merge tags. */
export function mergeable(most: number): Field<string> {
  return checked(text(most), (value, path) => requireReadable(value, 'text', path))
}

export function valuesFor({ triggerData }: Pick<Run, 'triggerData'>, contact: Contact): MergeValues {
  return { system: {}, data: triggerData, contact }
}

/** @throws StepFault */
export function merge(source: string, values: MergeValues): string {
  return hasTags(source) ? render(parse(source), values) : source
}

/** One line of text without control characters. @throws StepFault */
export function mergeLine(source: string, values: MergeValues): string {
  const text = merge(source, values)
  // eslint-disable-next-line no-control-regex -- what ends a line is what this is for
  return text.replace(/[\x00-\x1f\x7f]+/g, ' ').trim()
}

/** A value of an HTTP header (RFC 9110 §5.5): what is not ASCII is percent-encoded UTF-8. @throws StepFault */
export function mergeHeader(source: string, values: MergeValues): string {
  if (!hasTags(source)) return source
  // eslint-disable-next-line no-control-regex -- all beyond ASCII
  const value = toUSVString(mergeLine(source, values)).replace(/[^\x00-\x7f]+/g, encodeURIComponent)
  if (value.length > MOST_HEADER)
    throw new StepFault(`a header has ${value.length} characters after merging; at most ${MOST_HEADER}`, {})
  return value
}

/** @throws StepFault */
export function mergeUrl(source: string, values: MergeValues): string {
  if (!hasTags(source)) return source
  const url = render(asUrl(parse(source)), values)
  if (url.length > MOST_URL)
    throw new StepFault(`the url has ${url.length} characters after merging; at most ${MOST_URL}`, {})
  const fault = findUrlFault(url)
  if (fault !== undefined) throw new StepFault(`the url ${fault} after merging`, {})
  return url
}

/** @throws AppError validation_error */
export function checkUrl(url: string, path: string): void {
  if (url === '') return
  if (!hasTags(url)) {
    if (!isWebUrl(url)) throw refusal(path, 'url must be an http or https URL without a user')
    return
  }
  if (!FIXED_HOST.test(url))
    throw refusal(path, 'merge tags in url must stand behind the host, e.g. https://example.com/{{email}}')
  requireReadable(url, 'text', path)
  const sample = render(asUrl(parse(url)), { system: {}, contact: SAMPLE })
  const fault = findUrlFault(sample)
  if (fault !== undefined) throw refusal(path, `url ${fault}`)
}

const SAMPLE = { email: 'x', firstName: 'x', lastName: 'x', attributes: {} }

export function isWebUrl(url: string): boolean {
  const read = URL.canParse(url) ? new URL(url) : undefined
  const isWeb = read?.protocol === 'https:' || read?.protocol === 'http:'
  return read !== undefined && isWeb && read.username === '' && read.password === ''
}

/** Of a URL with tags: a path segment of two dots would lead out of the path that was written. */
function findUrlFault(url: string): string | undefined {
  if (!isWebUrl(url)) return 'is not an http or https URL without a user'
  const path = /^https?:\/\/[^/?#]+([^?#]*)/i.exec(url)?.[1] ?? ''
  const isKept = new URL(url).pathname.split('/').length === (path === '' ? '/' : path).split('/').length
  const hasDots = path.split('/').some(segment => segment === '.' || segment === '..')
  return isKept && !hasDots ? undefined : "has a path segment '.' or '..'"
}

/** Every value is percent-encoded as a whole. */
function asUrl({ nodes, ...template }: MergeTemplate): MergeTemplate {
  return { ...template, nodes: nodes.map(encoded) }
}

function encoded(node: MergeNode): MergeNode {
  if (typeof node === 'string') return node
  switch (node.kind) {
    case 'value':
      return { ...node, place: 'url value' }
    case 'choice':
      return { ...node, whenTrue: node.whenTrue.map(encoded), whenFalse: node.whenFalse.map(encoded) }
    case 'loop':
      return { ...node, body: node.body.map(encoded), whenEmpty: node.whenEmpty.map(encoded) }
    // These three stand in HTML alone.
    case 'url':
    case 'link':
    case 'pixel':
      return node
  }
}

function parse(source: string): MergeTemplate {
  return guarded(() => parseTemplate(source, 'text'))
}

function render(template: MergeTemplate, values: MergeValues): string {
  return guarded(() => renderTemplate(template, values))
}

function guarded<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw error instanceof MergeError ? new StepFault(`merging failed: ${error.message}`, {}) : error
  }
}
