/** Templates in the REST API, their versions and previews. */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import type { Queries } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { DONE, Done } from '../../http/answer/answer-fields.js'
import { cursorQuery, nameSearch, PageQuery } from '../../http/pagination.js'
import { Tagged } from '../../http/preconditions.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { describeUses, forceQuery, type ReferenceParts } from '../../resource/references.js'
import { validText } from '../merge/merge-text.js'
import type { MergeContact } from '../merge/merge-values.js'
import { brandOf, type BrandSettings } from '../rendering/merging.js'
import { renderKey, type RenderQueue } from '../rendering/render-queue.js'
import type { MailRequest } from '../rendering/render-request.js'
import { contentWarnings } from './content-warnings.js'
import { readContent, readGivenStructure, requireParsableHtml } from './read-content.js'
import {
  ContentPreviewBody,
  ContentPreviewSchema,
  headToApi,
  NewTemplateBody,
  PreviewBody,
  PreviewSchema,
  TemplateChangesBody,
  TemplateHeadSchema,
  TemplateSchema,
  templateToApi,
  VersionHeadSchema,
  versionHeadToApi,
  VersionSchema,
  versionToApi,
} from './template-schema.js'
import { listTemplates, listVersions, type Template } from './template-store.js'
import {
  changeTemplate,
  createTemplate,
  deleteTemplate,
  getTemplate,
  getVersion,
  restoreVersion,
  templateEtag,
  undeleteTemplate,
} from './templates.js'

export interface TemplateParts extends Pick<Services, 'database' | 'clock' | 'newId'> {
  readonly renderQueue: RenderQueue
  /** @returns undefined if the workspace was removed */
  readonly findBrand: (db: Queries, workspaceId: string) => Promise<BrandSettings | undefined>
  /** @returns undefined for an unknown or deleted contact, or another workspace's */
  readonly findMergeContact: (
    db: Queries,
    workspaceId: string,
    id: string,
  ) => Promise<MergeContact | undefined>
}

const TemplateParams = Type.Object({ id: Type.String({ maxLength: 64 }) })
const VersionParams = Type.Object({
  id: Type.String({ maxLength: 64 }),
  n: Type.String({ maxLength: 64, description: 'Version number, from 1.' }),
})

/** html of 256 KB and its structure, at worst escaped sixfold in JSON. */
const BODY_LIMIT = 4 * 1_024 * 1_024
/** JSON values in a structure with many blocks. */
const BODY_VALUES = 50_000

export function templateRoutes(parts: TemplateParts & ReferenceParts): Route[] {
  return [...plainRoutes(parts), ...versionRoutes(parts), previewRoute(parts), contentPreviewRoute(parts)]
}

