/** Import routes: upload, progress, rejected rows, cancel. */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { csvText } from '../../core/csv.js'
import { isUuid } from '../../core/ids.js'
import type { Waiting } from '../../core/waiting.js'
import type { Queries } from '../../db/database.js'
import { snapshot } from '../../db/snapshot.js'
import { Id } from '../../http/answer/answer-fields.js'
import { PageQuery } from '../../http/pagination.js'
import { mayDo } from '../../http/principal.js'
import { downloadRoute, listRoute, route, uploadRoute, type Route } from '../../http/route.js'
import type { AudienceParts } from '../audience-parts.js'
import { refusal } from '../checks.js'
import { MAX_REJECTIONS_KEPT } from './active-import.js'
import { rejectedValue, type Import, type Rejection } from './import.js'
import {
  ABOUT_IMPORTS,
  FIELDS,
  ImportDetailsSchema,
  ImportQuery,
  ImportSchema,
  importToApi,
  MAX_SHOWN,
  readFlag,
  readMappingText,
  readRules,
  readTypesText,
} from './import-schema.js'
import { findImportWait } from './import-wait-store.js'
import { findImport, listImports, listRejections, updateImport } from './import-store.js'
import type { ImportJob } from './importer.js'
import { rejectionCode } from './rejection-code.js'
import { PRESET_CHOICES, type PresetChoice } from './reading/presets.js'
import { MAX_FILE_OCTETS, receiveFile } from './receive-file.js'

const ImportParams = Type.Object({ id: Type.String() })

export function importRoutes(parts: AudienceParts, imports: Pick<ImportJob, 'wake'>): Route[] {
  const { database, clock } = parts
  const waitOf = (db: Queries, one: Import) => findImportWait(db, one, database.storage.fault)
  return [
    uploadRoute({
      method: 'POST',
      path: '/contacts/import',
      access: 'contacts:write',
      operationId: 'importContacts',
      chapter: 'Contacts',
      summary: 'Import contacts from CSV.',
      description: ABOUT_IMPORTS,
      query: ImportQuery,
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
            types: readTypesText(wish('types')),
            rules: readRules(wish('decimal'), wish('date_format')),
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
        const shown = found.items.map(async one => importToApi(one, await waitOf(database.reader, one)))
        return { ...found, items: await Promise.all(shown) }
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
          withRejections(db, await requireImport(db, workspaceId, params.id), waitOf),
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
          return withRejections(tx.db, cancelled, waitOf)
        }),
    }),
  ]
}

/** @throws AppError validation_error */
export function readPreset(text: string | undefined): PresetChoice | undefined {
  const choice = PRESET_CHOICES.find(one => one === text)
  if (text !== undefined && !choice)
    throw refusal('preset', `${text.slice(0, 40)} is not a preset; use one of ${PRESET_CHOICES.join(', ')}`)
  return choice
}

/** @throws AppError not_found */
export async function requireImport(db: Queries, workspaceId: string, id: string): Promise<Import> {
  const found = isUuid(id) ? await findImport(db, workspaceId, id.toLowerCase()) : undefined
  if (!found) throw new AppError('not_found', 'no such import')
  return found
}

async function withRejections(
  db: Queries,
  one: Import,
  waitOf: (db: Queries, one: Import) => Promise<Waiting | undefined>,
): Promise<Static<typeof ImportDetailsSchema>> {
  const rejections = await listRejections(db, one.seq, 0, MAX_SHOWN)
  return {
    ...importToApi(one, await waitOf(db, one)),
    rejected_rows: rejections.map(({ line, reason, cells }) => ({
      line,
      code: rejectionCode(reason),
      reason,
      value: rejectedValue(one.options.columns, cells),
    })),
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
