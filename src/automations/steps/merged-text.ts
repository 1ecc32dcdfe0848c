/**
 * Merge tags in step texts: webhook URLs, headers and bodies, tag names, attribute values.
 *
 * Filled from the run's trigger data first, then from the contact. Values are untrusted: in a URL each is percent-encoded and may only
 * appear after the host; in a header it stays on one line. Pure.
 * Throws AppError validation_error when a text is saved, StepError when it is merged.
 */
import { toUSVString } from 'node:util'
import { refusal } from '../../audience/checks.js'
import type { Contact } from '../../audience/contacts/contact.js'
import { MergeError, type MergeNode, type MergeTemplate } from '../../content/merge/merge-tree.js'
import type { MergeValues } from '../../content/merge/merge-values.js'
import { validText } from '../../content/merge/merge-text.js'
import { hasTags, parseTemplate } from '../../content/merge/parse-template.js'
import { renderTemplate } from '../../content/merge/render-template.js'
import type { Run } from '../runs/run.js'
import { checked, text, type Field } from './config-fields.js'
import { StepError } from './step-type.js'

const MAX_URL = 4_096
const MAX_HEADER = 4_000

/** Scheme and host without merge tags, followed by a path, query or fragment. */
const FIXED_HOST = /^https?:\/\/[^\s/\\?#{}@]+(?=[/?#])/i

export function mergeable(most: number): Field<string> {
  return checked(text(most), (value, path) => {
    validText(value, 'text', path)
  })
}

export function valuesFor({ triggerData }: Pick<Run, 'triggerData'>, contact: Contact): MergeValues {
  return { system: {}, data: triggerData, contact }
}

/** @throws StepError */
export function merge(source: string, values: MergeValues): string {
  return hasTags(source) ? render(parse(source), values) : source
}

/** One line of text without control characters. @throws StepError */
export function mergeLine(source: string, values: MergeValues): string {
  const text = merge(source, values)
  // eslint-disable-next-line no-control-regex -- matches control characters on purpose
  return text.replace(/[\x00-\x1f\x7f]+/g, ' ').trim()
}

/** A header field value (RFC 9110 §5.5); non-ASCII characters become percent-encoded UTF-8. @throws StepError */
export function mergeHeader(source: string, values: MergeValues): string {
  if (!hasTags(source)) return source
  // eslint-disable-next-line no-control-regex -- matches everything but ASCII
  const value = toUSVString(mergeLine(source, values)).replace(/[^\x00-\x7f]+/g, encodeURIComponent)
  if (value.length > MAX_HEADER)
    throw new StepError(
      `a header has ${value.length} characters after merging; the limit is ${MAX_HEADER}`,
      {},
    )
  return value
}

/** @throws StepError */
export function mergeUrl(source: string, values: MergeValues): string {
  if (!hasTags(source)) return source
  const url = render(percentEncoded(parse(source)), values)
  if (url.length > MAX_URL)
    throw new StepError(`the url has ${url.length} characters after merging; the limit is ${MAX_URL}`, {})
  const fault = findUrlFault(url)
  if (fault !== undefined) throw new StepError(`the url ${fault} after merging`, {})
  return url
}

/** @throws AppError validation_error */
export function checkUrl(url: string, path: string): void {
  if (url === '') return
  if (!hasTags(url)) {
    if (!isWebUrl(url)) throw refusal(path, 'url must be an http or https URL without credentials')
    return
  }
  if (!FIXED_HOST.test(url))
    throw refusal(
      path,
      'merge tags in url are allowed only after the host, e.g. https://example.com/{{email}}',
    )
  const { template } = validText(url, 'text', path)
  const sample = render(percentEncoded(template), { system: {}, contact: SAMPLE })
  const fault = findUrlFault(sample)
  if (fault !== undefined) throw refusal(path, `url ${fault}`)
}

const SAMPLE = { email: 'x', firstName: 'x', lastName: 'x', attributes: {} }

export function isWebUrl(url: string): boolean {
  const read = URL.canParse(url) ? new URL(url) : undefined
  const isWeb = read?.protocol === 'https:' || read?.protocol === 'http:'
  return read !== undefined && isWeb && read.username === '' && read.password === ''
}

/** A merged `..` segment would escape the path as written. */
function findUrlFault(url: string): string | undefined {
  if (!isWebUrl(url)) return 'is not an http or https URL without credentials'
  const path = /^https?:\/\/[^/?#]+([^?#]*)/i.exec(url)?.[1] ?? ''
  const keepsSegments =
    new URL(url).pathname.split('/').length === (path === '' ? '/' : path).split('/').length
  const hasDots = path.split('/').some(segment => segment === '.' || segment === '..')
  return keepsSegments && !hasDots ? undefined : "has a path segment '.' or '..'"
}

function percentEncoded({ nodes, ...template }: MergeTemplate): MergeTemplate {
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
    // HTML only.
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
    throw error instanceof MergeError ? new StepError(`merging failed: ${error.message}`, {}) : error
  }
}
