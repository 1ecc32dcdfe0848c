/** REST routes of forms, with their schemas and the checks that a schema cannot express. */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { isoTime } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { recordActivity } from '../../events/activity-store.js'
import { DONE, Done, Id, Moment, TextOrNull } from '../../http/answer/answer-fields.js'
import { PageQuery } from '../../http/pagination.js'
import { isLanguage, LANGUAGES } from '../../http/public/languages/language.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { checkName, checkText, refusal } from '../checks.js'
import { findStaticList } from '../lists/lists.js'
import { embedded, HONEYPOT } from './form-html.js'
import { findForm, insertForm, listForms, markFormDeleted, updateForm } from './form-store.js'
import {
  FIELD_TYPES,
  formUrl,
  isNamePart,
  type Form,
  type FormContent,
  type FormField,
  type FormParts,
} from './form.js'

const Params = Type.Object({ id: Type.String() })
const CHAPTER = { chapter: 'Forms' }

export function formRoutes(parts: FormParts): Route[] {
  return [...readingRoutes(parts), ...writingRoutes(parts)]
}

function readingRoutes({ database, publicUrl }: FormParts): Route[] {
  return [
    listRoute({
      ...CHAPTER,
      method: 'GET',
      path: '/forms',
      access: 'lists:read',
      operationId: 'listForms',
      summary: 'List forms, newest first.',
      query: PageQuery,
      item: FormSchema,
      async handle({ principal: { workspaceId, isSandbox } }, page) {
        const { items, total } = await listForms(database.slowReader, workspaceId, page)
        return { items: items.map(form => formToApi(form, isSandbox, formUrl(publicUrl, form.id))), total }
      },
    }),
    route({
      ...CHAPTER,
      method: 'GET',
      path: '/forms/:id',
      access: 'lists:read',
      operationId: 'getForm',
      summary: 'Get a form.',
      params: Params,
      response: FormSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId, isSandbox }, params }) {
        const form = await requireForm(database.reader, workspaceId, params.id)
        return formToApi(form, isSandbox, formUrl(publicUrl, form.id))
      },
    }),
    route({
      ...CHAPTER,
      method: 'GET',
      path: '/forms/:id/embed',
      access: 'lists:read',
      operationId: 'getFormEmbed',
      summary: "Get a form's embed code.",
      description:
        'Plain HTML without scripts or styles. It posts to `url`. A page can also post JSON there from any origin, ' +
        '`{"email": ..., ...}` with the field names as keys, and gets JSON back. ' +
        'The hidden field `leave_blank` must stay empty; if it is filled in, nothing is stored and the visitor is asked to submit again.',
      params: Params,
      query: Type.Object(
        {
          language: Type.Optional(
            Type.Enum(Object.keys(LANGUAGES), {
              description: 'Language of the built-in texts; default `en`.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
      response: Type.Object({ url: Type.String(), html: Type.String() }, { title: 'FormEmbed' }),
      errors: ['not_found'],
      async handle({ principal: { workspaceId }, params, query: { language = 'en' } }) {
        const form = await requireForm(database.reader, workspaceId, params.id)
        const url = formUrl(publicUrl, form.id)
        const texts = LANGUAGES[isLanguage(language) ? language : 'en']
        return { url, html: embedded({ form, texts }, url) }
      },
    }),
  ]
}

/** With every property, so that the example response is complete. */
const EXAMPLE_FIELDS = [
  { name: 'plan', label: 'Plan', type: 'select', required: true, options: ['Basic', 'Pro'] },
]

function writingRoutes({ database, clock, newId, publicUrl }: FormParts): Route[] {
  return [
    route({
      ...CHAPTER,
      method: 'POST',
      path: '/forms',
      access: 'lists:write',
      operationId: 'createForm',
      summary: 'Create a form.',
      description:
        'The form is published at `url`. If the form or one of its lists has `double_opt_in`, nothing changes until the owner of the mailbox ' +
        'confirms by an email from the workspace’s default sender; confirming also revokes an earlier unsubscribe. Otherwise existing ' +
        'contact data is never overwritten, and unsubscribed contacts stay unsubscribed.',
      body: NewFormBody,
      example: {
        name: 'Newsletter',
        fields: EXAMPLE_FIELDS,
        double_opt_in: true,
      },
      response: FormSchema,
      status: 201,
      errors: ['not_found', 'conflict'],
      async handle({ principal, body }) {
        const { workspaceId, isSandbox } = principal
        const { name = body.name, ...content } = readFormContent(body)
        const now = clock.now()
        const form: Form = {
          title: null,
          description: null,
          fields: [],
          redirectUrl: null,
          doubleOptIn: false,
          name,
          ...content,
          listIds: await checkLists(database.reader, workspaceId, body.list_ids ?? []),
          id: newId(),
          workspaceId,
          createdAt: now,
          updatedAt: now,
        }
        await database.write(async tx => {
          await insertForm(tx.db, form)
          await recordActivity(tx, {
            workspaceId,
            actor: principal.actor,
            action: 'form.created',
            subject: form.name,
            createdAt: now,
          })
        })
        return formToApi(form, isSandbox, formUrl(publicUrl, form.id))
      },
    }),
    route({
      ...CHAPTER,
      method: 'PATCH',
      path: '/forms/:id',
      access: 'lists:write',
      operationId: 'updateForm',
      summary: 'Update a form.',
      description: 'Only the given fields change; null clears title, description and redirect_url.',
      params: Params,
      body: FormChangesBody,
      example: { fields: EXAMPLE_FIELDS },
      response: FormSchema,
      errors: ['not_found', 'conflict'],
      async handle({ principal: { workspaceId, isSandbox }, params, body }) {
        // Not found takes precedence over validation, as everywhere.
        await requireForm(database.reader, workspaceId, params.id)
        const content = readFormContent(body)
        const lists = body.list_ids && {
          listIds: await checkLists(database.reader, workspaceId, body.list_ids),
        }
        const form = await database.write(async tx => {
          const before = await requireForm(tx.db, workspaceId, params.id)
          const after: Form = { ...before, ...content, ...lists, updatedAt: clock.now() }
          await updateForm(tx.db, after)
          return after
        })
        return formToApi(form, isSandbox, formUrl(publicUrl, form.id))
      },
    }),
    route({
      ...CHAPTER,
      method: 'DELETE',
      path: '/forms/:id',
      access: 'lists:write',
      operationId: 'deleteForm',
      summary: 'Permanently close a form.',
      params: Params,
      response: Done,
      errors: ['not_found'],
      handle: ({ principal, params }) =>
        database.write(async tx => {
          const { workspaceId } = principal
          const form = await requireForm(tx.db, workspaceId, params.id)
          const now = clock.now()
          await markFormDeleted(tx.db, form.id, now)
          await recordActivity(tx, {
            workspaceId,
            actor: principal.actor,
            action: 'form.deleted',
            subject: form.name,
            createdAt: now,
          })
          return DONE
        }),
    }),
  ]
}

/** @throws AppError not_found */
async function requireForm(db: Queries, workspaceId: string, id: string): Promise<Form> {
  const form = isUuid(id) ? await findForm(db, workspaceId, id.toLowerCase()) : undefined
  if (!form) throw new AppError('not_found', 'no such form')
  return form
}

/** @returns lower case, without repetitions @throws AppError not_found, conflict for a dynamic list */
async function checkLists(db: Queries, workspaceId: string, ids: readonly string[]): Promise<string[]> {
  const found = new Set<string>()
  for (const [at, id] of ids.entries())
    found.add((await findStaticList(db, workspaceId, id, `list_ids.${at}`)).id)
  return [...found]
}

const Name = Type.String({ minLength: 1, maxLength: 200 })
const MAX_FIELDS = 20
const MAX_LISTS = 20

const Field = Type.Object(
  {
    name: Type.String({
      pattern: '^[A-Za-z][A-Za-z0-9_.-]{0,99}$',
      description:
        '`first_name`, `last_name` or an attribute name, optionally prefixed (`attributes.company`).',
      examples: ['first_name'],
    }),
    label: Type.String({ minLength: 1, maxLength: 200 }),
    type: Type.Optional(Type.Enum([...FIELD_TYPES], { description: 'Default `text`.' })),
    required: Type.Optional(Type.Boolean()),
    options: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
        minItems: 1,
        maxItems: 100,
        description: 'Choices of a `select`; not allowed for other types.',
      }),
    ),
  },
  { additionalProperties: false, title: 'NewFormField' },
)

