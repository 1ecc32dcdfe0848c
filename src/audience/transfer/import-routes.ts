/** Import routes: upload, progress, rejected rows, cancel. */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { csvText } from '../../core/csv.js'
import { isUuid } from '../../core/ids.js'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { snapshot } from '../../db/snapshot.js'
import { Id, IdOrNull, Moment, MomentOrNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { PageQuery } from '../../http/pagination.js'
import { mayDo } from '../../http/principal.js'
import { downloadRoute, listRoute, route, uploadRoute, type Route } from '../../http/route.js'
import { formatSize } from '../../core/units.js'
import type { AudienceParts } from '../audience-parts.js'
import { refusal } from '../checks.js'
import { IMPORT_STATUSES, MAX_ROWS, type Import, type Mapping, type Rejection } from './import.js'
import { findImport, listImports, listRejections, updateImport } from './import-store.js'
import { MAX_REJECTIONS_KEPT } from './active-import.js'
import type { ImportJob } from './importer.js'
import { MAX_FILE_OCTETS, receiveFile } from './receive-file.js'
import { PRESET_CHOICES, PRESETS, type PresetChoice } from './reading/presets.js'

const FIELDS = {
  list_id: 'A static list to add all contacts to.',
  tags: 'Comma-separated names of tags to add to all contacts; missing tags are created.',
  mapping:
    'Fields of columns that are not recognized by name, as a JSON object: `{"Mail": "email", "Plan": "attributes.plan", "Notes": null}`. ' +
    'null skips a column.',
  charset:
    'Encoding of the file, if its Content-Type does not declare it. By default detected: byte order mark, UTF-8, or windows-1252.',
  file_name: 'Shown in the import; not interpreted otherwise.',
  preset:
    `The system the file was exported from: ${PRESETS.join(', ')}. Detected if the columns identify it (not for Brevo, nor for SendGrid ` +
    'suppressions other than bounces and blocks); `none` disables detection.',
  dry_run:
    '`true`: only check the file. The import counts what it would create, update and reject, and changes nothing. Default `false`.',
} as const

const query = Type.Object(
  {
    list_id: Type.Optional(Type.String({ maxLength: 64, shownFormat: 'uuid', description: FIELDS.list_id })),
    tags: Type.Optional(Type.String({ maxLength: 2_000, description: FIELDS.tags })),
    mapping: Type.Optional(Type.String({ maxLength: 10_000, description: FIELDS.mapping })),
    charset: Type.Optional(Type.String({ maxLength: 40, description: FIELDS.charset })),
    file_name: Type.Optional(Type.String({ maxLength: 200, description: FIELDS.file_name })),
    preset: Type.Optional(Type.Enum([...PRESET_CHOICES], { description: FIELDS.preset })),
    dry_run: Type.Optional(Type.Enum(['true', 'false'], { description: FIELDS.dry_run })),
  },
  { additionalProperties: false },
)

const ImportParams = Type.Object({ id: Type.String() })
/** Rejected rows returned with an import; a separate route returns all as a file. */
const MAX_SHOWN = 100

const RejectedRow = Type.Object({ line: Type.Integer(), reason: Type.String() }, { title: 'RejectedRow' })

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
  columns: Type.Array(Type.Object({ name: Type.String(), field: TextOrNull() }, { title: 'ImportColumn' }), {
    description: 'The field that each column was read as; null if skipped.',
  }),
  progress: Type.Number({ description: 'Fraction of the file processed, 0 to 1.' }),
  rows: Type.Integer({ description: 'Rows processed so far, without the header.' }),
  created: Type.Integer({ description: 'Contacts created; for a suppression file, suppressions.' }),
  updated: Type.Integer(),
  unchanged: Type.Integer({ description: 'Rows that changed nothing.' }),
  rejected: Type.Integer(),
  error: TextOrNull({ description: 'Why the import failed. Rows processed before are kept.' }),
  is_sandbox: Type.Boolean(),
  created_at: Moment(),
  started_at: MomentOrNull(),
  completed_at: MomentOrNull(),
}

const ImportSchema = Type.Object(importFields, { title: 'ContactImport' })
const ImportDetailsSchema = Type.Object(
  {
    ...importFields,
    rejected_rows: Type.Array(RejectedRow, { description: `The first ${MAX_SHOWN} rejected rows.` }),
  },
  { title: 'ContactImportDetails' },
)

