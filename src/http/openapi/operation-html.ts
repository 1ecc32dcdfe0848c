/**
 * Renders one operation of the API reference: text and fields on the left, requests and responses on the right. Pure.
 */
import { escapeHtml } from '../../core/escape-html.js'
import { callOf, codeSample, type Callable, type CallParameter } from './code-samples.js'
import type { Operation, Parameter, Schema } from './described.js'
import { choicesOf, fieldList, parameterList, type Objects } from './field-list.js'
import { code, codeFigure, inline, json, prose } from './html.js'

/** An operation and where it is called. */
export interface Placed {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

/** Shared by all operations of a page. */
export interface ApiParts {
  /** Base URL, without trailing slash. */
  readonly base: string
  /** Environment variable in which samples expect the bearer token. */
  readonly token: string
  readonly objects: Objects
}

/** Without its full stop, as a heading. */
export function titleOf({ summary }: Operation): string {
  return summary.replace(/\.$/, '')
}

export function callableOf({ method, path, operation }: Placed): Callable {
  const { parameters, security, requestBody } = operation
  const [type, content] = Object.entries(requestBody?.content ?? {})[0] ?? []
  return {
    method: method.toUpperCase(),
    path,
    isOpen: security.length === 0,
    parameters: parameters.map(toCallParameter),
    ...(type !== undefined && content?.example !== undefined
      ? { body: { type, isRequired: requestBody?.required === true, example: content.example } }
      : {}),
  }
}

function toCallParameter({ name, in: place, required, example, schema }: Parameter): CallParameter {
  const choices = schema.type === 'boolean' ? ['true', 'false'] : choicesOf(schema).map(String)
  return {
    name,
    in: place as CallParameter['in'],
    isRequired: required,
    ...(typeof example === 'string' || typeof example === 'number' ? { example: String(example) } : {}),
    ...(choices.length > 1 ? { choices } : {}),
  }
}

export function operationHtml(placed: Placed, parts: ApiParts): string {
  const { method, path, operation } = placed
  const { operationId, description = '', parameters, requestBody, responses } = operation
  const [bodyType, body] = Object.entries(requestBody?.content ?? {})[0] ?? []
  const successes = Object.entries(responses).filter(([status]) => status.startsWith('2'))
  const failures = Object.entries(responses).filter(([status]) => !/^[23]/.test(status))
  const ofPlace = (place: string, title: string) =>
    part(title, parameterList(parameters.filter(one => one.in === place)))
  const text = [
    `<h2 id="${escapeHtml(operationId)}">${anchored(operationId, titleOf(operation))}</h2>`,
    `<p class="route">${methodBadge(method)} ${code(path)}</p>`,
    prose(description),
    ofPlace('path', 'Path parameters'),
    ofPlace('query', 'Query parameters'),
    body ? part('Body', bodyText(bodyType ?? '', body.schema, requestBody?.description, parts)) : '',
    ofPlace('header', 'Headers'),
    ...successes.map(([status, { content }]) => {
      const schema = content?.['application/json']?.schema
      const fields = schema ? fieldList(schema, parts.objects, false) : ''
      return fields === '' ? '' : `<h3>Response ${statusBadge(status)}</h3>${fields}`
    }),
    errorTable(failures),
  ]
  return section(operationId, text.join(''), [
    requestFigure(placed, parts),
    responseExamples(successes, failures),
  ])
}

/** A request that the server sends to others. */
export function eventHtml(name: string, operation: Operation, { objects }: ApiParts): string {
  const { operationId, summary, description = '', requestBody } = operation
  const body = requestBody?.content['application/json']
  const text =
    `<h2 id="${escapeHtml(operationId)}">${anchored(operationId, name)}</h2>` +
    prose(summary) +
    prose(description) +
    (body ? part('Body', fieldList(body.schema, objects, false)) : '')
  return section(operationId, text, [body ? codeFigure('Event', [['json', json(body.example)]]) : ''])
}

function section(id: string, text: string, aside: readonly string[]): string {
  return (
    `<section class="operation" aria-labelledby="${escapeHtml(id)}"><div class="text">${text}</div>` +
    `<div class="aside"><div class="stick">${aside.join('')}</div></div></section>\n`
  )
}

/** A heading's text, which links to itself. */
export function anchored(id: string, title: string): string {
  return `<a class="anchor" href="#${escapeHtml(id)}">${inline(title)}</a>`
}

export function methodBadge(method: string): string {
  return `<b class="method ${escapeHtml(method)}">${escapeHtml(method.toUpperCase())}</b>`
}

function part(title: string, content: string): string {
  return content === '' ? '' : `<h3>${inline(title)}</h3>${content}`
}

function bodyText(type: string, schema: Schema, description: string | undefined, parts: ApiParts): string {
  const isJson = type === 'application/json'
  const note = description === undefined ? '' : `<p class="note">${inline(description)}</p>`
  return (isJson ? '' : `<p>${code(type)}</p>`) + fieldList(schema, parts.objects, true) + note
}

function errorTable(failures: Responses): string {
  if (failures.length === 0) return ''
  const rows = failures.map(
    ([status, { description }]) => `<dt>${statusBadge(status)}</dt><dd>${inline(description)}</dd>`,
  )
  return `<details class="errors"><summary>Errors</summary><dl>${rows.join('')}</dl></details>`
}

function statusBadge(status: string): string {
  return `<b class="status s${status.slice(0, 1)}">${escapeHtml(status)}</b>`
}

function requestFigure(placed: Placed, parts: ApiParts): string {
  const callable = callableOf(placed)
  const sample = codeSample('curl', callOf(parts, callable))
  const title = `${callable.method} ${callable.path}`
  return codeFigure(title, [['curl', sample]], placed.operation.operationId)
}

type Media = NonNullable<Operation['responses'][string]['content']>[string]
type Responses = readonly [status: string, response: Operation['responses'][string]][]

/** One section per success, the first one open; errors share one section. */
function responseExamples(successes: Responses, failures: Responses): string {
  const shown = successes.flatMap(([status, { description, content = {} }], index) => {
    const blocks = exampleBlocks(content)
    if (blocks === '') return []
    const summary = `<summary>${statusBadge(status)} ${escapeHtml(description)}</summary>`
    return [`<details${index === 0 ? ' open' : ''}>${summary}${blocks}</details>`]
  })
  const failed = failures.map(([status, { content = {} }]) => {
    const codes = Object.keys(content['application/json']?.examples ?? {})
    return `<p>${statusBadge(status)} ${escapeHtml(codes.join(', '))}</p>${exampleBlocks(content)}`
  })
  const badges = failures.map(([status]) => statusBadge(status)).join('')
  return (
    '<div class="responses">' +
    shown.join('') +
    (failed.length === 0
      ? ''
      : `<details class="failures"><summary>Errors ${badges}</summary>${failed.join('')}</details>`) +
    '</div>'
  )
}

function exampleBlocks(content: NonNullable<Operation['responses'][string]['content']>): string {
  return Object.entries(content)
    .map(([type, media]) => exampleBlocksOf(type, media))
    .join('')
}

function exampleBlocksOf(type: string, { example, examples = {} }: Media): string {
  const isJson = type === 'application/json'
  const values = example === undefined ? Object.values(examples).map(({ value }) => value) : [example]
  return values
    .map(value => {
      const text = isJson ? json(value) : String(value)
      return `<pre tabindex="0" data-language="${isJson ? 'json' : 'text'}"><code>${escapeHtml(text)}</code></pre>`
    })
    .join('')
}