const content = {
  title: Type.Optional(
    Type.Union([Type.String({ maxLength: 200 }), Type.Null()], {
      description: 'Heading shown to visitors; defaults to the name.',
    }),
  ),
  description: Type.Optional(Type.Union([Type.String({ maxLength: 1_000 }), Type.Null()])),
  list_ids: Type.Optional(
    Type.Array(Type.String({ maxLength: 64 }), {
      maxItems: MAX_LISTS,
      description: 'Static lists that subscribers are added to, at most 20.',
    }),
  ),
  fields: Type.Optional(
    Type.Array(Field, {
      maxItems: MAX_FIELDS,
      description: 'Fields besides email, which every form includes; at most 20.',
    }),
  ),
  redirect_url: Type.Optional(
    Type.Union([Type.String({ maxLength: 2_048 }), Type.Null()], {
      description: 'Browsers are redirected here after submitting; null shows the built-in page.',
    }),
  ),
  double_opt_in: Type.Optional(
    Type.Boolean({
      description:
        'Submissions take effect after confirmation by email. Also applies if one of the lists requires it.',
    }),
  ),
}

export const NewFormBody = Type.Object(
  { name: Name, ...content },
  { additionalProperties: false, title: 'NewForm' },
)

export const FormChangesBody = Type.Object(
  { name: Type.Optional(Name), ...content },
  { additionalProperties: false, title: 'FormChanges' },
)

