/**
 * The X-Postroad control fields of relayed messages.
 *
 * `editRelayedHeader` removes them afterwards. Whether a template exists, or tracking is allowed, is checked by the caller. Throws AppError
 * `validation_error`, with the field name as path, for invalid values, repeated fields and unknown X-Postroad fields, so that a misspelled
 * field is not silently ignored.
 */
import { AppError } from '../../core/errors.js'
import type { HeaderField } from '../mime/header-fields.js'
import { POSTROAD_PREFIX } from '../server-fields.js'
import { fieldText, type RelayedHeader } from './relayed-header.js'

/** An absent field means the workspace's setting. */
export interface RelayControls {
  /** X-Postroad-Track: `opens,clicks`, `opens`, `clicks` or `none`. */
  readonly track?: { readonly opens: boolean; readonly clicks: boolean }
  /** X-Postroad-Tag: comma-separated, repeatable; deduplicated, in order. */
  readonly tags: readonly string[]
  /** X-Postroad-Template: UUID, lower case. */
  readonly templateId?: string
  /** X-Postroad-Data: a JSON object, may be folded. */
  readonly mergeData?: Readonly<Record<string, unknown>>
  /** X-Postroad-Footer: `yes` or `no`. */
  readonly footer?: boolean
}

const MAX_TAGS = 20
/** Characters. */
const MAX_TAG_LENGTH = 100
/** Characters of JSON. */
const MAX_DATA_LENGTH = 32_768
/** Nesting of objects and lists; merge tags cannot reach deeper. */
const MAX_DATA_DEPTH = 20
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const NO_CONTROLS: RelayControls = { tags: [] }

/** @throws AppError validation_error */
export function readControls(header: RelayedHeader): RelayControls {
  const fields = header.fields.filter(({ name }) => name.startsWith(POSTROAD_PREFIX))
  if (fields.length === 0) return NO_CONTROLS
  const controls: { -readonly [Key in keyof RelayControls]: RelayControls[Key] } = { tags: [] }
  const seen = new Set<string>()
  for (const field of fields) {
    const path = nameOf(field)
    const text = fieldText(header, field)
    if (seen.has(field.name) && field.name !== 'x-postroad-tag') reject(path, 'is given more than once')
    seen.add(field.name)
    switch (field.name) {
      case 'x-postroad-track':
        controls.track = readTrack(path, text)
        break
      case 'x-postroad-tag':
        controls.tags = readTags(path, text, controls.tags)
        break
      case 'x-postroad-template':
        if (!UUID.test(text)) reject(path, 'is not the id of a template')
        controls.templateId = text.toLowerCase()
        break
      case 'x-postroad-data':
        controls.mergeData = readData(path, text)
        break
      case 'x-postroad-footer':
        controls.footer = readYesOrNo(path, text)
        break
      case 'x-postroad-id':
        // From a message sent by a Postroad server before; removed like the others.
        break
      default:
        reject(path, 'is not a known X-Postroad field')
    }
  }
  return controls
}

function readTrack(path: string, text: string): { opens: boolean; clicks: boolean } {
  const wishes = text
    .toLowerCase()
    .split(',', 4)
    .map(wish => wish.trim())
  if (wishes.length === 1 && wishes[0] === 'none') return { opens: false, clicks: false }
  if (wishes.length > 2 || !wishes.every(wish => wish === 'opens' || wish === 'clicks'))
    reject(path, 'must be `opens`, `clicks`, `opens,clicks` or `none`')
  return { opens: wishes.includes('opens'), clicks: wishes.includes('clicks') }
}

function readTags(path: string, text: string, earlier: readonly string[]): string[] {
  const tags = new Set(earlier)
  for (const tag of text.split(',').map(each => each.trim())) {
    if (tag === '') continue
    if (tag.length > MAX_TAG_LENGTH) reject(path, `has a tag longer than ${MAX_TAG_LENGTH} characters`)
    // eslint-disable-next-line no-control-regex -- control characters are what is refused
    if (/[\x00-\x1f\x7f]/.test(tag)) reject(path, 'has a tag with control characters')
    tags.add(tag)
    if (tags.size > MAX_TAGS) reject(path, `has more than ${MAX_TAGS} tags`)
  }
  if (tags.size === 0) reject(path, 'is empty')
  return [...tags]
}

function readData(path: string, text: string): Record<string, unknown> {
  if (text.length > MAX_DATA_LENGTH) reject(path, `is longer than ${MAX_DATA_LENGTH} characters`)
  if (isDeeperThan(text, MAX_DATA_DEPTH)) reject(path, `is nested more than ${MAX_DATA_DEPTH} deep`)
  let data: unknown
  try {
    data = JSON.parse(text)
  } catch {
    reject(path, 'is not JSON')
  }
  if (typeof data !== 'object' || data === null || Array.isArray(data)) reject(path, 'is not a JSON object')
  return data as Record<string, unknown>
}

/** Counts brackets outside strings, so that deeply nested JSON is never parsed. */
function isDeeperThan(json: string, limit: number): boolean {
  let depth = 0
  let isInString = false
  for (let at = 0; at < json.length; at++) {
    const character = json[at]
    if (isInString && character === '\\') at++
    else if (character === '"') isInString = !isInString
    else if (isInString) continue
    else if ((character === '{' || character === '[') && ++depth > limit) return true
    else if (character === '}' || character === ']') depth--
  }
  return false
}

function readYesOrNo(path: string, text: string): boolean {
  const answer = text.toLowerCase()
  if (answer !== 'yes' && answer !== 'no') reject(path, 'must be `yes` or `no`')
  return answer === 'yes'
}

function nameOf({ raw }: HeaderField): string {
  return raw.slice(0, raw.indexOf(':')).trimEnd()
}

function reject(path: string, why: string): never {
  throw new AppError('validation_error', `${path} ${why}`, { path })
}
