import Type, { type Static } from 'typebox'
import { isoTime } from '../../core/moments.js'
import { Id, Moment, TextOrNull } from '../../http/answer/answer-fields.js'
import { StructureSchema } from '../blocks/structure.js'
import { CONTENT_WARNINGS } from './content-warnings.js'
import type { Template, TemplateHead, TemplateVersion, VersionHead } from './template-store.js'

const Name = Type.String({ minLength: 1, maxLength: 200 })
const Description = Type.Union([Type.String({ maxLength: 1_000 }), Type.Null()])
const Html = Type.String({ description: 'With merge tags; at most 256 KB in UTF-8.' })
/** Blocks are validated separately (`blocks/read-structure.ts`), so that errors name the block. */
const Structure = Type.Unsafe<Readonly<Record<string, unknown>>>(Type.Object({}, { shown: StructureSchema }))

export const NewTemplateBody = Type.Object(
  {
    name: Name,
    html: Type.Optional(Html),
    description: Type.Optional(Description),
    json_structure: Type.Optional(Structure),
  },
  { additionalProperties: false, title: 'NewTemplate' },
)

export const TemplateChangesBody = Type.Object(
  {
    name: Type.Optional(Name),
    html: Type.Optional(Html),
    description: Type.Optional(Description),
    json_structure: Type.Optional(Type.Union([Structure, Type.Null()])),
  },
  { additionalProperties: false, title: 'TemplateChanges' },
)

const previewFields = {
  contact_id: Type.Optional(
    Type.String({ maxLength: 64, description: 'Contact whose values fill in the merge tags.' }),
  ),
  template_data: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  subject: Type.Optional(
    Type.String({
      maxLength: 998,
      description: 'May contain merge tags. Templates do not store a subject.',
    }),
  ),
}

export const PreviewBody = Type.Object(previewFields, {
  additionalProperties: false,
  title: 'TemplatePreviewRequest',
})

export const ContentPreviewBody = Type.Object(
  { html: Type.Optional(Html), json_structure: Type.Optional(Structure), ...previewFields },
  { additionalProperties: false, title: 'TemplateContentPreviewRequest' },
)

const headFields = {
  id: Id(),
  name: Type.String(),
  description: TextOrNull(),
  version: Type.Integer({ description: 'From 1; every update increments it.' }),
  is_sandbox: Type.Boolean(),
  created_at: Moment(),
  updated_at: Moment(),
}

const contentFields = {
  html: Type.String(),
  json_structure: Type.Union([Type.Object({}, { shown: StructureSchema }), Type.Null()], {
    description: 'As submitted.',
  }),
}

export const TemplateHeadSchema = Type.Object(headFields, { title: 'TemplateHead' })
export const TemplateSchema = Type.Object({ ...headFields, ...contentFields }, { title: 'Template' })

const versionFields = {
  version: Type.Integer(),
  name: Type.String(),
  description: TextOrNull(),
  created_at: Moment(),
}
export const VersionHeadSchema = Type.Object(versionFields, { title: 'TemplateVersionHead' })
export const VersionSchema = Type.Object({ ...versionFields, ...contentFields }, { title: 'TemplateVersion' })

const previewResult = {
  subject: TextOrNull({ description: 'The rendered subject; null if the request has none.' }),
  html: Type.String({
    description: 'With the compliance footer; its unsubscribe, preference and view links are inactive.',
  }),
  text: Type.String({ description: 'The plain-text alternative generated from the html.' }),
}

export const PreviewSchema = Type.Object(previewResult, { title: 'TemplatePreview' })

export const ContentPreviewSchema = Type.Object(
  {
    ...previewResult,
    size: Type.Integer({ description: 'Of the html, octets of UTF-8.' }),
    warnings: Type.Array(
      Type.Object({
        code: Type.Enum(CONTENT_WARNINGS, {
          description:
            '`clipped`: Gmail cuts the mail off, since its html exceeds 102 KB. `image_without_alt`: images without an `alt` ' +
            'attribute. `link_without_url`: links that lead nowhere.',
        }),
        count: Type.Integer({ description: 'Occurrences.' }),
      }),
    ),
  },
  { title: 'TemplateContentPreview' },
)

export function headToApi(head: TemplateHead, isSandbox: boolean): Static<typeof TemplateHeadSchema> {
  const { id, name, description, version, createdAt, updatedAt } = head
  const moments = { created_at: isoTime(createdAt), updated_at: isoTime(updatedAt) }
  return { id, name, description, version, is_sandbox: isSandbox, ...moments }
}

export function templateToApi(template: Template, isSandbox: boolean): Static<typeof TemplateSchema> {
  return { ...headToApi(template, isSandbox), ...contentToApi(template) }
}

export function versionHeadToApi(head: VersionHead): Static<typeof VersionHeadSchema> {
  const { version, name, description, createdAt } = head
  return { version, name, description, created_at: isoTime(createdAt) }
}

export function versionToApi(version: TemplateVersion): Static<typeof VersionSchema> {
  return { ...versionHeadToApi(version), ...contentToApi(version) }
}

function contentToApi({ html, structure }: { html: string; structure: string | null }) {
  return { html, json_structure: structure === null ? null : (JSON.parse(structure) as object) }
}
