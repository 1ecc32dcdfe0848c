/**
 * Parses a CSV row into contact fields or a rejection.
 *
 * Called by the reader thread. Pure. Empty cells are ignored. Never throws; invalid rows are rejections.
 */
import type { CsvRow } from '../../../core/csv.js'
import { describeError } from '../../../core/errors.js'
import { readOptionalName } from '../../../core/names.js'
import { fold } from '../../../core/fold.js'
import { checkAttributes, checkText } from '../../checks.js'
import { convertDeclared, type DeclaredTypes } from '../../attributes/declared-values.js'
import type { Attributes } from '../../contacts/contact.js'
import type { StoredForm } from '../../contacts/compared-attributes.js'
import type { SuppressionReason } from '../../../deliverability/suppressions/suppression-store.js'
import type { Column, EveryRow, Rejection } from '../import.js'
import { piecesOf } from './cell-lists.js'
import { attributeOf } from './columns.js'
import { converterOf, type CellConverter } from './column-types.js'
import { readImportAddress } from './import-address.js'
import { PLAIN_ROWS, readStanding } from './presets.js'
import { truthIn } from './truth-words.js'

/** Contact fields set by a row; null leaves the field unchanged. */
export interface ParsedRow {
  readonly line: number
  /** Normalized (`normalizedAddress`). */
  readonly email: string
  readonly firstName: string | null
  readonly lastName: string | null
  readonly attributes: Attributes | null
  readonly subscribed: boolean | null
  readonly tags: readonly string[]
  /** Names of static lists; missing ones are created. */
  readonly lists: readonly string[]
  /** Reason to suppress the address. */
  readonly suppress: SuppressionReason | null
}

/** A row as the importer receives it. */
export interface ImportedContact extends ParsedRow {
  /** Derived columns, used if the row creates a contact. */
  readonly form: StoredForm
}

/** Repeated addresses are rejections. */
export type ReadRow = ImportedContact | Rejection

/** A column, with what its cells have in common. */
export interface ColumnToRead extends Column {
  /** Its attribute, if it is one. */
  readonly attribute: string | undefined
  /** Undefined for text. */
  readonly convert: CellConverter | undefined
}

const MAX_NAME = 100
export const MAX_TAG_NAME = 100
const MAX_TAGS = 50
/** Characters kept of a rejected row, all cells together. */
const MAX_KEPT = 4_096

/** Besides words for yes and no. */
const SUBSCRIBED = new Set(['1', 'on', 'subscribed', 'active'])
const UNSUBSCRIBED = new Set(['0', 'off', 'unsubscribed', 'inactive'])

export function columnsToRead(columns: readonly Column[]): readonly ColumnToRead[] {
  return columns.map(column => ({
    ...column,
    attribute: attributeOf(column.field ?? ''),
    convert:
      column.found === undefined || column.found.ambiguous || column.found.type === 'text'
        ? undefined
        : converterOf(column.found),
  }))
}

export function readRow(
  columns: readonly ColumnToRead[],
  { line, cells }: CsvRow,
  everyRow: EveryRow = PLAIN_ROWS,
  declared: DeclaredTypes = new Map(),
): ParsedRow | Rejection {
  try {
    const beyond = cells.length - columns.length
    if (beyond > 0 && cells.slice(columns.length).some(cell => cell !== ''))
      throw new Error(`the row has ${cells.length} cells, but the header has ${columns.length}`)
    return readCells(columns, line, cells, everyRow, declared)
  } catch (error) {
    return rejected({ line, cells }, describeError(error))
  }
}

export function rejected({ line, cells }: CsvRow, reason: string): Rejection {
  let left = MAX_KEPT
  const kept = cells.map(cell => {
    const text = cell.slice(0, left)
    left -= text.length
    return text
  })
  return { line, reason, cells: kept }
}

function readCells(
  columns: readonly ColumnToRead[],
  line: number,
  cells: readonly string[],
  { suppress, isUnsubscribed, isTyped }: EveryRow,
  declared: DeclaredTypes,
): ParsedRow {
  const fields: Record<string, string> = {}
  const ofColumns: [string, unknown][] = []
  for (let at = 0; at < columns.length; at += 1) {
    const column = columns[at] as ColumnToRead
    const { field, attribute } = column
    const cell = cells[at]
    if (field === null || cell === undefined || cell.trim() === '') continue
    if (attribute === undefined) fields[field] = cell
    else ofColumns.push([attribute, valueOf(column, cell, isTyped)])
  }
  const { email, subscribed, tags, lists, attributes } = fields
  if (email === undefined) throw new Error('the row has no address')
  const address = readImportAddress(email)
  // The attributes column first: dedicated columns override it.
  const named = attributes === undefined ? ofColumns : [...readAttributes(attributes, declared), ...ofColumns]
  return {
    line,
    email: address.email,
    ...readNames(fields, address.name),
    attributes: named.length === 0 ? null : checked(Object.fromEntries(named)),
    subscribed: isUnsubscribed ? false : subscribed === undefined ? null : readTruth(subscribed),
    suppress,
    tags: tags === undefined ? NO_NAMES : readTags(tags),
    lists: lists === undefined ? NO_NAMES : readTags(lists, 'lists'),
    ...standingOf(fields, suppress),
  }
}