function plainRoutes(parts: TemplateParts & ReferenceParts): Route[] {
  const { database } = parts
  return [
    listRoute({
      method: 'GET',
      path: '/templates',
      access: 'templates:read',
      operationId: 'listTemplates',
      chapter: 'Templates',
      summary: 'List templates, newest first.',
      query: Type.Object({ ...cursorQuery, ...nameSearch }, { additionalProperties: false }),
      item: TemplateHeadSchema,
      async handle({ principal, query }, page) {
        const found = await listTemplates(database.slowReader, principal.workspaceId, query.search, page)
        return { ...found, items: found.items.map(head => headToApi(head, principal.isSandbox)) }
      },
    }),
    route({
      method: 'POST',
      path: '/templates',
      access: 'templates:write',
      operationId: 'createTemplate',
      hasEtag: true,
      chapter: 'Templates',
      summary: 'Create a template.',
      description:
        'With `json_structure` and no `html`, the html is rendered from the blocks. Invalid merge tags are rejected with line ' +
        'and column.',
      body: NewTemplateBody,
      bodyLimit: BODY_LIMIT,
      bodyValues: BODY_VALUES,
      example: { name: 'Welcome', html: '<p>Hello {{firstName|friend}}</p>' },
      response: TemplateSchema,
      status: 201,
      async handle({ principal, body }) {
        const template = await createTemplate(parts, principal, principal.actor, body)
        return tagged(template, principal.isSandbox)
      },
    }),
    route({
      method: 'GET',
      path: '/templates/:id',
      access: 'templates:read',
      operationId: 'getTemplate',
      hasEtag: true,
      chapter: 'Templates',
      summary: 'Get a template.',
      params: TemplateParams,
      response: TemplateSchema,
      errors: ['template_not_found', 'not_found'],
      async handle({ principal, params }) {
        const template = await getTemplate(database.reader, principal.workspaceId, params.id)
        return tagged(template, principal.isSandbox)
      },
    }),
    route({
      method: 'PATCH',
      path: '/templates/:id',
      access: 'templates:write',
      operationId: 'updateTemplate',
      hasEtag: true,
      checksEtag: true,
      chapter: 'Templates',
      summary: 'Update a template.',
      description:
        'Updates only the given fields and creates a new version; earlier versions are kept. `json_structure` without `html` ' +
        'renders the html again; `json_structure: null` removes the structure and keeps the html. A body without fields changes ' +
        'nothing and creates no version.',
      params: TemplateParams,
      body: TemplateChangesBody,
      bodyLimit: BODY_LIMIT,
      bodyValues: BODY_VALUES,
      response: TemplateSchema,
      errors: ['template_not_found', 'not_found'],
      async handle({ principal, params, body, precondition }) {
        const { actor } = principal
        const template = await changeTemplate(parts, principal, actor, params.id, body, precondition)
        return tagged(template, principal.isSandbox)
      },
    }),
    route({
      method: 'DELETE',
      path: '/templates/:id',
      access: 'templates:write',
      operationId: 'deleteTemplate',
      checksEtag: true,
      chapter: 'Templates',
      summary: 'Delete a template.',
      description: describeUses(
        'template',
        'an active automation, or a campaign that is scheduled, sending or paused,',
      ),
      params: TemplateParams,
      query: forceQuery,
      response: Done,
      errors: ['template_not_found', 'not_found', 'conflict'],
      async handle({ principal, params, query, precondition }) {
        const references = query.force === true ? undefined : parts.references
        await deleteTemplate(parts, principal, principal.actor, params.id, references, precondition)
        return DONE
      },
    }),
    route({
      method: 'POST',
      path: '/templates/:id/restore',
      access: 'templates:write',
      operationId: 'restoreTemplate',
      hasEtag: true,
      chapter: 'Templates',
      summary: 'Restore a deleted template.',
      description: 'Its versions are restored with it.',
      params: TemplateParams,
      response: TemplateSchema,
      errors: ['template_not_found', 'not_found'],
      async handle({ principal, params }) {
        const template = await undeleteTemplate(parts, principal, principal.actor, params.id)
        return tagged(template, principal.isSandbox)
      },
    }),
  ]
}

function versionRoutes(parts: TemplateParts): Route[] {
  const { database } = parts
  return [
    listRoute({
      method: 'GET',
      path: '/templates/:id/versions',
      access: 'templates:read',
      operationId: 'listTemplateVersions',
      chapter: 'Templates',
      summary: "List a template's versions, newest first.",
      params: TemplateParams,
      query: PageQuery,
      item: VersionHeadSchema,
      errors: ['template_not_found', 'not_found'],
      async handle({ principal, params }, page) {
        await getTemplate(database.reader, principal.workspaceId, params.id)
        const found = await listVersions(database.slowReader, params.id, page)
        return { ...found, items: found.items.map(versionHeadToApi) }
      },
    }),
    route({
      method: 'GET',
      path: '/templates/:id/versions/:n',
      access: 'templates:read',
      operationId: 'getTemplateVersion',
      chapter: 'Templates',
      summary: 'Get a version of a template.',
      params: VersionParams,
      response: VersionSchema,
      errors: ['template_not_found', 'not_found'],
      async handle({ principal, params: { id, n } }) {
        await getTemplate(database.reader, principal.workspaceId, id)
        return versionToApi(await getVersion(database.reader, id, readVersion(n)))
      },
    }),
    route({
      method: 'POST',
      path: '/templates/:id/versions/:n/restore',
      access: 'templates:write',
      operationId: 'restoreTemplateVersion',
      hasEtag: true,
      checksEtag: true,
      chapter: 'Templates',
      summary: 'Restore a version of a template.',
      params: VersionParams,
      response: TemplateSchema,
      errors: ['template_not_found', 'not_found'],
      async handle({ principal, params: { id, n }, precondition }) {
        const { actor } = principal
        const template = await restoreVersion(parts, principal, actor, id, readVersion(n), precondition)
        return tagged(template, principal.isSandbox)
      },
    }),
  ]
}

function tagged(template: Template, isSandbox: boolean): Tagged<Static<typeof TemplateSchema>> {
  return new Tagged(templateToApi(template, isSandbox), templateEtag(template))
}

/** @returns 0, which no version has, for an invalid number */
function readVersion(text: string): number {
  return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : 0
}

