/** Files of suppressions in the admin API: import from CSV, export as CSV or JSON. */
import Type, { type Static } from 'typebox'
import { csvText } from '../../core/csv.js'
import { AppError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { SuppressionSchema, suppressionToApi } from '../../deliverability/suppressions/suppression-routes.js'
import { everySuppression, type Suppression } from '../../deliverability/suppressions/suppression-store.js'
import { adminDownloadRoute, adminUploadRoute } from '../../http/admin-route.js'
import { TextOrNull } from '../../http/answer/answer-fields.js'
import type { Route } from '../../http/route.js'
import { importSuppressions, type SuppressionImportParts } from './import-suppressions.js'
import { readPreset } from './import-routes.js'
import { MAX_FILE_OCTETS } from './receive-file.js'

export interface SuppressionTransferParts extends SuppressionImportParts {
  readonly hasWorkspace: (db: Queries, id: string) => Promise<boolean>
}

const ImportedSchema = Type.Object(
  {
    added: Type.Integer(),
    widened: Type.Integer({ description: 'Entries for marketing mail that now stop all mail.' }),
    known: Type.Integer({ description: 'Already suppressed.' }),
    preset: TextOrNull({ description: 'System whose export it was read as; null for our own columns.' }),
    skipped: Type.Integer({ description: "Rows of another system's export that are not suppressed there." }),
    rejected: Type.Integer(),
    faults: Type.Array(
      Type.Object({
        line: Type.Integer(),
        reason: Type.String(),
        value: TextOrNull({ description: 'What the row has in the column of the address; null if nothing.' }),
      }),
      { description: 'The first rejected rows.' },
    ),
  },
  { title: 'ImportedSuppressions' },
)

export type ImportedSuppressions = Static<typeof ImportedSchema>

const WorkspaceId = Type.String({ minLength: 1, maxLength: 64 })
const COLUMNS = ['email', 'reason', 'scope', 'source_message_id', 'created_at'] as const

export function suppressionTransferRoutes(parts: SuppressionTransferParts): Route[] {
  const { database, hasWorkspace } = parts
  const mustExist = async (id: string) => {
    if (!(await hasWorkspace(database.reader, id))) throw new AppError('not_found', `no workspace ${id}`)
  }
  return [
    adminUploadRoute({
      method: 'POST',
      path: '/suppressions/import',
      access: { permission: 'suppressions:write', scope: 'query' },
      operationId: 'importSuppressions',
      chapter: 'Suppressions',
      summary: 'Import suppressions from CSV.',
      description:
        'Columns are email, reason and scope; a file with a single column, and exports of other systems, are read as well. Answers once ' +
        'the file is read; rows before a failure are kept. Existing entries stay, and a wider scope widens them.',
      query: Type.Object(
        {
          workspace_id: WorkspaceId,
          preset: Type.Optional(
            Type.String({ maxLength: 40, description: 'System that exported the file, if not detected.' }),
          ),
          file_name: Type.Optional(
            Type.String({ maxLength: 200, description: 'Helps to detect the system.' }),
          ),
        },
        { additionalProperties: false },
      ),
      upload: {
        octets: MAX_FILE_OCTETS,
        mediaTypes: ['text/csv', 'text/plain'],
        fields: {},
        example: 'email,reason,scope\nann@example.com,hard_bounce,all\n',
      },
      response: ImportedSchema,
      errors: ['not_found'],
      async handle({ operator, query }, { pieces, file }) {
        await mustExist(query.workspace_id)
        const { total: _, ...imported } = await importSuppressions(
          parts,
          {
            workspaceId: query.workspace_id,
            actor: operator.actor,
            preset: readPreset(query.preset),
            fileName: (query.file_name ?? file.name ?? '').replace(/\p{Cc}/gu, '').slice(0, 200),
          },
          pieces,
        )
        return { ...imported, faults: [...imported.faults] }
      },
    }),
    adminDownloadRoute({
      method: 'GET',
      path: '/suppressions/export',
      access: { permission: 'suppressions:read', scope: 'query' },
      operationId: 'exportSuppressions',
      chapter: 'Suppressions',
      summary: 'Export suppressions as CSV or JSON.',
      query: Type.Object(
        { workspace_id: WorkspaceId, format: Type.Optional(Type.Enum(['csv', 'json'], { default: 'csv' })) },
        { additionalProperties: false },
      ),
      mediaType: 'text/csv',
      otherFiles: [{ mediaType: 'application/json', schema: Type.Array(SuppressionSchema) }],
      exampleAnswer:
        'email,reason,scope,source_message_id,created_at\nann@example.com,manual,all,,2026-01-05T10:00:00.000Z\n',
      errors: ['not_found'],
      async handle({ query }) {
        await mustExist(query.workspace_id)
        const pieces = everySuppression(database.reader, query.workspace_id)
        return query.format === 'json'
          ? { fileName: 'suppressions.json', mediaType: 'application/json', pieces: () => asJson(pieces) }
          : { fileName: 'suppressions.csv', pieces: () => asCsv(pieces) }
      },
    }),
  ]
}

async function* asCsv(pieces: AsyncIterable<Suppression[]>): AsyncGenerator<string> {
  yield `${csvText([COLUMNS])}\n`
  for await (const piece of pieces) yield `${csvText(piece.map(cellsOf))}\n`
}

function cellsOf(one: Suppression): string[] {
  return [one.email, one.reason, one.scope, one.sourceMessageId ?? '', isoTime(one.createdAt)]
}

async function* asJson(pieces: AsyncIterable<Suppression[]>): AsyncGenerator<string> {
  let before = '['
  for await (const piece of pieces) {
    yield before + piece.map(one => JSON.stringify(suppressionToApi(one, false))).join(',')
    before = ','
  }
  yield before === '[' ? '[]' : ']'
}
