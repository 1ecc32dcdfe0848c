/** Routes of imports: take a file, show how far it is, give its rejected rows back, cancel. */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { csvText } from '../../core/csv.js'
import { isUuid } from '../../core/ids.js'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { keyActor } from '../../events/activity-store.js'
import { Id, IdOrNull, Moment, MomentOrNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { pageQuery } from '../../http/pagination.js'
import { mayDo } from '../../http/principal.js'
import { downloadRoute, listRoute, route, uploadRoute, type Route } from '../../http/route.js'
import { formatSize } from '../../core/units.js'
import type { AudienceParts } from '../audience-parts.js'
import { refusal } from '../checks.js'
import { IMPORT_STATUSES, type Import, type Mapping, type Rejection } from './import.js'
import { findImport, listImports, listRejections, updateImport } from './import-store.js'
import type { ImportJob } from './import-job.js'
import { MOST_REJECTIONS_KEPT } from './importer.js'
import { MOST_FILE_OCTETS, receiveFile } from './receive-file.js'
import { PRESET_CHOICES, PRESETS, type PresetChoice } from './reading/presets.js'
import { MOST_ROWS } from './reading/serve-import-reader.js'

const FIELDS = {
  list_id: 'A static list that everybody in the file is put into.',
  tags: 'Names of tags with commas between them, which everybody in the file gets; made where there are none.',
  mapping:
    'What columns are for where their names do not tell, as a JSON object: `{"Mail": "email", "Plan": "attributes.plan", "Notes": null}`. ' +
    'null passes a column over.',
  charset:
    'Of the file, where its Content-Type does not tell. Without either: by its byte order mark, UTF-8, or windows-1252.',
  file_name: 'For people.',
  preset:
    `Whose export the file is: ${PRESETS.join(', ')}. Detected where the columns leave no doubt (SendGrid suppressions other than ` +
    'bounces, blocks and Brevo are not); `none` turns that off.',
} as const

const query = Type.Object(
  {
    list_id: Type.Optional(Type.String({ maxLength: 64, shownFormat: 'uuid', description: FIELDS.list_id })),
    tags: Type.Optional(Type.String({ maxLength: 2_000, description: FIELDS.tags })),
    mapping: Type.Optional(Type.String({ maxLength: 10_000, description: FIELDS.mapping })),
    charset: Type.Optional(Type.String({ maxLength: 40, description: FIELDS.charset })),
    file_name: Type.Optional(Type.String({ maxLength: 200, description: FIELDS.file_name })),
    preset: Type.Optional(Type.Enum([...PRESET_CHOICES], { description: FIELDS.preset })),
  },
  { additionalProperties: false },
)

const ImportParams = Type.Object({ id: Type.String() })
/** Shown with the import; the file of all of them has its own path. */
const MOST_SHOWN = 100

const RejectedRow = Type.Object({ line: Type.Integer(), reason: Type.String() }, { title: 'RejectedRow' })

const importFields = {
  id: Id(),
  status: Type.Enum([...IMPORT_STATUSES]),
  file_name: TextOrNull(),
  size: Type.Integer({ description: 'Octets of the file.' }),
  charset: Type.String(),
  preset: TextOrNull({ description: 'Whose export the file was taken for, given or detected.' }),
  list_id: IdOrNull(),
  tags: Type.Array(Type.String()),
  columns: Type.Array(Type.Object({ name: Type.String(), field: TextOrNull() }, { title: 'ImportColumn' }), {
    description: 'What each column was taken for; null where it was passed over.',
  }),
  progress: Type.Number({ description: 'How much of the file was read, 0 to 1.' }),
  rows: Type.Integer({ description: 'Done so far, the heading not counted.' }),
  created: Type.Integer({ description: 'Contacts; of a file of suppressions those.' }),
  updated: Type.Integer(),
  unchanged: Type.Integer({ description: 'Known already, and nothing new was said of them.' }),
  rejected: Type.Integer(),
  error: TextOrNull({ description: 'Why it failed. What was done before is done.' }),
  is_sandbox: Type.Boolean(),
  created_at: Moment(),
  started_at: MomentOrNull(),
  completed_at: MomentOrNull(),
}

const ImportSchema = Type.Object(importFields, { title: 'ContactImport' })
const ImportDetailsSchema = Type.Object(
  {
    ...importFields,
    rejected_rows: Type.Array(RejectedRow, { description: `The first ${MOST_SHOWN}.` }),
  },
  { title: 'ContactImportDetails' },
)

export function importRoutes(parts: AudienceParts, imports: Pick<ImportJob, 'wake'>): Route[] {
  const { database, clock } = parts
  return [
    uploadRoute({
      method: 'POST',
      path: '/contacts/import',
      access: 'contacts:write',
      operationId: 'importContacts',
      chapter: 'Contacts',
      summary: 'Make and change contacts by a file of CSV.',
      description: ABOUT_IMPORTS,
      query,
      upload: {
        octets: MOST_FILE_OCTETS,
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
            ...{ workspaceId, isSandbox, actor: keyActor(principal) },
            maySuppress: mayDo(principal, 'suppressions:write'),
          },
          pieces,
          () => ({
            listId: wish('list_id'),
            tags: wish('tags'),
            mapping: readMappingText(wish('mapping')),
            charset: wish('charset') ?? file.charset,
            preset: readPreset(wish('preset')),
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
      summary: 'Imports, newest first; kept for 30 days.',
      query: Type.Object(pageQuery, { additionalProperties: false }),
      item: ImportSchema,
      async handle({ principal: { workspaceId } }, page) {
        const { items, total } = await listImports(database.reader, workspaceId, page)
        return { items: items.map(importToApi), total }
      },
    }),
    route({
      method: 'GET',
      path: '/contacts/imports/:id',
      access: 'contacts:read',
      operationId: 'getContactImport',
      chapter: 'Contacts',
      summary: 'How far an import has come, and which rows were rejected.',
      params: ImportParams,
      response: ImportDetailsSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId }, params }) {
        return withRejections(database.reader, await requireImport(database.reader, workspaceId, params.id))
      },
    }),
    downloadRoute({
      method: 'GET',
      path: '/contacts/imports/:id/rejected',
      access: 'contacts:read',
      operationId: 'getRejectedContacts',
      chapter: 'Contacts',
      summary: 'The rejected rows of an import as CSV, to be mended and imported again.',
      description:
        `With line and reason beside each, in columns that an import passes over. The first ${MOST_REJECTIONS_KEPT.toLocaleString('en')} ` +
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
      summary: 'Stop an import; what was done stays.',
      params: ImportParams,
      response: ImportDetailsSchema,
      errors: ['not_found', 'conflict'],
      handle: ({ principal: { workspaceId }, params }) =>
        database.write(async tx => {
          const one = await requireImport(tx.db, workspaceId, params.id)
          if (one.finishedAt !== null || one.status === 'receiving')
            throw new AppError('conflict', `the import is ${one.status}`)
          const cancelled: Import = { ...one, status: 'cancelled', finishedAt: clock.now() }
          await updateImport(tx.db, cancelled)
          return withRejections(tx.db, cancelled)
        }),
    }),
  ]
}

