/** Backups in the admin API: made by the server, listed, downloaded, deleted. */
import Type, { type Static } from 'typebox'
import { isoTime } from '../../core/moments.js'
import type { Services } from '../../db/services.js'
import { recordAction } from '../../events/activity-store.js'
import { adminDownloadRoute, adminListRoute, adminRoute } from '../../http/admin-route.js'
import { DONE, Done, IntegerOrNull, Moment, TextOrNull } from '../../http/answer/answer-fields.js'
import { listingOf, PageQuery } from '../../http/pagination.js'
import type { Route } from '../../http/route.js'
import { BACKUP_NAME, type Backup, type Backups } from './backups.js'

export type BackupRouteParts = Pick<Services, 'database' | 'clock'>

const BackupSchema = Type.Object(
  {
    name: Type.String(),
    state: Type.Enum(['running', 'complete', 'failed']),
    progress: Type.Number({
      minimum: 0,
      maximum: 1,
      description: 'Copied share of the database; the copy is then verified.',
    }),
    size: IntegerOrNull({ description: 'Octets; null until it is complete.' }),
    created_at: Moment(),
    error: TextOrNull({ description: 'Why it failed.' }),
  },
  { title: 'Backup' },
)

export type BackupView = Static<typeof BackupSchema>

const BackupParams = Type.Object({ name: Type.String({ pattern: BACKUP_NAME, maxLength: 64 }) })

export function backupRoutes(backups: Backups, parts: BackupRouteParts): Route[] {
  return [
    adminListRoute({
      method: 'GET',
      path: '/backups',
      access: { permission: 'system:read', scope: 'appliance' },
      operationId: 'listBackups',
      chapter: 'System',
      summary: 'List backups, newest first.',
      query: PageQuery,
      item: BackupSchema,
      handle: async (_request, page) => listingOf(backups.list(), page, backupToApi, ({ name }) => name),
    }),
    adminRoute({
      method: 'POST',
      path: '/backups',
      access: { permission: 'system:write', scope: 'appliance' },
      operationId: 'startBackup',
      chapter: 'System',
      summary: 'Start a backup of the database.',
      description:
        'Answers at once; GET shows its progress. The file stays in `backups/` of the data folder until it is deleted. It does not contain ' +
        'the configuration, certificate files or the secrets.key file.',
      response: BackupSchema,
      status: 202,
      errors: ['conflict', 'unavailable'],
      async handle({ operator }) {
        const started = await backups.start()
        await recordAction(parts, operator.actor, 'backup.started', started.name)
        return backupToApi(started)
      },
    }),
    adminDownloadRoute({
      method: 'GET',
      path: '/backups/:name',
      // It contains everything: mail, contacts, keys.
      access: { permission: 'system:write', scope: 'appliance', isSensitive: true },
      operationId: 'downloadBackup',
      chapter: 'System',
      summary: 'Download a backup.',
      params: BackupParams,
      mediaType: 'application/octet-stream',
      exampleAnswer: 'SQLite format 3',
      errors: ['not_found', 'conflict'],
      async handle({ operator, params: { name } }) {
        const { pieces } = backups.read(name)
        await recordAction(parts, operator.actor, 'backup.downloaded', name)
        return { fileName: name, pieces }
      },
    }),
    adminRoute({
      method: 'DELETE',
      path: '/backups/:name',
      access: { permission: 'system:write', scope: 'appliance' },
      operationId: 'deleteBackup',
      chapter: 'System',
      summary: 'Delete a backup.',
      params: BackupParams,
      response: Done,
      errors: ['not_found', 'conflict'],
      async handle({ operator, params: { name } }) {
        backups.remove(name)
        await recordAction(parts, operator.actor, 'backup.deleted', name)
        return DONE
      },
    }),
  ]
}

function backupToApi({ name, state, copied, size, createdAt, error }: Backup): BackupView {
  return {
    name,
    state,
    progress: copied,
    size: size ?? null,
    created_at: isoTime(createdAt),
    error: error ?? null,
  }
}
