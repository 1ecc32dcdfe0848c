/** Requests and answers of the import routes: options, columns, progress. */
import Type, { type Static } from 'typebox'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import { formatSize } from '../../core/units.js'
import { WaitingForOrNull, waitingToApi } from '../../http/answer/waiting-for.js'
import type { Waiting } from '../../core/waiting.js'
import { Id, IdOrNull, Moment, MomentOrNull, orNull, TextOrNull } from '../../http/answer/answer-fields.js'
import type { DeclaredTypes } from '../attributes/declared-values.js'
import { refusal } from '../checks.js'
import { IMPORT_STATUSES, MAX_ROWS, type Column, type Import, type Mapping } from './import.js'
import { DATE_ORDERS } from './reading/cell-dates.js'
import { DECIMAL_MARKS } from './reading/cell-numbers.js'
import { COLUMN_TYPES, type TypeRules } from './reading/column-types.js'
import { declaredType } from './reading/columns.js'
import { PRESET_CHOICES, PRESETS } from './reading/presets.js'
import { REJECTION_CODES } from './rejection-code.js'
import { MAX_FILE_OCTETS } from './receive-file.js'

export const FIELDS = {
  list_id: 'A static list to add all contacts to.',
  tags: 'Comma-separated names of tags to add to all contacts; missing tags are created.',
  mapping:
    'Fields of columns that are not recognized by name, as a JSON object: `{"Mail": "email", "Plan": "attributes.plan", "Notes": null}`. ' +
    'null skips a column.',
  types:
    'Types of attribute columns, as a JSON object: `{"Spent": "number", "Born": "date", "Code": "text"}`; text, number, date, boolean or ' +
    'list. By default the declared type of the attribute, else found in the cells: a type is used if it fits the whole column. Rows with ' +
    'other cells in a column of a given type are rejected. A given type wins over the declared one.',
  decimal:
    'Decimal mark of numbers: `point` or `comma`. By default found; needed for columns like 1,234 that may be either.',
  date_format:
    'Order of day and month in dates like 3/1/24: `DMY` or `MDY`. By default found; needed if both fit all dates of a column.',
  charset:
    'Encoding of the file, if its Content-Type does not declare it. By default detected: byte order mark, UTF-8, or windows-1252.',
  file_name: 'Shown in the import; not interpreted otherwise.',
  preset:
    `The system the file was exported from: ${PRESETS.join(', ')}. Detected if the columns identify it (not for Brevo, nor for SendGrid ` +
    'suppressions other than bounces and blocks); `none` disables detection.',
  dry_run:
    '`true`: only check the file. The import counts what it would create, update and reject, and changes nothing. Default `false`.',
} as const

export const ImportQuery = Type.Object(
  {
    list_id: Type.Optional(Type.String({ maxLength: 64, shownFormat: 'uuid', description: FIELDS.list_id })),
    tags: Type.Optional(Type.String({ maxLength: 2_000, description: FIELDS.tags })),
    mapping: Type.Optional(Type.String({ maxLength: 10_000, description: FIELDS.mapping })),
    types: Type.Optional(Type.String({ maxLength: 10_000, description: FIELDS.types })),
    decimal: Type.Optional(Type.Enum([...DECIMAL_MARKS], { description: FIELDS.decimal })),
    date_format: Type.Optional(Type.Enum(['DMY', 'MDY'], { description: FIELDS.date_format })),
    charset: Type.Optional(Type.String({ maxLength: 40, description: FIELDS.charset })),
    file_name: Type.Optional(Type.String({ maxLength: 200, description: FIELDS.file_name })),
    preset: Type.Optional(Type.Enum([...PRESET_CHOICES], { description: FIELDS.preset })),
    dry_run: Type.Optional(Type.Enum(['true', 'false'], { description: FIELDS.dry_run })),
  },
  { additionalProperties: false },
)

/** Rejected rows returned with an import; a separate route returns all as a file. */
export const MAX_SHOWN = 100

const RejectedRow = Type.Object(
  {
    line: Type.Integer(),
    code: Type.Enum([...REJECTION_CODES], { description: 'Why, for programs; more may be added.' }),
    reason: Type.String(),
    value: TextOrNull({
      description: 'What the row has in the column of the address, at most 200 characters; null if nothing.',
    }),
  },
  { title: 'RejectedRow' },
)