/** @throws Error if the cell is not of the type that was chosen, or found, for the column */
function valueOf({ convert, found, name }: ColumnToRead, cell: string, isTyped: boolean): unknown {
  const isKept = isTyped && (found === undefined || (found.misfits !== undefined && /^[[{]/.test(cell)))
  // Our own export writes arrays and objects as JSON; they have no declared type to be converted to.
  if (isKept) return typed(cell)
  if (!convert) return cell
  const value = convert(cell)
  if (value !== undefined) return value
  // A declared type refuses nothing, however a value is written.
  if (found?.misfits) return cell
  throw new Error(`${name} is ${JSON.stringify(cell.slice(0, 40))}, must be a ${found?.type}`)
}

const NO_NAMES: readonly string[] = []

/** Subscription and suppression from preset columns. */
function standingOf(
  { status, origin, blocked, unsubscribe_reason: reason }: Readonly<Record<string, string>>,
  suppress: SuppressionReason | null,
): Partial<Pick<ParsedRow, 'subscribed' | 'suppress'>> {
  if (suppress === 'unsubscribe' && reason !== undefined && /abuse|spam/i.test(reason))
    return { subscribed: false, suppress: 'complaint' }
  if (suppress !== null) return suppress === 'hard_bounce' ? {} : { subscribed: false }
  if (blocked !== undefined && readTruth(blocked, 'blocklisted'))
    return { subscribed: false, suppress: 'manual' }
  return status === undefined ? {} : readStanding(status, origin)
}

/** The value of exactly the text that an export writes for a number, boolean, array or object. */
function typed(cell: string): unknown {
  if (!MAY_BE_JSON.test(cell)) return cell
  try {
    const value: unknown = JSON.parse(cell)
    return typeof value !== 'string' && value !== null && JSON.stringify(value) === cell ? value : cell
  } catch {
    return cell
  }
}

const MAY_BE_JSON = /^(?:-?\d|[{[]|true$|false$)/

function checked(attributes: Attributes): Attributes {
  checkAttributes(attributes)
  return attributes
}

function readName(field: string, fields: Readonly<Record<string, string | undefined>>): string | null {
  const name = checkText(field, fields[field])
  if (typeof name !== 'string') return null
  if (name.length > MAX_NAME) throw new Error(`${field} is longer than ${MAX_NAME} characters`)
  return name
}

/** @param beside name written with the address; used if the row has no other */
function readNames(
  fields: Readonly<Record<string, string>>,
  beside: string | undefined,
): Pick<ParsedRow, 'firstName' | 'lastName'> {
  const [first, last] = [readName('first_name', fields), readName('last_name', fields)]
  const whole = fields['name'] ?? (first === null && last === null ? beside : undefined)
  if (whole === undefined || (first !== null && last !== null)) return { firstName: first, lastName: last }
  const [, family, given] = FAMILY_COMMA.exec(whole) ?? []
  const [word = ''] = whole.trim().split(/\s+/, 1)
  const others = whole.trim().slice(word.length)
  const isFamilyFirst = FAMILY_FIRST.test(whole) && others !== ''
  const part = (name: string) => readName('name', { name })
  if (family !== undefined && given !== undefined && !TITLE.test(given))
    return { firstName: first ?? part(given), lastName: last ?? part(family) }
  return {
    firstName: first ?? part(isFamilyFirst ? others : word),
    lastName: last ?? part(isFamilyFirst ? word : others),
  }
}

/** `Lee, Ann`, as directories write names. */
const FAMILY_COMMA = /^([^,]+),([^,]+)$/
/** `Ann Lee, PhD`. */
const TITLE = /^\s*(?:jr|sr|i{2,3}|iv|m\.?\s?[abdsc]|mba|ph\.?\s?d|esq|cpa|rn)\.?\s*$/i

/** Chinese, Japanese and Korean names, written in these scripts, begin with the family name. */
const FAMILY_FIRST = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}]/u

function readTruth(cell: string, field = 'subscribed'): boolean {
  const word = cell.trim().toLowerCase()
  if (SUBSCRIBED.has(word)) return true
  if (UNSUBSCRIBED.has(word)) return false
  const truth = truthIn(word)
  if (truth !== undefined) return truth
  throw new Error(`${field} is ${JSON.stringify(cell.slice(0, 40))}, must be yes or no`)
}

function readAttributes(cell: string, declared: DeclaredTypes): [string, unknown][] {
  let value: unknown
  try {
    value = JSON.parse(cell)
  } catch {
    // Reported below.
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('attributes must be a JSON object')
  return Object.entries(convertDeclared(declared, value as Attributes))
}

/** Names separated by commas or semicolons; a name containing either is in double quotes. @throws Error */
export function readTags(text: string, field: 'tags' | 'lists' = 'tags'): string[] {
  const names = new Map<string, string>()
  for (const piece of piecesOf(text)) {
    const name = readOptionalName(piece, field)
    if (name === '') continue
    if (name.length > MAX_TAG_NAME)
      throw new Error(`a ${field === 'tags' ? 'tag' : 'list'} is longer than ${MAX_TAG_NAME} characters`)
    names.set(fold(name), name)
  }
  if (names.size > MAX_TAGS) throw new Error(`more than ${MAX_TAGS} ${field}`)
  return [...names.values()]
}

/** Formats names for one cell, as `readTags` reads them. */
export function namesText(names: readonly string[]): string {
  return names.map(name => (/[,;"]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name)).join('; ')
}
