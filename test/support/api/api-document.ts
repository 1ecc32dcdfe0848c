/**
 * Every operation that a running appliance describes of itself in /openapi.json, and a way to ask for each.
 *
 * Tests walk over these, so that a route added later is walked over as well.
 */

/** The parts of a JSON Schema that tests read. */
export interface FieldSchema {
  readonly type?: string
  readonly properties?: Readonly<Record<string, FieldSchema>>
  readonly anyOf?: readonly FieldSchema[]
  readonly items?: FieldSchema
}

interface Described {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly security: readonly unknown[]
  readonly 'x-permission'?: string
  /** Where an operator needs the permission. */
  readonly 'x-scope'?: 'appliance' | 'path' | 'query' | 'record'
  readonly parameters: readonly {
    readonly name: string
    readonly in: 'path' | 'query' | 'header'
    readonly required: boolean
    readonly description?: string
    readonly schema: FieldSchema
  }[]
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: FieldSchema; readonly example: unknown }>>
  }
  readonly responses: Readonly<
    Record<
      string,
      {
        readonly headers?: object
        readonly content: Readonly<
          Record<string, { readonly schema?: FieldSchema; readonly examples?: object }>
        >
      }
    >
  >
}

export interface Operation extends Described {
  /** E.g. `GET /api/v1/domains/{id}`. */
  readonly name: string
  readonly method: string
  readonly path: string
  readonly needsKey: boolean
  readonly body: { readonly schema: FieldSchema; readonly example: unknown } | undefined
  /** Of an operation that takes a file. */
  readonly file: { readonly mediaType: string; readonly example: string } | undefined
  readonly pathParameters: readonly string[]
}

interface Document {
  readonly servers: readonly { readonly url: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
}

/** The documents of the REST API and of the admin API. */
export const REST_DOCUMENT = '/openapi.json'
export const ADMIN_DOCUMENT = '/admin/openapi.json'

/** The description with every reference to a named schema replaced by the schema; one to a schema that it stands in itself by any value. */
export async function readDocument(baseUrl: string, path = REST_DOCUMENT): Promise<Document> {
  const document = (await (await fetch(baseUrl + path)).json()) as Document & {
    readonly components: { readonly schemas: Readonly<Record<string, unknown>> }
  }
  const resolved = (value: unknown, around: readonly string[] = []): unknown => {
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(one => resolved(one, around))
    const { $ref } = value as { $ref?: string }
    if (typeof $ref !== 'string')
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, resolved(inner, around)]))
    if (around.includes($ref)) return {}
    return resolved(document.components.schemas[$ref.split('/').pop() ?? ''], [...around, $ref])
  }
  return { servers: document.servers, paths: resolved(document.paths) as Document['paths'] }
}

export async function readOperations(baseUrl: string, path?: string): Promise<Operation[]> {
  const described = await readDocument(baseUrl, path)
  const base = new URL(described.servers[0]?.url ?? '').pathname
  return Object.entries(described.paths).flatMap(([below, methods]) =>
    Object.entries(methods).map(([lower, described]): Operation => {
      const method = lower.toUpperCase()
      const path = base + below
      return {
        ...described,
        name: `${method} ${path}`,
        method,
        path,
        needsKey: described.security.length > 0,
        body: described.requestBody?.content['application/json'],
        file: fileOf(described),
        pathParameters: described.parameters.filter(one => one.in === 'path').map(({ name }) => name),
      }
    }),
  )
}

function fileOf({ requestBody }: Described): Operation['file'] {
  const [mediaType = '', { example } = {}] = Object.entries(requestBody?.content ?? {})[0] ?? []
  return typeof example === 'string' ? { mediaType, example } : undefined
}

/** The path with every parameter replaced. */
export function pathWith({ path }: Operation, valueOf: (name: string) => string): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(valueOf(name)))
}

export interface ApiRequest {
  readonly method: string
  /** From the root, with the query. */
  readonly path: string
  readonly key?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | undefined
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export async function ask(
  baseUrl: string,
  { method, path, key, headers, body }: ApiRequest,
): Promise<Answer> {
  const response = await fetch(baseUrl + path, {
    method,
    headers: {
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }),
      ...headers,
    },
    ...(body === undefined ? {} : { body }),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** The operation as its example has it. */
export function usualRequest(
  operation: Operation,
  valueOf: (name: string) => string,
  key?: string,
): ApiRequest {
  const { body, file } = operation
  return {
    method: operation.method,
    path: pathWith(operation, valueOf) + neededQuery(operation, valueOf),
    key,
    headers: {
      ...Object.fromEntries(
        operation.parameters
          .filter(one => one.in === 'header' && one.required)
          .map(({ name }) => [name, `walk ${operation.name}`]),
      ),
      ...(file ? { 'Content-Type': file.mediaType } : {}),
    },
    ...(body ? { body: JSON.stringify(body.example) } : {}),
    ...(file ? { body: file.example } : {}),
  }
}

/** The fields that a query has to have, if any, with their question mark. */
function neededQuery({ parameters }: Operation, valueOf: (name: string) => string): string {
  const needed = parameters.filter(one => one.in === 'query' && one.required)
  if (needed.length === 0) return ''
  return `?${new URLSearchParams(needed.map(({ name }): [string, string] => [name, valueOf(name)])).toString()}`
}

/** What is wrong with an answer, whatever was asked; undefined where nothing is. */
export function faultOf(operation: Operation, { status, headers, text }: Answer): string | undefined {
  if (status >= 500) return `answers ${status}`
  const described = operation.responses[String(status)]
  if (!described) return `answers ${status}, which is not described: ${text.slice(0, 200)}`
  const type = headers.get('content-type') ?? ''
  if (!type.startsWith('application/json'))
    return status < 300 && Object.keys(described.content).some(known => type.startsWith(known))
      ? undefined
      : `answers ${type}`
  const json = parsed(text)
  if (json === undefined) return 'answers what is no JSON'
  return status < 400 ? undefined : faultOfError(json, described.content['application/json']?.examples ?? {})
}

function faultOfError(json: unknown, described: object): string | undefined {
  const { error, ...others } = (json ?? {}) as { error?: Record<string, unknown> }
  const { code, message, path, rule, limit, ...more } = error ?? {}
  if (Object.keys(others).length + Object.keys(more).length > 0) return 'answers an error with other fields'
  if (typeof code !== 'string' || typeof message !== 'string' || message === '')
    return 'answers an error without code or message'
  if (path !== undefined && typeof path !== 'string') return 'answers an error whose path is no text'
  if (rule !== undefined && typeof rule !== 'string') return 'answers an error whose rule is no text'
  if (limit !== undefined && typeof limit !== 'number') return 'answers an error whose limit is no number'
  return code in described ? undefined : `answers ${code}, which is not described`
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
