/**
 * A row of an imported file as what it says of a contact, or why it cannot be one.
 *
 * Called by the thread that reads the file. Pure. An empty cell says nothing. Fails: never throws; what is wrong is a rejection.
 */
import type { CsvRow } from '../../../core/csv.js'
import { describeError } from '../../../core/errors.js'
import { fold } from '../../../core/fold.js'
import { checkAttributes, checkEmail, checkText } from '../../checks.js'
import type { Attributes } from '../../contacts/contact.js'
import type { StoredForm } from '../../contacts/traits.js'
import type { Column, Rejection } from '../import.js'
import { attributeOf } from './columns.js'

/** What a row says of a contact; what it says nothing of stays, and is null. */
export interface SaidRow {
  readonly line: number
  /** As `normalizedAddress` writes it. */
  readonly email: string
  readonly firstName: string | null
  readonly lastName: string | null
  readonly attributes: Attributes | null
  readonly subscribed: boolean | null
  readonly tags: readonly string[]
}

/** As the writer has it. */
export interface ImportedContact extends SaidRow {
  /** What is stored of it where it becomes a new contact. */
  readonly form: StoredForm
}

/** A column, and what is the same for each of its cells. */
export interface ColumnToRead extends Column {
  /** The attribute that it tells. */
  readonly attribute: string | undefined
}

const MOST_NAME = 100
export const MOST_TAG_NAME = 100
const MOST_TAGS = 50
/** Of a rejected row, in all its cells. */
const MOST_KEPT = 4_096

const YES = new Set(['true', 'yes', 'y', '1', 'on', 'subscribed', 'active', 'ja', 'oui', 'si'])
const NO = new Set(['false', 'no', 'n', '0', 'off', 'unsubscribed', 'inactive', 'nein', 'non'])

export function columnsToRead(columns: readonly Column[]): readonly ColumnToRead[] {
  return columns.map(column => ({ ...column, attribute: attributeOf(column.field ?? '') }))
}

export function readRow(columns: readonly ColumnToRead[], { line, cells }: CsvRow): SaidRow | Rejection {
  try {
    const beyond = cells.length - columns.length
    if (beyond > 0 && cells.slice(columns.length).some(cell => cell !== ''))
      throw new Error(`the row has ${cells.length} cells, the heading ${columns.length}`)
    return readCells(columns, line, cells)
  } catch (error) {
    return rejected({ line, cells }, describeError(error))
  }
}

export function rejected({ line, cells }: CsvRow, reason: string): Rejection {
  let left = MOST_KEPT
  const kept = cells.map(cell => {
    const text = cell.slice(0, left)
    left -= text.length
    return text
  })
  return { line, reason, cells: kept }
}

function readCells(columns: readonly ColumnToRead[], line: number, cells: readonly string[]): SaidRow {
  const said: Record<string, string> = {}
  const ofColumns: [string, unknown][] = []
  for (let at = 0; at < columns.length; at += 1) {
    const { field, attribute } = columns[at] as ColumnToRead
    const cell = cells[at]
    if (field === null || cell === undefined || cell.trim() === '') continue
    if (attribute === undefined) said[field] = cell
    else ofColumns.push([attribute, cell])
  }
  const { email, subscribed, tags, attributes } = said
  if (email === undefined) throw new Error('the row has no address')
  // The column for all of them first: what has one of its own is said there.
  const named = attributes === undefined ? ofColumns : [...readAttributes(attributes), ...ofColumns]
  return {
    line,
    email: checkEmail(email),
    firstName: readName('first_name', said),
    lastName: readName('last_name', said),
    attributes: named.length === 0 ? null : checked(Object.fromEntries(named)),
    subscribed: subscribed === undefined ? null : readTruth(subscribed),
    tags: tags === undefined ? NO_TAGS : readTags(tags),
  }
}

const NO_TAGS: readonly string[] = []

function checked(attributes: Attributes): Attributes {
  checkAttributes(attributes)
  return attributes
}

function readName(field: string, said: Readonly<Record<string, string>>): string | null {
  const name = checkText(field, said[field])
  if (typeof name !== 'string') return null
  if (name.length > MOST_NAME) throw new Error(`${field} is longer than ${MOST_NAME} characters`)
  return name
}

function readTruth(cell: string): boolean {
  const word = cell.trim().toLowerCase()
  if (YES.has(word)) return true
  if (NO.has(word)) return false
  throw new Error(`subscribed is ${JSON.stringify(cell.slice(0, 40))}, neither yes nor no`)
}

function readAttributes(cell: string): [string, unknown][] {
  let value: unknown
  try {
    value = JSON.parse(cell)
  } catch {
    // Told below.
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('attributes is no JSON object')
  return Object.entries(value)
}

/** Words with commas or semicolons between them. @throws Error */
export function readTags(text: string): string[] {
  const names = new Map<string, string>()
  for (const piece of text.split(/[,;]/)) {
    const name = checkText('tags', piece)
    if (typeof name !== 'string') continue
    if (name.length > MOST_TAG_NAME) throw new Error(`a tag is longer than ${MOST_TAG_NAME} characters`)
    names.set(fold(name), name)
  }
  if (names.size > MOST_TAGS) throw new Error(`more than ${MOST_TAGS} tags`)
  return [...names.values()]
}
