/** Renders the fields of a schema as a nested list, for the API reference. Pure. */
import type { Parameter, Schema } from './described.js'
import { escapeHtml } from '../../core/escape-html.js'
import { code, inline } from './html.js'

interface Field {
  readonly name: string
  readonly isRequired?: boolean
  readonly description: string
  readonly schema: Schema
}

export function parameterList(parameters: readonly Parameter[]): string {
  return list(
    parameters.map(({ name, required, description, schema }) => ({
      name,
      isRequired: required,
      description: description ?? schema.description ?? '',
      schema,
    })),
    new Objects({}),
  )
}

/** The named objects of a document, and those that a page refers to: it shows each of them once. */
export class Objects {
  private readonly schemas: Readonly<Record<string, Schema>>
  private readonly used = new Set<string>()

  constructor(schemas: Readonly<Record<string, Schema>>) {
    this.schemas = schemas
  }

  find(name: string): Schema | undefined {
    return this.schemas[name]
  }

  /** A link to the object. */
  refer(name: string): string {
    this.used.add(name)
    return `<p><a class="object" href="#${objectId(name)}">Fields of ${escapeHtml(name)}</a></p>`
  }

  /** HTML of all objects referred to, and of those they refer to in turn. */
  html(): string {
    let shown = ''
    // Objects added while this runs are visited too.
    for (const name of this.used) {
      const id = objectId(name)
      const schema = this.find(name) ?? {}
      const description =
        schema.description === undefined ? '' : `<p class="note">${inline(schema.description)}</p>`
      shown +=
        `<section class="object" id="${id}"><h3>${escapeHtml(name)}</h3>${description}` +
        `${fieldList(schema, this, false)}</section>`
    }
    return shown
  }
}

function objectId(name: string): string {
  return `object-${encodeURIComponent(name)}`
}

/** @param isRequest marks required fields; in responses nearly all are present */
export function fieldList(schema: Schema, objects: Objects, isRequest: boolean): string {
  const name = refName(schema)
  const { properties, items, additionalProperties, anyOf, oneOf } =
    (name === undefined ? schema : objects.find(name)) ?? {}
  if (properties) {
    const { required = [] } = (name === undefined ? schema : objects.find(name)) ?? {}
    const fields = Object.entries(properties).map(([key, field]) => ({
      name: key,
      ...(isRequest ? { isRequired: required.includes(key) } : {}),
      description: field.description ?? '',
      schema: field,
    }))
    return list(fields, objects)
  }
  const inner = items ?? additionalProperties
  if (typeof inner === 'object') return innerFields(inner, objects, isRequest)
  return (anyOf ?? oneOf ?? []).map(one => innerFields(one, objects, isRequest)).join('')
}

function list(fields: readonly Field[], objects: Objects): string {
  if (fields.length === 0) return ''
  return `<ul class="fields">${fields.map(field => item(field, objects)).join('')}</ul>`
}

function item({ name, isRequired, description, schema }: Field, objects: Objects): string {
  const required = isRequired ? ' <b class="required">required</b>' : ''
  const values = choicesOf(schema)
  return (
    `<li><div class="field">${code(name)} <span class="kind">${kindOf(schema)}</span>${required}</div>` +
    (description === '' ? '' : `<p>${inline(description)}</p>`) +
    (values.length > 1
      ? `<p class="choices">${values.map(value => code(String(value))).join(' ')}</p>`
      : '') +
    innerFields(schema, objects, isRequired !== undefined) +
    '</li>'
  )
}

/** Fields of a value that is an object or has objects in it: a link if the object has a name, otherwise the list itself. */
function innerFields(schema: Schema, objects: Objects, isRequest: boolean): string {
  const name = refName(schema)
  if (name !== undefined) return objects.find(name) ? objects.refer(name) : ''
  if (schema.properties) {
    const fields = fieldList(schema, objects, isRequest)
    return fields === '' ? '' : `<details class="inner"><summary>Fields</summary>${fields}</details>`
  }
  const inner = schema.items ?? schema.additionalProperties
  if (typeof inner === 'object') return innerFields(inner, objects, isRequest)
  return (schema.anyOf ?? schema.oneOf ?? []).map(one => innerFields(one, objects, isRequest)).join('')
}

export function refName(schema: Schema): string | undefined {
  return schema.$ref?.split('/').pop()
}

/** The only valid values, if there are several. */
export function choicesOf({ enum: values, anyOf, oneOf, items }: Schema): readonly unknown[] {
  if (values) return values
  if (items) return choicesOf(items)
  const alternatives = (anyOf ?? oneOf ?? []).filter(({ type }) => type !== 'null')
  if (alternatives.length > 1 && alternatives.every(one => one.const !== undefined))
    return alternatives.map(one => one.const)
  const [only] = alternatives
  return alternatives.length === 1 && only ? choicesOf(only) : []
}

/** HTML. */
export function kindOf(schema: Schema): string {
  const name = refName(schema)
  if (name !== undefined) return escapeHtml(name)
  const alternatives = schema.anyOf ?? schema.oneOf
  if (alternatives) {
    const isText = choicesOf(schema).every(value => typeof value === 'string') && choicesOf(schema).length > 0
    const kinds =
      isText && alternatives.length > 1 ? alternatives.filter(one => one.const === undefined) : alternatives
    const words = [...(kinds.length < alternatives.length ? ['string'] : []), ...kinds.map(kindOf)]
    return [...new Set(words)].join(' or ')
  }
  if (schema.const !== undefined) return escapeHtml(JSON.stringify(schema.const))
  if (schema.type === 'array') return `list of ${kindOf(schema.items ?? {})}${boundsOf(schema)}`
  if (schema.enum) return 'string'
  return escapeHtml(schema.format ?? schema.type ?? 'any') + boundsOf(schema)
}

function boundsOf({ minimum, maximum, maxLength, maxItems, minItems }: Schema): string {
  if (maxLength !== undefined) return `, at most ${maxLength} characters`
  if (maxItems !== undefined) return minItems ? `, ${minItems} to ${maxItems}` : `, at most ${maxItems}`
  if (minimum !== undefined && maximum !== undefined) return `, ${minimum} to ${maximum}`
  if (maximum !== undefined) return `, at most ${maximum}`
  return minimum !== undefined && minimum !== 0 ? `, at least ${minimum}` : ''
}