function previewRoute(parts: TemplateParts): Route {
  const { database } = parts
  return route({
    method: 'POST',
    path: '/templates/:id/preview',
    access: 'templates:read',
    operationId: 'previewTemplate',
    chapter: 'Templates',
    summary: 'Preview a template.',
    description:
      'Renders the template without sending it, with the values of a contact, with template_data, both or neither. ' +
      'Returns 503 `unavailable` if too many previews are being rendered or this one takes too long.',
    params: TemplateParams,
    body: PreviewBody,
    isReadOnly: true,
    response: PreviewSchema,
    errors: ['template_not_found', 'contact_not_found', 'workspace_not_found', 'not_found'],
    async handle({ principal: { workspaceId }, params, body }) {
      const { html } = await getTemplate(database.reader, workspaceId, params.id)
      return previewFor(parts, workspaceId, html, body)
    },
  })
}

function contentPreviewRoute(parts: TemplateParts): Route {
  const { renderQueue } = parts
  return route({
    method: 'POST',
    path: '/templates/preview',
    access: 'templates:read',
    operationId: 'previewTemplateContent',
    chapter: 'Templates',
    summary: 'Preview template content.',
    description:
      'Renders blocks or html that are not stored, as a template with this content would be sent, and reports what may go wrong ' +
      'with it in mail clients. Give `json_structure` or `html`; with both, `html` is rendered. Stores nothing.',
    body: ContentPreviewBody,
    bodyLimit: BODY_LIMIT,
    bodyValues: BODY_VALUES,
    example: { html: '<p>Hello {{firstName|friend}}</p>', subject: 'Welcome' },
    isReadOnly: true,
    response: ContentPreviewSchema,
    errors: ['contact_not_found', 'workspace_not_found'],
    async handle({ principal: { workspaceId }, body }) {
      const { html: written, json_structure, ...values } = body
      const given = { name: 'preview', html: written, json_structure }
      const structure = readGivenStructure(given)
      const { html } = readContent(given, structure)
      await requireParsableHtml(renderQueue, workspaceId, html, given, structure)
      const rendered = await previewFor(parts, workspaceId, html, values)
      return { ...rendered, size: Buffer.byteLength(rendered.html), warnings: contentWarnings(rendered.html) }
    },
  })
}

/** @throws AppError validation_error if the template cannot be rendered with the values; contact_not_found */
async function previewFor(
  { database, clock, renderQueue, findBrand, findMergeContact }: TemplateParts,
  workspaceId: string,
  html: string,
  { subject, template_data: data, contact_id: contactId }: Static<typeof PreviewBody>,
): Promise<Preview> {
  if (subject !== undefined) validText(subject, 'subject', 'subject')
  const contact =
    contactId === undefined ? undefined : await findMergeContact(database.reader, workspaceId, contactId)
  if (contactId !== undefined && !contact)
    throw new AppError('contact_not_found', 'no such contact', { path: 'contact_id' })
  const brand = await findBrand(database.reader, workspaceId)
  if (!brand) throw new AppError('workspace_not_found', 'the workspace was removed')
  return preview(renderQueue, { workspaceId, html, subject, data, contact }, brand, clock.now())
}

/** Dead links, since a preview belongs to no recipient. */
const NO_LINKS = { unsubscribeUrl: '#', preferencesUrl: '#', viewUrl: '#' }
/** How long a preview may be cached, and so the precision of its date tags. */
const SAME_MS = 60_000

interface Preview {
  readonly subject: string | null
  readonly html: string
  readonly text: string
}

interface PreviewOf {
  readonly workspaceId: string
  readonly html: string
  readonly subject: string | undefined
  readonly data: Readonly<Record<string, unknown>> | undefined
  readonly contact: MergeContact | undefined
}

/** @throws AppError validation_error if the template cannot be rendered with that data; unavailable from the render queue */
async function preview(
  renderQueue: RenderQueue,
  { workspaceId, html, subject, data, contact }: PreviewOf,
  settings: BrandSettings,
  now: number,
): Promise<Preview> {
  const request: MailRequest = {
    kind: 'mail',
    source: { subject: subject ?? '', html },
    merging: { brand: brandOf(settings), hasFooter: true },
    own: given({ data, contact }),
    recipient: '',
    date: now - (now % SAME_MS),
    links: NO_LINKS,
    isHtmlEnough: false,
  }
  const key = renderKey('preview', request)
  const result = await renderQueue.render({ key, workspaceId, load: () => Promise.resolve(request) })
  if (result.kind === 'refused')
    throw new AppError('validation_error', result.message, { path: 'template_data' })
  const { subject: line, html: rendered = '', text = '' } = result.kind === 'mail' ? result : { subject: '' }
  return { subject: subject === undefined ? null : line, html: rendered, text }
}
