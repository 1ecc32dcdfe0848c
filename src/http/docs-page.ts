/**
 * The API's description as one page of HTML: no script, no font, nothing fetched, readable without a network.
 *
 * Made once from the OpenAPI document by the route `GET /docs`. Every text of the document is escaped; the one style sheet is
 * allowed by its digest (CSP Level 3) and nothing else is.
 */
import { createHash } from 'node:crypto'

/** The parts of the document that are shown. */
interface Document {
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tags: readonly string[]
  readonly parameters: readonly Parameter[]
  readonly requestBody?: { readonly content: Contents }
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content: Contents }>>
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required: boolean
  readonly description?: string
  readonly schema: Schema
}

type Contents = Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>

interface Schema {
  readonly type?: string
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly maxItems?: number
}

const STYLE = `
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1,h2{line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid #8886}
code,pre{font:.9em/1.45 ui-monospace,monospace}
pre{overflow:auto;padding:.7rem;border:1px solid #8886;border-radius:.3rem}
details{border:1px solid #8886;border-radius:.3rem;margin:.5rem 0;padding:.4rem .8rem}
summary{cursor:pointer}summary b{display:inline-block;min-width:4.5rem}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.25rem .6rem .25rem 0;border-top:1px solid #8883}
nav a{margin-right:1rem}
`

export const DOCS_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
}

/** @param described an OpenAPI document as `openapi.ts` makes it */
export function docsPage(described: object): string {
  const { info, paths } = JSON.parse(JSON.stringify(described)) as Document
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  const tags = [...new Set(operations.flatMap(({ operation }) => operation.tags))].sort()
  const sections = tags.map(tag => {
    const ofTag = operations.filter(({ operation }) => operation.tags.includes(tag))
    const shown = ofTag.map(({ path, method, operation }) => showOperation(method, path, operation))
    return `<section id="${escape(tag)}"><h2>${escape(tag)}</h2>${shown.join('')}</section>`
  })
  const links = tags.map(tag => `<a href="#${escape(tag)}">${escape(tag)}</a>`)
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escape(info.title)} API ${escape(info.version)}</title><style>${STYLE}</style></head><body>
<h1>${escape(info.title)} API <small>${escape(info.version)}</small></h1>
${prose(info.description)}<p>For programs: <a href="/openapi.json">openapi.json</a> (OpenAPI 3.1).</p>
<nav>${links.join(' ')}</nav>
${sections.join('\n')}
</body></html>
`
}

function showOperation(method: string, path: string, operation: Operation): string {
  const { operationId, summary, description, parameters, requestBody, responses } = operation
  return [
    `<details id="${escape(operationId)}"><summary><b>${method.toUpperCase()}</b> <code>${escape(path)}</code> `,
    `${inline(summary)}</summary>`,
    prose(description),
    parameters.length > 0 ? `<h4>Parameters</h4>${fieldTable(parameters.map(fromParameter))}` : '',
    requestBody ? `<h4>Request body</h4>${showContents(requestBody.content)}` : '',
    ...Object.entries(responses).map(([status, { description, content }]) =>
      status.startsWith('2')
        ? `<h4>${status}</h4>${showContents(content)}`
        : `<p><b>${status}</b> ${inline(description)}</p>`,
    ),
    '</details>\n',
  ].join('')
}

function showContents(contents: Contents): string {
  return Object.entries(contents)
    .map(([type, { schema, example }]) => {
      const json = example === undefined ? '' : `<pre>${escape(JSON.stringify(example, null, 2))}</pre>`
      return type === 'application/json' ? fieldTable(fieldsOf(schema)) + json : `<p>${escape(type)}</p>`
    })
    .join('')
}

interface Field {
  readonly name: string
  readonly isRequired: boolean
  readonly kind: string
  readonly description: string
}

function fromParameter({ name, in: place, required, description, schema }: Parameter): Field {
  return {
    name,
    isRequired: required,
    kind: `${place}, ${kindOf(schema)}`,
    description: description ?? schema.description ?? '',
  }
}

/** Objects within objects are told of by dotted names, as errors name them. */
const DEEPEST = 4

function fieldsOf(schema: Schema, before = '', depth = 0): Field[] {
  if (depth > DEEPEST) return []
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

function kindOf(schema: Schema): string {
  if (schema.anyOf) return schema.anyOf.map(kindOf).join(' or ')
  if (schema.enum) return schema.enum.map(value => JSON.stringify(value)).join(', ')
  const kind = schema.type === 'array' ? `array of ${kindOf(schema.items ?? {})}` : (schema.type ?? 'any')
  const most = schema.maxLength ?? schema.maxItems ?? schema.maximum
  const unit = schema.maxLength !== undefined ? ' characters' : ''
  return most === undefined ? kind : `${kind}, at most ${most}${unit}`
}

function fieldTable(fields: readonly Field[]): string {
  if (fields.length === 0) return ''
  const rows = fields.map(
    ({ name, isRequired, kind, description }) =>
      `<tr><td><code>${escape(name)}</code></td><td>${escape(kind)}${isRequired ? '' : ', optional'}</td>` +
      `<td>${inline(description)}</td></tr>`,
  )
  return `<table>${rows.join('')}</table>`
}

function prose(text: string): string {
  return text
    .split('\n\n')
    .map(paragraph => `<p>${inline(paragraph)}</p>`)
    .join('')
}

/** Between backticks stands code. */
function inline(text: string): string {
  return text
    .split('`')
    .map((part, index) => (index % 2 === 1 ? `<code>${escape(part)}</code>` : escape(part)))
    .join('')
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, character => ENTITIES[character] ?? '')
}
