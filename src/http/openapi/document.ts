/**
 * The OpenAPI 3.1 document, generated from the declarations that validate requests, so that it cannot drift.
 *
 * Covers routes below the API base URL, not those at the root (this document, the monitors' /health) or for this machine only.
 * Generated on first use.
 */
import { given } from '../../core/given.js'
import type { TSchema } from 'typebox'
import Type from 'typebox'
import { ERRORS, type ErrorCode } from '../../core/errors.js'
import { formatSize } from '../../core/units.js'
import type { BodyBounds } from '../body/large-bodies.js'
import type { UploadRules } from '../body/upload.js'
import { KEY_HEADER } from '../idempotency.js'
import { MAX_DEPTH } from '../body/json-scan.js'
import { listSchema } from '../pagination.js'
import { acceptsIdempotencyKey, ADMIN_BASE, API_BASE, bodyBounds, type Route } from '../route.js'
import type { Chapters } from './chapters.js'
import { Components } from './components.js'
import { errorExamples, ErrorSchema, explain } from './errors.js'
import { answerExample, exampleOf } from './example.js'
import { KEY_SCHEME, OPERATOR_SCHEMES, permissionOf, securityOf, whoMayCall } from './security.js'
import { describeOutgoing, type OutgoingRequests } from './outgoing.js'

const RATE_HEADERS = {
  'X-RateLimit-Limit': {
    description:
      'Requests per minute (2147483647: no limit); if the email rate was exceeded, emails per minute.',
    schema: { type: 'integer' },
  },
  'X-RateLimit-Remaining': {
    description: 'Requests left in the current minute (sliding window).',
    schema: { type: 'integer' },
  },
  'X-RateLimit-Reset': {
    description: 'When the oldest counted request leaves the window.',
    schema: { type: 'string', format: 'date-time' },
  },
  'X-Request-Id': { description: 'Id of this request in the log.', schema: { type: 'string' } },
}

const ADMIN_ABOUT =
  `Runs the appliance: workspaces, keys, operators, queue, messages of all workspaces, and the system itself. Changes are additive
within v1; enums are open.

Requests carry an operator token, \`Authorization: Bearer pa_...\`, or a session cookie from signing in; API keys have no access. Writes
with a session must come from the appliance's own pages (Sec-Fetch-Site, Origin). An operation needs its \`x-permission\` in the role of
the operator: for the whole appliance, in the workspace that the request names, or in the workspace of the record. Resources of workspaces
without a role are not found.

Formats, errors and pagination are those of the REST API, which operators call with the same token or session and the workspace's id in
\`X-Workspace\`, and \`X-Sandbox: true\` for its sandbox.`.replace(/([^\n])\n(?=[^\n])/g, '$1 ')

const ABOUT = `Email delivery and audience service. Within v1 changes are additive only; enums are open.

Requests carry \`Authorization: Bearer <API key>\` and JSON bodies in UTF-8. Responses are \`{data}\`, lists are \`{data, pagination}\`
with \`limit\` (default 100, at most 1000) and \`offset\`; errors are \`{error: {code, message, path?}}\`. Times are ISO 8601 in UTC.
Null in an optional field of a body means that the field is absent. A 201 has the path of the new resource in Location.

Resources of other workspaces are not found. Retry 429 after Retry-After, and 500 with exponential backoff and, for a POST, the
same Idempotency-Key. Other errors will not succeed unchanged.`.replace(/([^\n])\n(?=[^\n])/g, '$1 ')

export interface Edition {
  readonly version: string
  /** Default: the REST API. */
  readonly api?: 'admin'
  /** Base of the API's URL, e.g. `http://127.0.0.1:8025`. */
  readonly origin: string
  /** All chapters; those without an operation are omitted. */
  readonly chapters: Chapters
  /** Requests sent to others. */
  readonly outgoing?: OutgoingRequests
}

export function openApiDocument(routes: readonly Route[], edition: Edition): object {
  const { version, origin, chapters, outgoing = {}, api } = edition
  const components = new Components()
  const own = routes.filter(({ head }) => isDescribed(head) && head.api === api)
  const paths: Record<string, Record<string, object>> = {}
  for (const route of own) {
    const path = route.head.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.head.method.toLowerCase()]: operation(route, components) }
  }
  components.show(ErrorSchema)
  const webhooks = describeOutgoing(outgoing, components)
  const used = usedChapters(own, chapters)
  return {
    openapi: '3.1.0',
    info: {
      title: api ? 'Postroad admin API' : 'Postroad',
      version,
      description: api ? ADMIN_ABOUT : ABOUT,
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: origin + (api ? ADMIN_BASE : API_BASE) }],
    tags: Object.entries(chapters)
      .filter(([name]) => used.has(name))
      .map(([name, description]) => ({ name, description })),
    paths,
    webhooks,
    components: {
      securitySchemes: {
        ...(api ? OPERATOR_SCHEMES : KEY_SCHEME),
      },
      schemas: components.schemas,
    },
  }
}

