/**
 * The API description as a single HTML page without scripts or external resources.
 *
 * Built once from the OpenAPI document for `GET /docs`. All texts are escaped; the content security policy allows only the one style
 * sheet, by its digest (CSP Level 3).
 */
import { createHash } from 'node:crypto'
import { curlOf } from './curl.js'
import type { Described, Operation, Schema } from './described.js'
import { escapeHtml } from '../../core/escape-html.js'
import { code, inline, prose } from './html.js'
import { fieldsOf, fieldTable, fromParameter, kindOf, refName } from './field-table.js'

const STYLE = `
:root{color-scheme:light dark}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;overflow-wrap:break-word}
h1,h2,h3,h4{line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid #8886}h4{margin:1.2rem 0 .4rem}
code,pre{font:.9em/1.45 ui-monospace,monospace}
pre{overflow:auto;padding:.7rem;border:1px solid #8886;border-radius:.3rem}
details{border:1px solid #8886;border-radius:.3rem;margin:.5rem 0;padding:.4rem .8rem}
summary{cursor:pointer}summary b{display:inline-block;min-width:4.5rem}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.25rem .6rem .25rem 0;border-top:1px solid #8883}
nav a{display:inline-block;padding:.2rem 1rem .2rem 0}
@media(max-width:40rem){
body{margin:1rem auto}
table,tbody,tr,td{display:block}td{border:0;padding:0}tr{border-top:1px solid #8883;padding:.4rem 0}
}
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

/** @param described an OpenAPI document from `document.ts` */
export function docsPage(described: object): string {
  const { info, servers, tags, paths, components } = JSON.parse(JSON.stringify(described)) as Described
  const base = servers[0]?.url ?? ''
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  const sections = tags.map(({ name, description }) => {
    const ofTag = operations.filter(({ operation }) => operation.tags.includes(name))
    const shown = ofTag.map(({ path, method, operation }) => showOperation(base, method, path, operation))
    return `<section id="${escapeHtml(name)}"><h2>${escapeHtml(name)}</h2>${prose(description)}${shown.join('')}</section>`
  })
  const links = [...tags.map(({ name }) => name), 'Objects'].map(
    name => `<a href="#${escapeHtml(name)}">${escapeHtml(name)}</a>`,
  )
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(info.title)} API ${escapeHtml(info.version)}</title><style>${STYLE}</style></head><body>
<h1>${escapeHtml(info.title)} API <small>${escapeHtml(info.version)}</small></h1>
${prose(info.description)}<p>Base URL: ${code(base)}. Machine-readable: <a href="/openapi.json">openapi.json</a> (OpenAPI 3.1).</p>
<p>The commands below read the key from the environment: ${code('export POSTROAD_KEY=ts_live_...')}</p>
<nav>${links.join(' ')}</nav>
${sections.join('\n')}
<section id="Objects"><h2>Objects</h2><p>Objects used in requests and responses.</p>
${Object.entries(components.schemas).map(showObject).join('')}</section>
</body></html>
`
}

function showOperation(base: string, method: string, path: string, operation: Operation): string {
  const { operationId, summary, description, parameters, requestBody, responses } = operation
  const body = requestBody?.content['application/json']
  return [
    `<details id="${escapeHtml(operationId)}"><summary><b>${method.toUpperCase()}</b> ${code(path)} `,
    `${inline(summary)}</summary>`,
    prose(description),
    `<pre>${escapeHtml(curlOf(base, method, path, operation))}</pre>`,
    parameters.length > 0 ? `<h4>Parameters</h4>${fieldTable(parameters.map(fromParameter))}` : '',
    body ? `<h4>Request body</h4>${showSchema(body.schema)}` : '',
    requestBody && !body ? `<h4>Request body</h4>${prose(requestBody.description ?? '')}` : '',
    ...Object.entries(responses).map(([status, { description, content }]) =>
      status.startsWith('2')
        ? `<h4>${status} ${inline(description)}</h4>${showContents(content)}`
        : `<p><b>${status}</b> ${inline(description)}</p>`,
    ),
    '</details>\n',
  ].join('')
}

function showContents(contents: Operation['responses'][string]['content']): string {
  const [type, { schema, example } = {}] = Object.entries(contents)[0] ?? []
  if (type !== undefined && type !== 'application/json')
    return `<p>${code(type)}</p><pre>${escapeHtml(String(example))}</pre>`
  const json = example === undefined ? '' : `<pre>${escapeHtml(JSON.stringify(example, null, 2))}</pre>`
  return (schema ? showSchema(schema) : '') + json
}

/** Links to a named object, which is shown once in its own section. */
function showSchema(schema: Schema): string {
  const name = refName(schema)
  return name === undefined
    ? fieldTable(fieldsOf(schema))
    : `<p><a href="#${escapeHtml(name)}">${escapeHtml(name)}</a></p>`
}

function showObject([name, schema]: [string, Schema]): string {
  const alternatives = schema.oneOf ? `<p>One of ${kindOf(schema)}.</p>` : ''
  const description = schema.description === undefined ? '' : prose(schema.description)
  return `<h3 id="${escapeHtml(name)}">${escapeHtml(name)}</h3>${description}${alternatives}${fieldTable(fieldsOf(schema))}\n`
}