/** As `GET /contacts/imports/{id}` returns it. */
export type ContactImport = Static<typeof ImportDetailsSchema>

export function importRoutes(parts: AudienceParts, imports: Pick<ImportJob, 'wake'>): Route[] {
  const { database, clock } = parts
  return [
    uploadRoute({
      method: 'POST',
      path: '/contacts/import',
      access: 'contacts:write',
      operationId: 'importContacts',
      chapter: 'Contacts',
      summary: 'Import contacts from CSV.',
      description: ABOUT_IMPORTS,
      query,
      upload: {
        octets: MAX_FILE_OCTETS,
        mediaTypes: ['text/csv', 'application/csv', 'text/plain', 'text/tab-separated-values'],
        fields: FIELDS,
        example: 'Email,First name,Plan\nann@example.com,Ann,pro\n',
      },
      response: Type.Object(
        { import_id: Id(), status: Type.Enum(['queued']) },
        { title: 'ContactImportAccepted' },
      ),
      status: 202,
      errors: ['not_found', 'conflict'],
      async handle({ principal, query: said }, { pieces, fields, file }) {
        const { workspaceId, isSandbox } = principal
        const wish = (name: keyof typeof FIELDS) => fields.get(name) ?? said[name]
        const { id } = await receiveFile(
          parts,
          {
            workspaceId,
            isSandbox,
            actor: principal.actor,
            maySuppress: mayDo(principal, 'suppressions:write'),
          },
          pieces,
          () => ({
            listId: wish('list_id'),
            tags: wish('tags'),
            mapping: readMappingText(wish('mapping')),
            charset: wish('charset') ?? file.charset,
            preset: readPreset(wish('preset')),
            isDryRun: readFlag(wish('dry_run'), 'dry_run'),
            fileName: (wish('file_name') ?? file.name)?.replace(/\p{Cc}/gu, '').slice(0, 200),
          }),
        )
        imports.wake()
        return { import_id: id, status: 'queued' as const }
      },
    }),
    listRoute({
      method: 'GET',
      path: '/contacts/imports',
      access: 'contacts:read',
      operationId: 'listContactImports',
      chapter: 'Contacts',
      summary: 'List imports of the last 30 days.',
      query: PageQuery,
      item: ImportSchema,
      async handle({ principal: { workspaceId } }, page) {
        const found = await listImports(database.reader, workspaceId, page)
        return { ...found, items: found.items.map(importToApi) }
      },
    }),
    route({
      method: 'GET',
      path: '/contacts/imports/:id',
      access: 'contacts:read',
      operationId: 'getContactImport',
      chapter: 'Contacts',
      summary: "Get an import's progress.",
      params: ImportParams,
      response: ImportDetailsSchema,
      errors: ['not_found'],
      handle: ({ principal: { workspaceId }, params }) =>
        snapshot(database.reader, async db =>
          withRejections(db, await requireImport(db, workspaceId, params.id)),
        ),
    }),
    downloadRoute({
      method: 'GET',
      path: '/contacts/imports/:id/rejected',
      access: 'contacts:read',
      operationId: 'getRejectedContacts',
      chapter: 'Contacts',
      summary: "Download an import's rejected rows as CSV.",
      description:
        `For correction and reimport. Line and reason are in extra columns that an import skips. At most ${MAX_REJECTIONS_KEPT.toLocaleString('en')} ` +
        'are kept.',
      params: ImportParams,
      mediaType: 'text/csv',
      exampleAnswer:
        'Email,First name,rejected_line,rejected_reason\nann.example.com,Ann,2,the address has no @\n',
      errors: ['not_found'],
      async handle({ principal: { workspaceId }, params }) {
        const one = await requireImport(database.reader, workspaceId, params.id)
        return { fileName: 'rejected.csv', pieces: () => rejectedRows(database.exportReader, one) }
      },
    }),
    route({
      method: 'POST',
      path: '/contacts/imports/:id/cancel',
      access: 'contacts:write',
      operationId: 'cancelContactImport',
      chapter: 'Contacts',
      summary: 'Cancel an import; processed rows are kept.',
      params: ImportParams,
      response: ImportDetailsSchema,
      errors: ['not_found', 'conflict'],
      handle: ({ principal: { workspaceId }, params }) =>
        database.write(async tx => {
          const one = await requireImport(tx.db, workspaceId, params.id)
          if (one.finishedAt !== null || one.status === 'receiving')
            throw new AppError('conflict', `cannot cancel an import that is ${one.status}`)
          const cancelled: Import = { ...one, status: 'cancelled', finishedAt: clock.now() }
          await updateImport(tx.db, cancelled)
          return withRejections(tx.db, cancelled)
        }),
    }),
  ]
}

