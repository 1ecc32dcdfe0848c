/**
 * The OpenAPI 3.1 description, made from the same declarations that validate requests, so that it cannot drift.
 */
import type { TSchema } from 'typebox'
import Type from 'typebox'
import { ERRORS, type ErrorCode } from '../core/errors.js'
import { fullPath } from './app.js'
import { KEY_HEADER } from './idempotency.js'
import { listSchema } from './pagination.js'
import { docsPage, DOCS_HEADERS } from './docs-page.js'
import { errorExamples, ErrorSchema, explain } from './openapi-errors.js'
import { exampleOf } from './openapi-example.js'
import { openRoute, type Access, type Route } from './route.js'

const RATE_HEADERS = {
  'X-RateLimit-Limit': {
    description: 'Requests per minute (2147483647: no limit).',
    schema: { type: 'integer' },
  },
  'X-RateLimit-Remaining': {
    description: 'Requests left in the sliding minute.',
    schema: { type: 'integer' },
  },
  'X-RateLimit-Reset': {
    description: 'When the oldest counted request leaves the window.',
    schema: { type: 'string', format: 'date-time' },
  },
  'X-Request-Id': { description: 'Names this request in the log.', schema: { type: 'string' } },
}

const ABOUT = `Email delivery and audience service. Within v1 changes are additive only; enums are open.

Requests carry \`Authorization: Bearer <API key>\` and JSON bodies in UTF-8. Answers are \`{data}\`, lists are \`{data, pagination}\`
with \`limit\` (default 100, at most 1000) and \`offset\`; errors are \`{error: {code, message, path?}}\`. Times are ISO 8601 in UTC.
An optional field of a body that is null counts as absent.

What belongs to another workspace is not found. Retry 429 after Retry-After, and 500 with exponential backoff and, on sends, the
same Idempotency-Key; retry no other error without changing something.`.replace(/([^\n])\n(?=[^\n])/g, '$1 ')

export function openApiDocument(routes: readonly Route[], version: string): object {
  const paths: Record<string, Record<string, object>> = {}
  const ids = new Set<string>()
  for (const route of routes) {
    const path = fullPath(route).replace(/:(\w+)/g, '{$1}')
    // Health is served twice, with and without the prefix.
    const usual = operationId(route)
    const id = ids.has(usual) ? `${usual}AtRoot` : usual
    ids.add(id)
    paths[path] = { ...paths[path], [route.head.method.toLowerCase()]: operation(route, id) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Postroad',
      version,
      description: ABOUT,
    },
    tags: [...new Set(routes.map(tagOf))].map(name => ({ name })),
    paths,
    components: {
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: ts_live_... or ts_test_...' },
      },
      schemas: { Error: ErrorSchema },
    },
  }
}

function operation(route: Route, id: string): object {
  const { head } = route
  const isOpen = head.access === 'public' || head.access === 'loopback'
  return {
    operationId: id,
    summary: head.summary,
    description: [head.description, whoMayCall(head.access)].filter(Boolean).join('\n\n'),
    tags: [tagOf(route)],
    security: isOpen ? [] : [{ apiKey: [] }],
    ...(isOpen || head.access === 'key' ? {} : { 'x-permission': head.access }),
    parameters: [
      ...parameters(head.params, 'path'),
      ...parameters(head.query, 'query'),
      ...(head.idempotency ? [keyParameter(head.idempotency)] : []),
    ],
    ...(head.body ? { requestBody: requestBody(head.body, head.example) } : {}),
    responses: { ...successes(route), ...failures(route) },
  }
}

function tagOf({ head }: Route): string {
  return head.path.split('/')[1] ?? ''
}

function whoMayCall(access: Access): string {
  if (access === 'public') return 'Needs no key.'
  if (access === 'loopback') return 'Needs no key; only this machine itself may ask.'
  return access === 'key' ? 'Any valid key may ask.' : `Needs the permission \`${access}\`.`
}

function requestBody(schema: TSchema, example: unknown = exampleOf(schema, true)): object {
  return { required: true, content: { 'application/json': { schema, example } } }
}

/** `GET /domains/:id` becomes `getDomainsById`. */
function operationId({ head }: Route): string {
  const words = head.path.split('/').filter(Boolean)
  const camel = words.map(word => {
    const bare = word
      .replace(/^:/, 'by-')
      .replace(/[^a-zA-Z0-9]+(\w)/g, (_, next: string) => next.toUpperCase())
    return bare.charAt(0).toUpperCase() + bare.slice(1)
  })
  return head.method.toLowerCase() + camel.join('')
}

