/** The OpenAPI page says what the routes really do, since it is made of the same declarations. */
import t from 'tap'
import { Validator } from '@seriousme/openapi-schema-validator'
import Type from 'typebox'
import { ERRORS } from '../../src/core/errors.js'
import { documentationRoutes, openApiDocument } from '../../src/http/openapi.js'
import { openRoute } from '../../src/http/route.js'
import { fullPath } from '../../src/http/app.js'
import { serveRoutes } from '../support/api.js'
import { testRoutes } from '../support/test-routes.js'

interface Operation {
  operationId: string
  description: string
  security: unknown[]
  'x-permission'?: string
  parameters: { name: string; in: string; required: boolean; schema: object }[]
  requestBody?: { required: boolean; content: { 'application/json': { schema: object; example: unknown } } }
  responses: Record<
    string,
    {
      description: string
      headers: object
      content: {
        'application/json': {
          schema: object
          example?: unknown
          examples?: Record<string, { value: object }>
        }
      }
    }
  >
}

type Paths = Record<string, Record<string, Operation>>

const routes = [...testRoutes]
const withSelf = [...routes, ...documentationRoutes(routes, '1.2.3')]

async function readDocument(t: Parameters<typeof serveRoutes>[0]) {
  const { ask } = await serveRoutes(t, withSelf)
  const { status, json } = await ask({ path: '/openapi.json', key: null })
  t.equal(status, 200)
  return json as { openapi: string; info: { version: string }; paths: Paths; components: { schemas: object } }
}

t.test('it is served to anybody and names the version', async t => {
  const document = await readDocument(t)
  t.equal(document.openapi, '3.1.0')
  t.equal(document.info.version, '1.2.3')
  t.ok('Error' in document.components.schemas)
})

t.test('every declared route is in it, itself included, and nothing else', async t => {
  const { paths } = await readDocument(t)
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map(method => `${method} ${path}`),
  )
  const declared = withSelf.map(
    route => `${route.head.method.toLowerCase()} ${fullPath(route).replace(':id', '{id}')}`,
  )
  t.same(described.sort(), declared.sort())
})

t.test('operation ids are unique', async t => {
  const { paths } = await readDocument(t)
  const ids = Object.values(paths).flatMap(methods =>
    Object.values(methods).map(({ operationId }) => operationId),
  )
  t.equal(new Set(ids).size, ids.length)
  t.ok(ids.includes('getNotesById'))
})

t.test('path parameters are required, fields with a default are not', async t => {
  const { paths } = await readDocument(t)
  t.match(paths['/api/v1/notes/{id}']?.['get']?.parameters, [{ name: 'id', in: 'path', required: true }])
  t.match(paths['/api/v1/notes']?.['get']?.parameters, [
    {
      name: 'limit',
      in: 'query',
      required: false,
      schema: { type: 'integer', default: 100, maximum: 1_000 },
    },
    { name: 'offset', in: 'query', required: false },
  ])
})

t.test('keys, permissions and bodies are told', async t => {
  const { paths } = await readDocument(t)
  const post = paths['/api/v1/notes']?.['post']
  t.same(post?.security, [{ apiKey: [] }])
  t.equal(post?.['x-permission'], 'email:send')
  t.match(post?.requestBody, {
    required: true,
    content: { 'application/json': { schema: { required: ['text'] } } },
  })
  t.same(paths['/api/v1/open']?.['get']?.security, [])
})

t.test('each success and each error that a route can answer has its status', async t => {
  const { paths } = await readDocument(t)
  const statusesOf = (path: string, method: string) => Object.keys(paths[path]?.[method]?.responses ?? {})
  t.same(statusesOf('/api/v1/notes', 'post'), [
    '201',
    '202',
    '400',
    '401',
    '403',
    '404',
    '408',
    '409',
    '415',
    '429',
    '500',
    '503',
  ])
  t.same(statusesOf('/api/v1/open', 'get'), ['200', '400', '500'])
  t.same(statusesOf('/local', 'get'), ['200', '400', '404', '500'])
  const responses = paths['/api/v1/notes']?.['post']?.responses
  t.match(responses?.['403']?.description, /^`limit_reached`: .+\. `forbidden`: .+\.$/)
  t.match(responses?.['429']?.headers, { 'Retry-After': {} })
  for (const status of ['400', '403', '409'])
    for (const [code, { value }] of Object.entries(
      responses?.[status]?.content['application/json'].examples ?? {},
    ))
      t.match(value, { error: { code, message: /./ } })
  t.same(Object.keys(responses?.['403']?.content['application/json'].examples ?? {}), [
    'limit_reached',
    'forbidden',
  ])
  t.same(responses?.['409']?.content['application/json'].schema, { $ref: '#/components/schemas/Error' })
  t.match(responses?.['429']?.headers, { 'X-RateLimit-Limit': {}, 'X-Request-Id': {} })
})