/** @throws Error for an undeclared chapter: a programming error */
function usedChapters(routes: readonly Route[], chapters: Chapters): Set<string> {
  const used = new Set<string>()
  for (const { head } of routes) {
    const { chapter = '' } = head
    if (!Object.hasOwn(chapters, chapter))
      throw new Error(`${head.path} has an undeclared chapter: "${chapter}"`)
    used.add(chapter)
  }
  return used
}

function isDescribed(head: Route['head']): boolean {
  return head.isAtRoot !== true && head.access !== 'control'
}

function operation(route: Route, components: Components): object {
  const { head } = route
  return {
    operationId: head.operationId,
    summary: head.summary,
    description: [head.description, whoMayCall(head.access)].filter(Boolean).join('\n\n'),
    tags: [head.chapter],
    security: securityOf(head),
    ...permissionOf(head.access),
    parameters: [
      ...parameters(head.params, 'path', components),
      ...parameters(head.query, 'query', components),
      ...(acceptsIdempotencyKey(head) ? [keyParameter(head)] : []),
      ...(head.hasEtag && head.method === 'GET' ? [IF_NONE_MATCH] : []),
      ...(head.checksEtag ? [IF_MATCH] : []),
    ],
    ...(head.body ? { requestBody: requestBody(route, head.body, components) } : {}),
    ...(head.upload ? { requestBody: fileBody(head.upload) } : {}),
    responses: { ...successes(route, components), ...failures(route) },
  }
}

function requestExample({ head }: Route): unknown {
  return head.example ?? (head.body && exampleOf(head.body, true))
}

function requestBody(route: Route, schema: TSchema, components: Components): object {
  return {
    required: route.head.isBodyOptional !== true,
    description: boundsInWords(bodyBounds(route.head)),
    content: { 'application/json': { schema: components.show(schema), example: requestExample(route) } },
  }
}

function fileBody({ octets, mediaTypes, fields, example }: UploadRules): object {
  const text = { type: 'string' }
  return {
    required: true,
    description:
      `A file of at most ${formatSize(octets)} after decompression. May be sent with \`Content-Encoding: gzip\`. ` +
      'With `multipart/form-data` it is the part `file`, and query parameters may be sent as form fields.',
    content: {
      ...Object.fromEntries(mediaTypes.map(type => [type, { schema: text, example }])),
      'multipart/form-data': {
        schema: {
          type: 'object',
          required: ['file'],
          properties: {
            ...Object.fromEntries(
              Object.entries(fields).map(([name, description]) => [name, { ...text, description }]),
            ),
            file: { type: 'string', format: 'binary' },
          },
        },
        example: { file: example },
      },
    },
  }
}

function boundsInWords({ octets, values, entryValues }: BodyBounds): string {
  const inOne = entryValues === undefined ? '' : `, ${entryValues} per entry of a list or other field`
  return (
    `At most ${formatSize(octets)} after decompression and ${values} values (every field and entry counts)${inOne}, ${MAX_DEPTH} levels deep. ` +
    'May be sent with `Content-Encoding: gzip`.'
  )
}

function parameters(schema: TSchema | undefined, place: 'path' | 'query', components: Components): object[] {
  const { properties, required } = (schema ?? {}) as {
    properties?: Record<string, TSchema>
    required?: string[]
  }
  return Object.entries(properties ?? {}).map(([name, field]) => {
    const { description, ...shown } = components.show(field)
    return {
      name,
      in: place,
      required: place === 'path' || (required ?? []).includes(name),
      ...given({ description }),
      schema: shown,
      ...(place === 'path' ? { example: exampleOf(field, false, name) } : {}),
    }
  })
}

function keyParameter({ requiresIdempotencyKey, isReadOnly, upload }: Route['head']): object {
  const rules =
    'A unique value. A repeat with the same value and body within an hour returns the first response and has no further ' +
    'effect. With a different body it is refused with idempotency_conflict, and with conflict while the first request is ' +
    'still in progress. Only successes are stored.'
  const ofFile = ' The body is the file with its name, the fields of the form and the query.'
  return {
    name: KEY_HEADER,
    in: 'header',
    required: requiresIdempotencyKey === true,
    description: isReadOnly
      ? 'Accepted and ignored: this request has no side effects, so a repeat is executed again.'
      : rules + (upload ? ofFile : ''),
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  }
}

const ETAG_EXAMPLE = '"mWq3T0kQ4cLrX1b2Zs7f9A.t5Yb0cVh2KxN8dPq1RzLuE"'

const IF_NONE_MATCH = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description:
    '`ETag` of an earlier response. If everything the response would show is still the same, counts included, it is 304 without a body.',
  schema: { type: 'string' },
  example: ETAG_EXAMPLE,
}