const ABOUT_IMPORTS =
  'Answered once the file is stored; it is worked off afterwards, and gone on with when the server was stopped. ' +
  'The first row names the columns: `Email` (or E-Mail, Mail), `First name`, `Last name`, `Subscribed`, `Tags` (commas or semicolons ' +
  'between them) and `Attributes` (JSON), however they are written; all other columns become attributes. A file of addresses alone needs ' +
  'no heading. Cells are separated by commas, semicolons or tabs; empty ones say nothing.\n\n' +
  'A contact that there is already is changed as by an upsert. `Subscribed` may be no (false, 0, unsubscribed), which unsubscribes; ' +
  'yes is for new contacts alone: whoever has unsubscribed or is suppressed stays so. Of an address that stands in the file more than ' +
  'once the first row counts, and the others are rejected. After the first few thousand, rows are not done in the order of the file.\n\n' +
  '`preset` reads exports of listmonk, Mailchimp, SendGrid, Postmark, Brevo and Postal. Addresses marked there as blocklisted, bounced, ' +
  'complained or unsubscribed are suppressed here; a suppression file creates no contacts. Both need the permission ' +
  '`suppressions:write`. `postroad` reads our own export, creates missing lists and tags, and restores attribute types: a cell that ' +
  'is a number, true, false or JSON becomes one, anything else text. Text of digits alone therefore comes back as a number.\n\n' +
  `At most ${formatSize(MOST_FILE_OCTETS)} and ${MOST_ROWS.toLocaleString('en')} rows.`

/** @throws AppError validation_error */
export function readPreset(text: string | undefined): PresetChoice | undefined {
  const choice = PRESET_CHOICES.find(one => one === text)
  if (text !== undefined && !choice)
    throw refusal('preset', `${text.slice(0, 40)} is not a preset; choose ${PRESET_CHOICES.join(', ')}`)
  return choice
}

function readMappingText(text: string | undefined): Mapping | undefined {
  if (text === undefined) return undefined
  let mapping: unknown
  try {
    mapping = JSON.parse(text)
  } catch {
    // Told below.
  }
  const isObject = typeof mapping === 'object' && mapping !== null && !Array.isArray(mapping)
  if (
    !isObject ||
    !Object.values(mapping as object).every(field => field === null || typeof field === 'string')
  )
    throw refusal('mapping', 'mapping must be a JSON object of texts and nulls')
  return mapping as Mapping
}

/** @throws AppError not_found */
export async function requireImport(db: Queries, workspaceId: string, id: string): Promise<Import> {
  const found = isUuid(id) ? await findImport(db, workspaceId, id.toLowerCase()) : undefined
  if (!found) throw new AppError('not_found', 'no such import')
  return found
}

async function withRejections(db: Queries, one: Import): Promise<Static<typeof ImportDetailsSchema>> {
  const rejections = await listRejections(db, one.seq, 0, MOST_SHOWN)
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

/** All that are kept, as a file. */
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
