/** Renders the fields of a schema as table rows, for the API page. Pure. */
import type { Parameter, Schema } from './described.js'
import { escapeHtml } from '../../core/escape-html.js'
import { code, inline } from './html.js'

export interface Field {
  readonly name: string
  readonly isRequired: boolean
  /** HTML; object names are links. */
  readonly kind: string
  readonly description: string
}

export function fromParameter({ name, in: place, required, description, schema }: Parameter): Field {
  return {
    name,
    isRequired: required,
    kind: `${place}, ${kindOf(schema)}`,
    description: description ?? schema.description ?? '',
  }
}

/** Fields of unnamed objects are listed in place under dotted names, as in errors, to this depth. */
const MAX_DEPTH = 4

export function fieldsOf(schema: Schema, before = '', depth = 0): Field[] {
  if (depth > MAX_DEPTH) return []
  return Object.entries(schema.properties ?? {}).flatMap(([key, field]) => {
    const name = before + key
    const inner = field.anyOf?.find(one => one.properties ?? one.items) ?? field
    const [content, suffix] = inner.items ? [inner.items, '[].'] : [inner, '.']
    return [
      {
        name,
        isRequired: schema.required?.includes(key) ?? false,
        kind: kindOf(field),
        description: field.description ?? '',
      },
      ...fieldsOf(content, name + suffix, depth + 1),
    ]
  })
}

export function refName(schema: Schema): string | undefined {
  return schema.$ref?.split('/').pop()
}

export function kindOf(schema: Schema): string {
  const name = refName(schema)
  if (name !== undefined) return `<a href="#${escapeHtml(name)}">${escapeHtml(name)}</a>`
  const alternatives = schema.anyOf ?? schema.oneOf
  if (alternatives) return alternatives.map(kindOf).join(' or ')
  if (schema.const !== undefined) return escapeHtml(JSON.stringify(schema.const))
  if (schema.enum) return schema.enum.map(value => escapeHtml(JSON.stringify(value))).join(', ')
  const plain = escapeHtml(schema.format ?? schema.type ?? 'any')
  const kind = schema.type === 'array' ? `array of ${kindOf(schema.items ?? {})}` : plain
  const most = schema.maxLength ?? schema.maxItems ?? schema.maximum
  const unit = schema.maxLength !== undefined ? ' characters' : ''
  return most === undefined ? kind : `${kind}, at most ${most}${unit}`
}

export function fieldTable(fields: readonly Field[]): string {
  if (fields.length === 0) return ''
  const rows = fields.map(
    ({ name, isRequired, kind, description }) =>
      `<tr><td>${code(name)}</td><td>${kind}${isRequired ? '' : ', optional'}</td><td>${inline(description)}</td></tr>`,
  )
  return `<table>${rows.join('')}</table>`
}
