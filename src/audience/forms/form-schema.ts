/** Bodies and answers of the form routes, and the checks that a schema cannot express. */
import Type, { type Static } from 'typebox'
import { given } from '../../core/given.js'
import { readName } from '../../core/names.js'
import { isoTime } from '../../core/moments.js'
import { Id, Moment, TextOrNull } from '../../http/answer/answer-fields.js'
import { checkText, refusal } from '../checks.js'
import { HONEYPOT } from './form-html.js'
import { FIELD_TYPES, isNamePart, type Form, type FormContent, type FormField } from './form.js'

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

const counts = { submitted: Type.Integer(), completed: Type.Integer() }

export const SubmissionsSchema = Type.Object(
  {
    ...counts,
    days: Type.Array(
      Type.Object({ date: Type.String({ format: 'date' }), ...counts }, { title: 'FormSubmissionDay' }),
    ),
  },
  { title: 'FormSubmissions' },
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
    ...(name === undefined ? {} : { name: readName(name) }),
    ...given({ title, description, listIds }),
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
  if (!/^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/.test(url.hostname))
    throw refusal('redirect_url', 'redirect_url has an invalid host name')
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