const ImportColumn = Type.Object(
  {
    name: Type.String(),
    field: TextOrNull({ description: 'Null if the column is skipped.' }),
    type: orNull(Type.Enum([...COLUMN_TYPES]), {
      description:
        'Of an attribute: given, declared, or found in its cells. Numbers and booleans are stored as such, dates as `2024-03-01`. Null for other ' +
        'columns, for those of our own export, and until the file was looked through.',
    }),
    decimal: orNull(Type.Enum([...DECIMAL_MARKS]), { description: 'Decimal mark of numbers that have one.' }),
    date_format: orNull(Type.Enum([...DATE_ORDERS]), { description: 'Order of year, month and day.' }),
    examples: Type.Array(Type.Object({ cell: Type.String(), value: Type.String() }), {
      description: 'First cells as written, and what they become. None of text and lists.',
    }),
    ambiguous: orNull(Type.Enum(['decimal', 'date_format']), {
      description:
        'Two readings fit the whole column: it stays text until this option of the import chooses one.',
    }),
    almost: orNull(
      Type.Object({
        type: Type.Enum([...COLUMN_TYPES]),
        line: Type.Integer({ description: 'Of the first cell that does not fit.' }),
        cell: TextOrNull({ description: 'That cell, if it is short.' }),
      }),
      { description: 'The column stays text, though most of its cells are of this type.' },
    ),
    declared: orNull(Type.Enum([...COLUMN_TYPES]), {
      description:
        'Declared type of the attribute. The column is read as this type unless `types` gives another.',
    }),
    misfits: orNull(
      Type.Object({
        count: Type.Integer(),
        examples: Type.Array(
          Type.Object({
            line: Type.Integer(),
            cell: TextOrNull({ description: 'The cell, if it is short.' }),
          }),
          { description: 'The first three.' },
        ),
      }),
      { description: 'Of a column read as its declared type: cells that do not fit it, which stay text.' },
    ),
  },
  { title: 'ImportColumn' },
)

const importFields = {
  id: Id(),
  status: Type.Enum([...IMPORT_STATUSES]),
  file_name: TextOrNull(),
  size: Type.Integer({ description: 'File size in bytes.' }),
  charset: Type.String(),
  preset: TextOrNull({ description: 'Preset used, given or detected.' }),
  dry_run: Type.Boolean({
    description: 'Whether it changes nothing; counts then tell what an import would do.',
  }),
  list_id: IdOrNull(),
  tags: Type.Array(Type.String()),
  columns: Type.Array(ImportColumn, { description: 'What each column was read as.' }),
  progress: Type.Number({ description: 'Fraction of the file processed, 0 to 1.' }),
  rows: Type.Integer({ description: 'Rows processed so far, without the header.' }),
  created: Type.Integer({ description: 'Contacts created; for a suppression file, suppressions.' }),
  updated: Type.Integer(),
  unchanged: Type.Integer({ description: 'Rows that changed nothing.' }),
  rejected: Type.Integer(),
  waiting_for: WaitingForOrNull('Why a queued import has not started, or one does not go on.'),
  error: TextOrNull({ description: 'Why the import failed. Rows processed before are kept.' }),
  is_sandbox: Type.Boolean(),
  created_at: Moment(),
  started_at: MomentOrNull(),
  completed_at: MomentOrNull(),
}

export const ImportSchema = Type.Object(importFields, { title: 'ContactImport' })
export const ImportDetailsSchema = Type.Object(
  {
    ...importFields,
    rejected_rows: Type.Array(RejectedRow, { description: `The first ${MAX_SHOWN} rejected rows.` }),
  },
  { title: 'ContactImportDetails' },
)

/** As `GET /contacts/imports/{id}` returns it. */
export type ContactImport = Static<typeof ImportDetailsSchema>

export const ABOUT_IMPORTS =
  'Returns once the file is stored; the import then runs in the background and survives restarts. ' +
  'The first row names the columns: `Email` (or E-Mail, Mail), `First name`, `Last name`, `Full name`, `Subscribed`, `Tags` (separated by ' +
  'commas or semicolons) and `Attributes` (JSON), in any spelling and in the larger languages (`Adresse e-mail`, `Correo electrónico`, ' +
  '`Nachname`); all other columns become attributes. Two columns that mean the same field are refused until `mapping` selects one. A ' +
  'file of addresses alone needs no header. The delimiter is a comma, semicolon or tab; empty cells are ignored.\n\n' +
  'Existing contacts are updated as by an upsert. `Subscribed` set to no (false, 0, unsubscribed) unsubscribes; ' +
  'yes applies to new contacts only, so unsubscribed and suppressed contacts stay so. If an address occurs more than ' +
  'once, the first row counts and the others are rejected. After the first few thousand, rows are not processed in file order.\n\n' +
  'A column whose attribute has a declared type (`/attributes`) is read as that type; cells that do not fit stay text, and `misfits` counts ' +
  'them. A list is separated by commas or semicolons, or a JSON array. Any other attribute column becomes numbers (`1.234,50 €`), dates (`01.03.2024`, `March 1, 2024`) or booleans (`ja`, `no`) if one way of reading ' +
  'fits all its cells; otherwise it stays text, as do codes with leading zeros, telephone numbers and more than 15 digits. `columns` shows ' +
  'what was found, in a dry run too; `types`, `decimal` and `date_format` change it.\n\n' +
  '`preset` reads exports of listmonk, Mailchimp, SendGrid, Postmark, Brevo and Postal. Addresses marked there as blocklisted, bounced, ' +
  'complained or unsubscribed are suppressed here; a suppression file creates no contacts. Both need the permission ' +
  '`suppressions:write`. `postroad` reads our own export, creates missing lists and tags, and restores attribute types: a cell that ' +
  'is a number, true, false or JSON becomes one, anything else text. All-digit text therefore comes back as a number.\n\n' +
  'With `dry_run=true` the rows are checked against the contacts as an import would do it, and nothing changes.\n\n' +
  `At most ${formatSize(MAX_FILE_OCTETS)} and ${MAX_ROWS.toLocaleString('en')} rows.`