t.test('answers are described as they come: in data, as a page, or bare', async t => {
  const { paths } = await readDocument(t)
  const schemaOf = (path: string) =>
    paths[path]?.['get']?.responses['200']?.content['application/json'].schema
  t.match(schemaOf('/api/v1/notes/{id}'), {
    properties: { data: { properties: { text: { type: 'string' } } } },
  })
  t.match(schemaOf('/api/v1/notes'), {
    properties: {
      data: { type: 'array' },
      pagination: { required: ['total', 'limit', 'offset', 'has_more'] },
    },
  })
  t.match(schemaOf('/local'), { properties: { local: { type: 'boolean' } } })
})

t.test('it is valid OpenAPI 3.1', async t => {
  const validator = new Validator()
  const { valid, errors } = await validator.validate(await readDocument(t))
  t.same(errors, undefined)
  t.ok(valid)
  t.equal(validator.version, '3.1')
  const broken = { ...(await readDocument(t)), paths: { '/x': { get: { responses: 'none' } } } }
  t.notOk((await new Validator().validate(broken)).valid, 'the validator finds faults')
})

t.test('every operation says in words who may call it', async t => {
  const { paths } = await readDocument(t)
  const said = (path: string, method = 'get') => paths[path]?.[method]?.description
  t.match(said('/api/v1/notes', 'post'), /Needs the permission `email:send`\.$/)
  t.match(said('/api/v1/notes/{id}', 'delete'), /^Any valid key/)
  t.match(said('/api/v1/open'), /^Needs no key\.$/)
  t.match(said('/local'), /only this machine/)
})

t.test('bodies and answers come with an example; a route may give its own', async t => {
  const { paths } = await readDocument(t)
  const post = paths['/api/v1/notes']?.['post']
  t.same(post?.requestBody?.content['application/json'].example, { text: 'Thank you for your order.' })
  t.match(post?.responses['201']?.content['application/json'].example, {
    data: { id: /^[0-9a-f-]{36}$/, text: /./ },
  })
  const own = openRoute({
    method: 'POST',
    path: '/own',
    access: 'public',
    summary: 'With an example of its own.',
    body: Type.Object({ text: Type.String() }),
    example: { text: 'mine' },
    response: Type.Object({}),
    handle: async () => ({}),
  })
  const document = openApiDocument([own], '1') as { paths: Paths }
  t.same(document.paths['/api/v1/own']?.['post']?.requestBody?.content['application/json'].example, {
    text: 'mine',
  })
})

t.test('the same path with and without the prefix makes two operation ids', async t => {
  const health = (isAtRoot: boolean) =>
    openRoute({
      method: 'GET',
      path: '/health',
      isAtRoot,
      access: 'public',
      summary: 'Works.',
      response: Type.Object({}),
      handle: async () => ({}),
    })
  const { paths } = openApiDocument([health(false), health(true)], '1') as { paths: Paths }
  t.equal(paths['/api/v1/health']?.['get']?.operationId, 'getHealth')
  t.equal(paths['/health']?.['get']?.operationId, 'getHealthAtRoot')
})

t.test('every code of the table is explained and has an example', async t => {
  const everything = openRoute({
    method: 'GET',
    path: '/everything',
    access: 'public',
    summary: 'Every error.',
    errors: Object.keys(ERRORS) as (keyof typeof ERRORS)[],
    response: Type.Object({}),
    handle: async () => ({}),
  })
  const { paths } = openApiDocument([everything], '1') as { paths: Paths }
  const responses = paths['/api/v1/everything']?.['get']?.responses ?? {}
  const codes = Object.values(responses).flatMap(({ content }) =>
    Object.keys(content['application/json'].examples ?? {}),
  )
  t.same(codes.sort(), Object.keys(ERRORS).sort())
})
