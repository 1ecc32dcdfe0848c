/**
 * Maps the columns of an imported file to contact fields, by common names or the requested mapping.
 *
 * Called on upload and by the reader thread, with the same result. Pure.
 * Fails: AppError validation_error for an invalid header or mapping.
 */
import { AppError } from '../../../core/errors.js'
import { readImportedAddress } from '../../../mail/named-address.js'
import { checkAttributes, refusal } from '../../checks.js'
import type { Column, EveryRow, ImportOptions, Mapping } from '../import.js'
import { foldedName, knownField, nameField, type Beside } from './column-names.js'
import type { AttributeType, DeclaredTypes } from '../../attributes/declared-values.js'
import { COLUMN_TYPES, type ColumnTypeName, type WantedType } from './column-types.js'
import { layoutOf, PLAIN_ROWS, type Layout, type PresetChoice } from './presets.js'

/** Fields that a mapping can use, besides attributes. */
const FIELDS = [
  ...([
    'email',
    'first_name',
    'last_name',
    'name',
    'subscribed',
    'status',
    'lists',
    'tags',
    'attributes',
  ] as const),
]

/** Skipped columns: exported fields that cannot be imported, and extra columns of rejected rows. */
const PASSED_OVER = new Set([
  ...['id', 'bounced', 'bounced_at', 'bounce_type', 'last_opened_at', 'last_clicked_at', 'is_sandbox'],
  ...['created_at', 'updated_at', 'lists', 'rejected_line', 'rejected_reason'],
])

const ATTRIBUTE = 'attributes.'
const ALONE: Beside = { hasFirst: false, hasLast: false }

export interface Heading {
  readonly columns: readonly Column[]
  /** False if the first row is a contact: a file of addresses only. */
  readonly hasHeading: boolean
  readonly preset: string | null
  readonly everyRow: EveryRow
  readonly makesContacts: boolean
}

const PLAIN = { preset: null, everyRow: PLAIN_ROWS, makesContacts: true } as const

/** @param first cells of the first row @param choice requested preset; detected if undefined @throws AppError validation_error */
export function readHeading(
  first: readonly string[],
  mapping: Mapping,
  choice?: PresetChoice,
  fileName?: string,
): Heading {
  const [only = ''] = first
  if (first.length === 1 && !('fault' in readImportedAddress(only)))
    return { ...PLAIN, columns: [{ name: 'email', field: 'email' }], hasHeading: false }
  const names = first.map(cell => cell.trim())
  for (const name of Object.keys(mapping))
    if (!names.includes(name))
      throw refusal('mapping', `mapping uses the column ${shown(name)}, which is not in the file`)
  const layout = layoutOf(names, choice, fileName)
  const columns = withNames(
    names.map((name): Column => ({ name, field: fieldOf(name, mapping, layout) })),
    mapping,
    layout,
  )
  mustBeClear(columns)
  if (!columns.some(({ field }) => field === 'email'))
    throw new AppError(
      'validation_error',
      `the first row has no column for the address (Email); its columns are ${names.slice(0, 20).map(shown).join(', ')}`,
      { path: 'file' },
    )
  const { preset, everyRow, makesContacts } = layout ?? PLAIN
  return { columns, hasHeading: true, preset, everyRow, makesContacts }
}

/** Names by column. @throws AppError validation_error for a column that is no attribute of the file */
export function readTypes(
  types: Readonly<Record<string, string>>,
  columns: readonly Column[],
): Readonly<Record<string, ColumnTypeName>> {
  return Object.fromEntries(
    Object.entries(types).map(([name, text]): [string, ColumnTypeName] => {
      const type = COLUMN_TYPES.find(one => one === text)
      if (type === undefined)
        throw refusal('types', `types: ${shown(name)} must be one of ${COLUMN_TYPES.join(', ')}`)
      const column = columns.find(one => one.name === name)
      if (!column) throw refusal('types', `types uses the column ${shown(name)}, which is not in the file`)
      if (attributeOf(column.field ?? '') === undefined)
        throw refusal(
          'types',
          `types: the column ${shown(name)} becomes ${column.field ?? 'nothing'}, not an attribute`,
        )
      return [name, type]
    }),
  )
}

interface TypesOfColumns {
  readonly types: ImportOptions['types']
  readonly declared: DeclaredTypes
}