export const FormSchema = Type.Object(
  {
    id: Id(),
    name: Type.String(),
    title: TextOrNull(),
    description: TextOrNull(),
    list_ids: Type.Array(Id()),
    fields: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          label: Type.String(),
          type: Type.Enum([...FIELD_TYPES]),
          required: Type.Boolean(),
          options: Type.Array(Type.String()),
        },
        { title: 'FormField' },
      ),
    ),
    redirect_url: TextOrNull(),
    double_opt_in: Type.Boolean(),
    url: Type.String({ description: 'Public page of the form; submissions are posted to the same URL.' }),
    is_sandbox: Type.Boolean(),
    created_at: Moment(),
    updated_at: Moment(),
  },
  { title: 'Form' },
)

/** Names with another meaning in a submission. */
const RESERVED: ReadonlySet<string> = new Set(['email', HONEYPOT])

type Said = Static<typeof FormChangesBody>

/** Reads the fields a request sets; the caller checks the lists. @throws AppError validation_error */
export function readFormContent(body: Said): Partial<FormContent> {
  const { name, list_ids: listIds, fields, redirect_url: redirectUrl, double_opt_in: doubleOptIn } = body
  const title = checkText('title', body.title)
  const description = checkText('description', body.description)
  return {
    ...(name === undefined ? {} : { name: checkName(name) }),
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    ...(listIds === undefined ? {} : { listIds }),
    ...(fields === undefined ? {} : { fields: readFields(fields) }),
    ...(redirectUrl === undefined ? {} : { redirectUrl: redirectUrl === null ? null : readUrl(redirectUrl) }),
    ...(doubleOptIn === undefined ? {} : { doubleOptIn }),
  }
}

function readFields(fields: NonNullable<Said['fields']>): FormField[] {
  const names = new Set<string>()
  return fields.map(({ name: written, label, type = 'text', required = false, options }, at) => {
    const name = written.replace(/^attributes\./, '')
    const path = `fields.${at}`
    if (RESERVED.has(name))
      throw refusal(
        `${path}.name`,
        name === 'email' ? 'every form already includes email' : `${name} is reserved`,
      )
    if (name === '' || names.has(name)) throw refusal(`${path}.name`, `duplicate field ${written}`)
    names.add(name)
    if ((type === 'select') !== (options !== undefined))
      throw refusal(`${path}.options`, 'a select has options, and nothing else has')
    if (isNamePart(name) && type !== 'text') throw refusal(`${path}.type`, `${name} must be of type text`)
    const text = checkText(`${path}.label`, label)
    if (typeof text !== 'string') throw refusal(`${path}.label`, 'label must not be empty')
    return { name, label: text, type, required, options: options ?? [] }
  })
}

function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (!url || !isWeb || url.username !== '' || url.password !== '')
    throw refusal('redirect_url', 'redirect_url must be an http or https URL without credentials')
  return url.href
}

export function formToApi(form: Form, isSandbox: boolean, url: string): Static<typeof FormSchema> {
  return {
    id: form.id,
    name: form.name,
    title: form.title,
    description: form.description,
    list_ids: [...form.listIds],
    fields: form.fields.map(field => ({ ...field, options: [...field.options] })),
    redirect_url: form.redirectUrl,
    double_opt_in: form.doubleOptIn,
    url,
    is_sandbox: isSandbox,
    created_at: isoTime(form.createdAt),
    updated_at: isoTime(form.updatedAt),
  }
}