const ABOUT_IMPORTS =
  'Returns once the file is stored; the import then runs in the background and survives restarts. ' +
  'The first row names the columns: `Email` (or E-Mail, Mail), `First name`, `Last name`, `Subscribed`, `Tags` (separated by commas or ' +
  'semicolons) and `Attributes` (JSON), in any spelling; all other columns become attributes. A file of addresses alone needs ' +
  'no header. The delimiter is a comma, semicolon or tab; empty cells are ignored.\n\n' +
  'Existing contacts are updated as by an upsert. `Subscribed` set to no (false, 0, unsubscribed) unsubscribes; ' +
  'yes applies to new contacts only, so unsubscribed and suppressed contacts stay so. If an address occurs more than ' +
  'once, the first row counts and the others are rejected. After the first few thousand, rows are not processed in file order.\n\n' +
  '`preset` reads exports of listmonk, Mailchimp, SendGrid, Postmark, Brevo and Postal. Addresses marked there as blocklisted, bounced, ' +
  'complained or unsubscribed are suppressed here; a suppression file creates no contacts. Both need the permission ' +
  '`suppressions:write`. `postroad` reads our own export, creates missing lists and tags, and restores attribute types: a cell that ' +
  'is a number, true, false or JSON becomes one, anything else text. All-digit text therefore comes back as a number.\n\n' +
  'With `dry_run=true` the rows are checked against the contacts as an import would do it, and nothing changes.\n\n' +
  `At most ${formatSize(MAX_FILE_OCTETS)} and ${MAX_ROWS.toLocaleString('en')} rows.`

/** @throws AppError validation_error */
export function readPreset(text: string | undefined): PresetChoice | undefined {
  const choice = PRESET_CHOICES.find(one => one === text)
  if (text !== undefined && !choice)
    throw refusal('preset', `${text.slice(0, 40)} is not a preset; use one of ${PRESET_CHOICES.join(', ')}`)
  return choice
}

/** @throws AppError validation_error */
function readFlag(text: string | undefined, path: string): boolean {
  if (text !== undefined && text !== 'true' && text !== 'false')
    throw refusal(path, `${path} must be true or false`)
  return text === 'true'
}

function readMappingText(text: string | undefined): Mapping | undefined {
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

/** @throws AppError not_found */
export async function requireImport(db: Queries, workspaceId: string, id: string): Promise<Import> {
  const found = isUuid(id) ? await findImport(db, workspaceId, id.toLowerCase()) : undefined
  if (!found) throw new AppError('not_found', 'no such import')
  return found
}

async function withRejections(db: Queries, one: Import): Promise<Static<typeof ImportDetailsSchema>> {
  const rejections = await listRejections(db, one.seq, 0, MAX_SHOWN)
  return {
    ...importToApi(one),
    rejected_rows: rejections.map(({ line, reason }) => ({ line, reason })),
  }
}

export function importToApi(one: Import): Static<typeof ImportSchema> {
  const isDone = one.status === 'completed'
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
    columns: one.options.columns.map(column => ({ ...column })),
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
    error: one.error,
    is_sandbox: one.isSandbox,
    created_at: isoTime(one.createdAt),
    started_at: isoTimeOrNull(one.startedAt),
    completed_at: isoTimeOrNull(one.finishedAt),
  }
}

const REJECTIONS_AT_ONCE = 500

export async function* rejectedRows(db: Queries, { seq, options }: Import): AsyncGenerator<string> {
  const names = options.columns.map(({ name }) => name)
  yield `${csvText([[...names, 'rejected_line', 'rejected_reason']])}\n`
  for (let last: Rejection | undefined; ;) {
    const rejections = await listRejections(db, seq, last?.line ?? 0, REJECTIONS_AT_ONCE)
    last = rejections.at(-1)
    if (!last) return
    const rows = rejections.map(({ line, reason, cells }) => [
      ...names.map((_, at) => cells[at] ?? ''),
      String(line),
      reason,
    ])
    yield `${csvText(rows)}\n`
  }
}