/** @throws AppError validation_error */
export function readMappingText(text: string | undefined): Mapping | undefined {
  if (text === undefined) return undefined
  let mapping: unknown
  try {
    mapping = JSON.parse(text)
  } catch {
    // Reported below.
  }
  const isObject = typeof mapping === 'object' && mapping !== null && !Array.isArray(mapping)
  if (
    !isObject ||
    !Object.values(mapping as object).every(field => field === null || typeof field === 'string')
  )
    throw refusal('mapping', 'mapping must be a JSON object whose values are strings or null')
  return mapping as Mapping
}

/** @throws AppError validation_error */
export function readTypesText(text: string | undefined): Readonly<Record<string, string>> | undefined {
  if (text === undefined) return undefined
  let types: unknown
  try {
    types = JSON.parse(text)
  } catch {
    // Reported below.
  }
  const isObject = typeof types === 'object' && types !== null && !Array.isArray(types)
  if (!isObject || !Object.values(types as object).every(type => typeof type === 'string'))
    throw refusal('types', 'types must be a JSON object whose values are strings')
  return types as Readonly<Record<string, string>>
}

/** @throws AppError validation_error */
export function readRules(decimal: string | undefined, dateFormat: string | undefined): TypeRules {
  const mark = DECIMAL_MARKS.find(one => one === decimal)
  if (decimal !== undefined && !mark) throw refusal('decimal', 'decimal must be point or comma')
  if (dateFormat !== undefined && dateFormat !== 'DMY' && dateFormat !== 'MDY')
    throw refusal('date_format', 'date_format must be DMY or MDY')
  return {
    ...(mark === undefined ? {} : { decimal: mark }),
    ...(dateFormat === undefined ? {} : { dateOrder: dateFormat }),
  }
}

/** @throws AppError validation_error */
export function readFlag(text: string | undefined, path: string): boolean {
  if (text !== undefined && text !== 'true' && text !== 'false')
    throw refusal(path, `${path} must be true or false`)
  return text === 'true'
}

export function importToApi(one: Import, waiting: Waiting | undefined): Static<typeof ImportSchema> {
  const isDone = one.status === 'completed'
  const declared: DeclaredTypes = new Map(one.options.declared)
  return {
    id: one.id,
    status: one.status,
    file_name: one.fileName,
    size: one.octets,
    charset: one.charset,
    preset: one.options.preset,
    dry_run: one.options.isDryRun,
    list_id: one.options.listId,
    tags: [...one.options.tags],
    columns: one.options.columns.map(column => columnToApi(column, declared)),
    progress: isDone
      ? 1
      : one.octets === 0
        ? 0
        : Math.min(0.99, Math.floor((100 * one.octetsRead) / one.octets) / 100),
    rows: one.rowsDone,
    created: one.created,
    updated: one.updated,
    unchanged: one.unchanged,
    rejected: one.rejected,
    waiting_for: waitingToApi(waiting),
    error: one.error,
    is_sandbox: one.isSandbox,
    created_at: isoTime(one.createdAt),
    started_at: isoTimeOrNull(one.startedAt),
    completed_at: isoTimeOrNull(one.finishedAt),
  }
}

function columnToApi(column: Column, declared: DeclaredTypes): Static<typeof ImportColumn> {
  const { name, field, found } = column
  const {
    type = null,
    decimal = null,
    dateFormat = null,
    ambiguous = null,
    almost = null,
    misfits = null,
    examples = [],
  } = found ?? {}
  return {
    name,
    field,
    type,
    decimal,
    date_format: dateFormat,
    examples: examples.map(example => ({ ...example })),
    ambiguous,
    almost: almost && { ...almost },
    declared: declaredType(column, declared) ?? null,
    misfits: misfits && { count: misfits.count, examples: misfits.examples.map(one => ({ ...one })) },
  }
}
