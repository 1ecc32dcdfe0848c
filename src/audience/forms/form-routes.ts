/** REST routes of forms. */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { isoTime } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { snapshot } from '../../db/snapshot.js'
import { recordActivity } from '../../events/activity-store.js'
import { settingsChanges } from '../../events/settings-changes.js'
import { DONE, Done } from '../../http/answer/answer-fields.js'
import { PageQuery } from '../../http/pagination.js'
import { etagOf, Tagged } from '../../http/preconditions.js'
import { isLanguage, LANGUAGES } from '../../http/public/languages/language.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { restoreDeleted } from '../deleted-store.js'
import { findStaticList } from '../lists/lists.js'
import { embedded } from './form-html.js'
import { dailySubmissions, totalSubmissions } from './form-count-store.js'
import {
  FormChangesBody,
  FormSchema,
  formToApi,
  NewFormBody,
  readFormContent,
  SubmissionsSchema,
} from './form-schema.js'
import { findForm, insertForm, listForms, markFormDeleted, updateForm } from './form-store.js'
import { formUrl, type Form, type FormParts } from './form.js'

const Params = Type.Object({ id: Type.String() })
const CHAPTER = { chapter: 'Forms' }

export function formRoutes(parts: FormParts): Route[] {
  return [...readingRoutes(parts), ...writingRoutes(parts)]
}

function readingRoutes({ database, clock, publicUrl }: FormParts): Route[] {
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
        const found = await listForms(database.slowReader, workspaceId, page)
        return {
          ...found,
          items: found.items.map(form => formToApi(form, isSandbox, formUrl(publicUrl, form.id))),
        }
      },
    }),
    route({
      ...CHAPTER,
      method: 'GET',
      path: '/forms/:id',
      access: 'lists:read',
      operationId: 'getForm',
      hasEtag: true,
      summary: 'Get a form.',
      params: Params,
      response: FormSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId, isSandbox }, params }) {
        return tagged(await requireForm(database.reader, workspaceId, params.id), isSandbox, publicUrl)
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
    route({
      ...CHAPTER,
      method: 'GET',
      path: '/forms/:id/submissions',
      access: 'lists:read',
      operationId: 'getFormSubmissions',
      summary: "Count a form's submissions.",
      description:
        "In total, and for each of the last `days` days of the workspace's time zone, oldest first. `submitted` counts accepted submissions; " +
        '`completed` those that took effect: at once or, with `double_opt_in`, when they were confirmed.',
      params: Params,
      query: Type.Object(
        {
          days: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 366, description: 'Days up to today. Default 30.' }),
          ),
        },
        { additionalProperties: false },
      ),
      response: SubmissionsSchema,
      errors: ['not_found'],
      handle: ({ principal: { workspaceId }, params, query: { days = 30 } }) =>
        snapshot(database.reader, async db => {
          const { id } = await requireForm(db, workspaceId, params.id)
          const daily = await dailySubmissions(db, { id, workspaceId }, clock.now(), days)
          return {
            ...(await totalSubmissions(db, id)),
            days: daily.map(({ day, ...counts }) => ({ date: isoTime(day).slice(0, 10), ...counts })),
          }
        }),
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
      hasEtag: true,
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
          await recordActivity(tx, principal, now, { action: 'form.created', subject: form.name })
        })
        return tagged(form, isSandbox, publicUrl)
      },
    }),
    route({
      ...CHAPTER,
      method: 'PATCH',
      path: '/forms/:id',
      access: 'lists:write',
      operationId: 'updateForm',
      hasEtag: true,
      checksEtag: true,
      summary: 'Update a form.',
      description: 'Only the given fields change; null clears title, description and redirect_url.',
      params: Params,
      body: FormChangesBody,
      example: { fields: EXAMPLE_FIELDS },
      response: FormSchema,
      errors: ['not_found', 'conflict'],
      async handle({ principal, params, body, precondition }) {
        const { workspaceId, isSandbox, actor } = principal
        // Not found takes precedence over validation, as everywhere.
        await requireForm(database.reader, workspaceId, params.id)
        const content = readFormContent(body)
        const lists = body.list_ids && {
          listIds: await checkLists(database.reader, workspaceId, body.list_ids),
        }
        const form = await database.write(async tx => {
          const before = await requireForm(tx.db, workspaceId, params.id)
          precondition?.check(formEtag(before))
          const after: Form = { ...before, ...content, ...lists, updatedAt: clock.now() }
          await updateForm(tx.db, after)
          const shown = (one: Form) => formToApi(one, isSandbox, '')
          await recordActivity(tx, { workspaceId, actor }, after.updatedAt, {
            action: 'form.changed',
            subject: after.name,
            details: { id: after.id },
            changes: settingsChanges(shown(before), shown(after), ['updated_at']),
          })
          return after
        })
        return tagged(form, isSandbox, publicUrl)
      },
    }),
    route({
      ...CHAPTER,
      method: 'DELETE',
      path: '/forms/:id',
      access: 'lists:write',
      operationId: 'deleteForm',
      checksEtag: true,
      summary: 'Delete a form.',
      description: 'Its page says that the form is closed. It can be restored for 30 days.',
      params: Params,
      response: Done,
      errors: ['not_found'],
      handle: ({ principal, params, precondition }) =>
        database.write(async tx => {
          const { workspaceId } = principal
          const form = await requireForm(tx.db, workspaceId, params.id)
          precondition?.check(formEtag(form))
          const now = clock.now()
          await markFormDeleted(tx.db, form.id, now)
          await recordActivity(tx, principal, now, {
            action: 'form.deleted',
            subject: form.name,
            details: { id: form.id },
          })
          return DONE
        }),
    }),
    route({
      ...CHAPTER,
      method: 'POST',
      path: '/forms/:id/restore',
      access: 'lists:write',
      operationId: 'restoreForm',
      hasEtag: true,
      summary: 'Restore a deleted form.',
      description: 'Its page takes submissions again. Possible for 30 days after it was deleted.',
      params: Params,
      response: FormSchema,
      errors: ['not_found'],
      async handle({ principal, params }) {
        const { workspaceId, isSandbox } = principal
        const form = await database.write(async tx => {
          const now = clock.now()
          await restoreDeleted(tx.db, 'forms', workspaceId, params.id, now)
          const restored = await requireForm(tx.db, workspaceId, params.id)
          await recordActivity(tx, principal, now, {
            action: 'form.restored',
            subject: restored.name,
            details: { id: restored.id },
          })
          return restored
        })
        return tagged(form, isSandbox, publicUrl)
      },
    }),
  ]
}

function formEtag(form: Form): string {
  const { id, name, title, description, listIds, fields, redirectUrl, doubleOptIn, updatedAt } = form
  return etagOf(id, name, title, description, listIds, fields, redirectUrl, doubleOptIn, updatedAt)
}

function tagged(form: Form, isSandbox: boolean, publicUrl: string): Tagged<Static<typeof FormSchema>> {
  return new Tagged(formToApi(form, isSandbox, formUrl(publicUrl, form.id)), formEtag(form))
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