const IF_MATCH = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description:
    '`ETag` of what you edited. If it has been edited since, nothing is done and the response is 412 `precondition_failed`. ' +
    'Counts and other derived fields may have changed.',
  schema: { type: 'string' },
  example: ETAG_EXAMPLE,
}

const ETAG_HEADER = {
  ETag: {
    description: 'A strong entity tag of all that the response shows (RFC 9110).',
    schema: { type: 'string' },
  },
}

const LOCATION_HEADER = {
  Location: {
    description: 'Path of the new resource.',
    schema: { type: 'string', format: 'uri-reference' },
  },
}

const REDIRECT_HEADER = {
  Location: {
    description: 'Where the browser goes next.',
    schema: { type: 'string', format: 'uri-reference' },
  },
}

const REPEAT_HEADER = {
  'X-Idempotency-Status': {
    description: 'If an Idempotency-Key was sent: new, or cached for a repeat.',
    schema: { type: 'string', enum: ['new', 'cached'] },
  },
}

/** Descriptions of success statuses; RFC 9110 §15. */
const SUCCESSES: Readonly<Record<string, string>> = {
  200: 'Done',
  201: 'Created',
  202: 'Accepted',
  302: 'Redirect',
  503: 'Service unavailable',
}

function successes(route: Route, components: Components): Record<string, object> {
  const { head, response, status, otherAnswers } = route
  const answers = { [status]: response.schema, ...otherAnswers }
  const described = Object.fromEntries(
    Object.entries(answers).map(([code, data]) => {
      const description = SUCCESSES[code] ?? 'Success'
      const headers = {
        ...RATE_HEADERS,
        ...(acceptsIdempotencyKey(head) ? REPEAT_HEADER : {}),
        ...(code === '201' ? LOCATION_HEADER : {}),
        ...(code === '302' ? REDIRECT_HEADER : {}),
        ...(head.hasEtag ? ETAG_HEADER : {}),
      }
      if (['download', 'bare', 'events'].includes(response.kind))
        return [code, { description, headers, content: fileContent(route, components) }]
      const schema = response.kind === 'list' ? listSchema(data, head.query) : Type.Object({ data })
      const isUsual = Number(code) === status && head.exampleAnswer !== undefined
      const example = isUsual ? { data: head.exampleAnswer } : answerExample(schema, requestExample(route))
      const content = { 'application/json': { schema: components.show(schema), example } }
      return [code, { description, headers, content }]
    }),
  )
  if (!head.hasEtag || head.method !== 'GET') return described
  return { ...described, 304: { description: 'Not modified', headers: { ...RATE_HEADERS, ...ETAG_HEADER } } }
}

function fileContent(route: Route, components: Components): object {
  const { head, response } = route
  const usual = {
    mediaType: head.mediaType ?? 'text/plain',
    schema: response.schema,
    example: head.exampleAnswer,
  }
  return Object.fromEntries(
    [usual, ...(head.otherFiles ?? [])].map(({ mediaType, schema = Type.String(), example }) => [
      mediaType,
      {
        schema: components.show(schema),
        example: example ?? answerExample(schema, requestExample(route)),
      },
    ]),
  )
}

function failures({ head }: Route): Record<string, object> {
  const isOpen = head.access === 'public'
  const codes = new Set<ErrorCode>(head.errors)
  // Any route can at least get an unknown query parameter.
  codes.add('validation_error')
  if (!isOpen) for (const code of ['unauthorized', 'rate_limited', 'unavailable'] as const) codes.add(code)
  if (!isOpen && !head.api) codes.add('workspace_not_found')
  if (typeof head.access === 'object' && head.access.isSensitive) codes.add('sign_in_required')
  if (typeof head.access === 'object' && head.access.scope !== 'appliance') codes.add('not_found')
  if (head.body ?? head.upload)
    for (const code of ['request_timeout', 'unsupported_media_type'] as const) codes.add(code)
  if (!isOpen && head.access !== 'key') codes.add('forbidden')
  if (acceptsIdempotencyKey(head) && !head.isReadOnly)
    for (const code of ['conflict', 'idempotency_conflict'] as const) codes.add(code)
  if (head.checksEtag) codes.add('precondition_failed')
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
          ...(names.includes('limit_reached') ? RETRY_AFTER : {}),
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

const RETRY_AFTER = {
  'Retry-After': {
    description: 'Seconds after which the same request may succeed; absent if it never will.',
    schema: { type: 'integer', minimum: 1 },
  },
}

const FAILURE_HEADERS: Readonly<Record<number, object>> = {
  401: { 'WWW-Authenticate': { description: 'Bearer (RFC 6750).', schema: { type: 'string' } } },
  415: { 'Accept-Encoding': { description: 'Supported encodings: gzip.', schema: { type: 'string' } } },
  429: RETRY_AFTER,
  503: RETRY_AFTER,
}
