/**
 * The OpenAPI 3.1 description, made from the same declarations that validate requests, so that it cannot drift.
 */
import type { TSchema } from 'typebox'
import Type from 'typebox'
import { ERRORS, type ErrorCode } from '../core/errors.js'
import { fullPath } from './app.js'
import { listSchema } from './pagination.js'
import { openRoute, type Route } from './route.js'

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

const ErrorSchema = Type.Object({
  error: Type.Object({
    code: Type.String({ description: `One of: ${Object.keys(ERRORS).join(', ')}.` }),
    message: Type.String(),
    path: Type.Optional(Type.String({ description: 'The field at fault, e.g. `to.3`.' })),
  }),
})

export function openApiDocument(routes: readonly Route[], version: string): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const route of routes) {
    const path = fullPath(route).replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.head.method.toLowerCase()]: operation(route) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Postroad',
      version,
      description:
        'Email delivery and audience service. Within v1 changes are additive only; enums are open.',
    },
    paths,
    components: {
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: ts_live_... or ts_test_...' },
      },
      schemas: { Error: ErrorSchema },
    },
  }
}

function operation(route: Route): object {
  const { head } = route
  const isOpen = head.access === 'public' || head.access === 'loopback'
  return {
    operationId: operationId(route),
    summary: head.summary,
    ...(head.description === undefined ? {} : { description: head.description }),
    tags: [head.path.split('/')[1] ?? ''],
    security: isOpen ? [] : [{ apiKey: [] }],
    ...(isOpen || head.access === 'key' ? {} : { 'x-permission': head.access }),
    parameters: [...parameters(head.params, 'path'), ...parameters(head.query, 'query')],
    ...(head.body
      ? { requestBody: { required: true, content: { 'application/json': { schema: head.body } } } }
      : {}),
    responses: { ...successes(route), ...failures(route) },
  }
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

function successes({ response, status, otherStatuses }: Route): Record<string, object> {
  const schema =
    response.kind === 'bare'
      ? response.schema
      : response.kind === 'list'
        ? listSchema(response.schema)
        : Type.Object({ data: response.schema })
  const answer = {
    description: 'Success',
    headers: RATE_HEADERS,
    content: { 'application/json': { schema } },
  }
  return Object.fromEntries([status, ...otherStatuses].map(code => [String(code), answer]))
}

function failures({ head }: Route): Record<string, object> {
  const isOpen = head.access === 'public' || head.access === 'loopback'
  const codes = new Set<ErrorCode>(head.errors)
  if (head.params ?? head.query ?? head.body) codes.add('validation_error')
  if (!isOpen)
    for (const code of ['unauthorized', 'workspace_not_found', 'rate_limited'] as const) codes.add(code)
  if (!isOpen && head.access !== 'key') codes.add('forbidden')
  codes.add('internal_error')
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of codes)
    byStatus.set(ERRORS[code].status, [...(byStatus.get(ERRORS[code].status) ?? []), code])
  return Object.fromEntries(
    [...byStatus].map(([status, names]) => [
      String(status),
      {
        description: names.join(', '),
        headers: RATE_HEADERS,
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    ]),
  )
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