/** Whether the file is looked through for the column's type, or for cells that do not fit it. */
export function isColumnOfType(
  column: Column,
  { types, declared, everyRow }: TypesOfColumns & { readonly everyRow: EveryRow },
): boolean {
  if (attributeOf(column.field ?? '') === undefined) return false
  // Our own export has types of its own.
  return !everyRow.isTyped || wantedType(column, { types, declared }) !== undefined
}

/** A type chosen for this file wins over the declared one. @returns undefined to find the type in the cells */
export function wantedType(column: Column, { types, declared }: TypesOfColumns): WantedType | undefined {
  const chosen = Object.hasOwn(types, column.name) ? types[column.name] : undefined
  if (chosen !== undefined) return { type: chosen, isDeclared: false }
  const type = declaredType(column, declared)
  return type && { type, isDeclared: true }
}

export function declaredType({ field }: Column, declared: DeclaredTypes): AttributeType | undefined {
  return declared.get(attributeOf(field ?? '') ?? '')
}

/** Of a workspace's declared types those that the file can use, as they are stored with the import. */
export function usedTypes(
  declared: DeclaredTypes,
  columns: readonly Column[],
): readonly (readonly [string, AttributeType])[] {
  const names = new Set(columns.map(({ field }) => attributeOf(field ?? '')))
  // JSON of any attributes.
  const hasAny = columns.some(({ field }) => field === 'attributes')
  return [...declared].filter(([name]) => hasAny || names.has(name))
}

/** @throws AppError validation_error */
export function readMapping(mapping: Mapping): Mapping {
  for (const [name, field] of Object.entries(mapping))
    if (field !== null && !isField(field))
      throw refusal(
        'mapping',
        `mapping: ${shown(name)} must be one of ${FIELDS.join(', ')}, attributes.<name>, or null to skip the column`,
      )
  return mapping
}

function isField(field: string): boolean {
  return (
    (FIELDS as readonly string[]).includes(field) ||
    (field.length > ATTRIBUTE.length && field.startsWith(ATTRIBUTE))
  )
}

function fieldOf(name: string, mapping: Mapping, layout?: Layout): string | null {
  if (Object.hasOwn(mapping, name)) return mapping[name] ?? null
  const folded = foldedName(name)
  if (layout && Object.hasOwn(layout.fields, folded)) return layout.fields[folded] ?? null
  if (name === '' || PASSED_OVER.has(name.toLowerCase())) return null
  if (isField(name) && name.startsWith(ATTRIBUTE)) return name
  const known = knownField(name)
  // A column selected by the mapping leaves none in doubt.
  return known === undefined || Object.values(mapping).includes(known) ? ATTRIBUTE + name : known
}

/** Names like `Nom` and `Nombre` are read last: the other columns say which part of the name they are. */
function withNames(columns: readonly Column[], mapping: Mapping, layout?: Layout): readonly Column[] {
  const has = (wanted: string) => columns.some(({ field }) => field === wanted)
  if (has('name') || layout?.preset === 'postroad') return columns
  const beside: Beside = { hasFirst: has('first_name'), hasLast: has('last_name') }
  return columns.map(column => {
    if (Object.hasOwn(mapping, column.name) || column.field !== ATTRIBUTE + column.name) return column
    return { name: column.name, field: nameField(column.name, beside) ?? column.field }
  })
}

function mustBeClear(columns: readonly Column[]): void {
  const seen = new Map<string, string>()
  for (const { name, field } of columns) {
    if (field === null) continue
    const other = seen.get(field)
    if (other !== undefined)
      throw new AppError(
        'validation_error',
        `the columns ${shown(other)} and ${shown(name)} both map to ${field}; select one with mapping, such as ` +
          `{${shown(name)}: null}`,
        { path: 'file' },
      )
    seen.set(field, name)
  }
  const attributes = columns.flatMap(({ field }) => attributeOf(field ?? '') ?? [])
  checkAttributes(Object.fromEntries(attributes.map(name => [name, ''])))
}

/** @returns the attribute name, if the field is one */
export function attributeOf(field: string): string | undefined {
  return field.startsWith(ATTRIBUTE) ? field.slice(ATTRIBUTE.length) : undefined
}

/** The column name that an import reads as this attribute. */
export function columnFor(attribute: string): string {
  const isOther = fieldOf(attribute, {}) === ATTRIBUTE + attribute
  return isOther && nameField(attribute, ALONE) === undefined && attribute === attribute.trim()
    ? attribute
    : ATTRIBUTE + attribute
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 60))
}
