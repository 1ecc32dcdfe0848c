/** Routes of forms. Their public pages are in `form-pages.ts`. */
import Type from 'typebox'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'
import { keyActor, recordActivity } from '../../events/activity-store.js'
import { Done } from '../../http/answer/answer-fields.js'
import { pageQuery } from '../../http/pagination.js'
import { isLanguage, LANGUAGES } from '../../http/public/languages/language.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { findStaticList } from '../lists/static-list.js'
import { embedded } from './form-page.js'
import type { Form } from './form.js'
import { formUrl, type FormParts } from './form-parts.js'
import { FormChangesBody, FormSchema, formToApi, NewFormBody, readFormContent } from './form-schema.js'
import { findForm, insertForm, listForms, markFormDeleted, updateForm } from './form-store.js'

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
      query: Type.Object(pageQuery, { additionalProperties: false }),
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
            actor: keyActor(principal),
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
            actor: keyActor(principal),
            action: 'form.deleted',
            subject: form.name,
            createdAt: now,
          })
          return { success: true as const }
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
