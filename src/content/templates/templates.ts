/**
 * Creates, changes, deletes and restores templates, each with an activity log entry.
 *
 * Fails: AppError validation_error with the field's path, template_not_found, not_found for a version.
 */
import { AppError } from '../../core/errors.js'
import type { Queries, Tx } from '../../db/database.js'
import type { Actor } from '../../core/actor.js'
import type { Services } from '../../db/services.js'
import { recordActivity } from '../../events/activity-store.js'
import { etagOf, type Precondition } from '../../http/preconditions.js'
import type { References } from '../../resource/references.js'
import type { RenderQueue } from '../rendering/render-queue.js'
import { readContent, readGivenStructure, requireParsableHtml, type ContentInput } from './read-content.js'
import {
  findTemplate,
  findVersion,
  insertTemplate,
  markTemplateDeleted,
  markTemplateLive,
  updateTemplate,
  type Template,
  type TemplateContent,
  type TemplateVersion,
} from './template-store.js'

interface Parts extends Pick<Services, 'database' | 'clock' | 'newId'> {
  readonly renderQueue: RenderQueue
}

interface Owner {
  readonly workspaceId: string
}

export async function createTemplate(
  { database, clock, newId, renderQueue }: Parts,
  { workspaceId }: Owner,
  actor: Actor,
  given: ContentInput,
): Promise<Template> {
  const now = clock.now()
  const head = { id: newId(), workspaceId, version: 1, createdAt: now, updatedAt: now }
  const structure = readGivenStructure(given)
  const template = { ...head, ...readContent(given, structure) }
  await requireParsableHtml(renderQueue, workspaceId, template.html, given, structure)
  await database.write(async tx => {
    await insertTemplate(tx.db, template)
    await log(tx, template, actor, 'template.created', now)
  })
  return template
}

/** Includes `updatedAt`, since after restoring a backup a version number may be reused. */
export function templateEtag({ id, version, updatedAt }: Template): string {
  return etagOf(id, version, updatedAt)
}

/** An empty body changes nothing and creates no version. */
export async function changeTemplate(
  { database, clock, renderQueue }: Parts,
  { workspaceId }: Owner,
  actor: Actor,
  id: string,
  given: ContentInput,
  precondition?: Precondition,
): Promise<Template> {
  const structure = readGivenStructure(given)
  // Parses outside the write transaction, which must not wait for it; retries if the template changed meanwhile.
  for (;;) {
    const seen = await getTemplate(database.reader, workspaceId, id)
    precondition?.check(templateEtag(seen))
    if (Object.values(given).every(value => value === undefined)) return seen
    const content = readContent(given, structure, seen)
    if (content.html !== seen.html)
      await requireParsableHtml(renderQueue, workspaceId, content.html, given, structure)
    const changed = await database.write(async tx => {
      const before = await getTemplate(tx.db, workspaceId, id)
      if (before.version !== seen.version) return undefined
      return toNextVersion(tx, before, content, actor, 'template.updated', clock.now())
    })
    if (changed) return changed
  }
}

export async function restoreVersion(
  { database, clock }: Parts,
  { workspaceId }: Owner,
  actor: Actor,
  id: string,
  version: number,
  precondition?: Precondition,
): Promise<Template> {
  return database.write(async tx => {
    const before = await getTemplate(tx.db, workspaceId, id)
    precondition?.check(templateEtag(before))
    const content = await getVersion(tx.db, id, version)
    return toNextVersion(tx, before, content, actor, 'template.restored', clock.now())
  })
}

/** @param references absent to delete even if it is in use */
export async function deleteTemplate(
  { database, clock }: Parts,
  { workspaceId }: Owner,
  actor: Actor,
  id: string,
  references: References | undefined,
  precondition?: Precondition,
): Promise<void> {
  const now = clock.now()
  await database.write(async tx => {
    const template = await getTemplate(tx.db, workspaceId, id)
    precondition?.check(templateEtag(template))
    await references?.refuseIfUsed(tx.db, {
      kind: 'template',
      workspaceId,
      id: template.id,
      name: template.name,
    })
    await markTemplateDeleted(tx.db, workspaceId, id, now)
    await log(tx, template, actor, 'template.deleted', now)
  })
}

export async function undeleteTemplate(
  { database, clock }: Parts,
  { workspaceId }: Owner,
  actor: Actor,
  id: string,
): Promise<Template> {
  return database.write(async tx => {
    if (!(await markTemplateLive(tx.db, workspaceId, id)))
      throw new AppError('template_not_found', 'no such deleted template')
    const template = await getTemplate(tx.db, workspaceId, id)
    await log(tx, template, actor, 'template.undeleted', clock.now())
    return template
  })
}

export async function getTemplate(db: Queries, workspaceId: string, id: string): Promise<Template> {
  const template = await findTemplate(db, workspaceId, id)
  if (!template) throw new AppError('template_not_found', 'no such template')
  return template
}

export async function getVersion(db: Queries, id: string, version: number): Promise<TemplateVersion> {
  const found = await findVersion(db, id, version)
  if (!found) throw new AppError('not_found', 'the template has no such version')
  return found
}

async function toNextVersion(
  tx: Tx,
  before: Template,
  { name, description, html, structure }: TemplateContent,
  actor: Actor,
  action: 'template.updated' | 'template.restored',
  now: number,
): Promise<Template> {
  const content = { name, description, html, structure }
  const template = { ...before, ...content, version: before.version + 1, updatedAt: now }
  await updateTemplate(tx.db, template)
  await log(tx, template, actor, action, now)
  return template
}

function log(
  tx: Tx,
  { id, workspaceId, name, version }: Template,
  actor: Actor,
  action: `template.${string}`,
  createdAt: number,
): Promise<void> {
  return recordActivity(tx, { workspaceId, actor }, createdAt, {
    action,
    subject: name,
    details: { id, version },
  })
}