function parameters(schema: TSchema | undefined, place: 'path' | 'query'): object[] {
  const { properties, required } = (schema ?? {}) as {
    properties?: Record<string, TSchema>
    required?: string[]
  }
  return Object.entries(properties ?? {}).map(([name, field]) => ({
    name,
    in: place,
    required: place === 'path' || (required ?? []).includes(name),
    schema: field,
  }))
}

function keyParameter(need: 'optional' | 'required'): object {
  return {
    name: KEY_HEADER,
    in: 'header',
    required: need === 'required',
    description:
      'A unique value. A repeat with the same value and body within an hour gets the first answer again, and nothing is ' +
      'done twice; with another body it is refused with idempotency_conflict, and with conflict while the first is ' +
      'still being executed. Only successes are kept.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  }
}

const REPEAT_HEADER = {
  'X-Idempotency-Status': {
    description: 'Where an Idempotency-Key was sent: new, or cached for a repeat.',
    schema: { type: 'string' },
  },
}

function successes({ head, response, status, otherStatuses }: Route): Record<string, object> {
  const schema =
    response.kind === 'bare'
      ? response.schema
      : response.kind === 'list'
        ? listSchema(response.schema)
        : Type.Object({ data: response.schema })
  const answer = {
    description: 'Success',
    headers: { ...RATE_HEADERS, ...(head.idempotency ? REPEAT_HEADER : {}) },
    content:
      head.mediaType === undefined
        ? { 'application/json': { schema, example: exampleOf(schema, false) } }
        : { [head.mediaType]: { schema } },
  }
  return Object.fromEntries([status, ...otherStatuses].map(code => [String(code), answer]))
}

function failures({ head }: Route): Record<string, object> {
  const isOpen = head.access === 'public' || head.access === 'loopback'
  const codes = new Set<ErrorCode>(head.errors)
  // At least a query field that is not known.
  codes.add('validation_error')
  if (head.access === 'loopback') codes.add('not_found')
  if (!isOpen)
    for (const code of ['unauthorized', 'workspace_not_found', 'rate_limited'] as const) codes.add(code)
  if (!isOpen && head.access !== 'key') codes.add('forbidden')
  if (head.idempotency) for (const code of ['conflict', 'idempotency_conflict'] as const) codes.add(code)
  codes.add('internal_error')
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of codes)
    byStatus.set(ERRORS[code].status, [...(byStatus.get(ERRORS[code].status) ?? []), code])
  return Object.fromEntries(
    [...byStatus].map(([status, names]) => [
      String(status),
      {
        description: explain(names),
        headers: {
          ...RATE_HEADERS,
          ...FAILURE_HEADERS[status],
          ...(names.includes('limit_reached') ? LIMIT_HEADERS : {}),
        },
        content: {
          'application/json': {
            schema: { $ref: '#/components/schemas/Error' },
            examples: errorExamples(names),
          },
        },
      },
    ]),
  )
}

const LIMIT_HEADERS = {
  'Retry-After': {
    description:
      'With limit_reached: in how many seconds the next hour or day begins, where the request fits into one.',
    schema: { type: 'integer', minimum: 1 },
  },
}

const FAILURE_HEADERS: Readonly<Record<number, object>> = {
  401: { 'WWW-Authenticate': { description: 'Bearer (RFC 6750).', schema: { type: 'string' } } },
  429: {
    'Retry-After': {
      description: 'After how many seconds the same request may succeed.',
      schema: { type: 'integer', minimum: 1 },
    },
  },
}

/** `GET /openapi.json`: describes the routes it is given and itself. */
export function openApiRoute(routes: readonly Route[], version: string): Route {
  let document: object | undefined
  const self: Route = openRoute({
    method: 'GET',
    path: '/openapi.json',
    isAtRoot: true,
    isBare: true,
    access: 'public',
    summary: 'This description of the API (OpenAPI 3.1).',
    response: Type.Unknown(),
    handle: async () => (document ??= openApiDocument([...routes, self], version)),
  })
  return self
}

/** `GET /openapi.json` and `GET /docs`, which shows it to people; both describe themselves as well. */
export function documentationRoutes(routes: readonly Route[], version: string): Route[] {
  let page: string | undefined
  const docs: Route = openRoute({
    method: 'GET',
    path: '/docs',
    isAtRoot: true,
    isBare: true,
    access: 'public',
    summary: 'This description of the API as a page for people.',
    mediaType: 'text/html',
    headers: DOCS_HEADERS,
    response: Type.String(),
    handle: async () => (page ??= docsPage(openApiDocument([...routes, docs, openApi], version))),
  })
  const openApi = openApiRoute([...routes, docs], version)
  return [openApi, docs]
}
