/** The OpenAPI page says what the routes really do, since it is made of the same declarations. */
import t from 'tap'
import { Validator } from '@seriousme/openapi-schema-validator'
import Type from 'typebox'
import { ERRORS } from '../../../src/core/errors.js'
import { openApiDocument } from '../../../src/http/openapi/document.js'
import { documentationRoutes } from '../../../src/http/openapi/routes.js'
import { openRoute } from '../../../src/http/route.js'
import { serveRoutes } from '../../support/api/api.js'
import { TEST_CHAPTERS, testRoutes } from '../../support/api/test-routes.js'

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
const edition = { version: '1.2.3', origin: 'https://mail.example.com', chapters: TEST_CHAPTERS }
const withSelf = [...routes, ...documentationRoutes(routes, edition)]

async function readDocument(t: Parameters<typeof serveRoutes>[0]) {
  const { ask } = await serveRoutes(t, withSelf)
  const { status, json } = await ask({ path: '/openapi.json', key: null })
  t.equal(status, 200)
  return json as {
    openapi: string
    info: { version: string }
    paths: Paths
    components: { schemas: Record<string, object> }
    servers: unknown
    tags: unknown
  }
}

t.test('it is served to anybody and names the version', async t => {
  const document = await readDocument(t)
  t.equal(document.openapi, '3.1.0')
  t.equal(document.info.version, '1.2.3')
  t.ok('Error' in document.components.schemas)
})

t.test(
  'every route below the base URL is in it, and none that is for the machine or its monitor alone',
  async t => {
    const { paths, servers } = await readDocument(t)
    t.same(servers, [{ url: 'https://mail.example.com/api/v1' }])
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map(method => `${method} ${path}`),
    )
    t.same(described.sort(), [
      'delete /notes/{id}',
      'get /notes',
      'get /notes/{id}',
      'get /open',
      'post /notes',
    ])
  },
)

t.test('operations have the names and chapters that their routes give them', async t => {
  const { paths, tags } = await readDocument(t)
  t.match(paths['/notes/{id}']?.['get'], { operationId: 'getNote', tags: ['Email'] })
  t.same(tags, [{ name: 'Email', description: TEST_CHAPTERS.Email }], 'those that have operations')
})

t.test('an operation in a chapter that nobody declares is a fault of the program', async t => {
  t.throws(
    () => openApiDocument(routes, { ...edition, chapters: { Idle: 'Nothing.' } }),
    /undeclared chapter: "Email"/,
  )
})

t.test('a schema with a name stands once, and is referred to wherever it is used', async t => {
  const { paths, components } = await readDocument(t)
  const note = { $ref: '#/components/schemas/Note' }
  const answerOf = (path: string, method: string, status: string) =>
    paths[path]?.[method]?.responses[status]?.content['application/json'].schema
  t.match(components.schemas['Note'], { type: 'object', required: ['id', 'text'] })
  t.match(answerOf('/notes', 'post', '202'), { properties: { data: note } })
  t.match(answerOf('/notes', 'get', '200'), {
    properties: {
      data: { type: 'array', items: note },
      pagination: { $ref: '#/components/schemas/CursorPagination' },
    },
  })
})

t.test('two different schemas cannot have one name', t => {
  const routeOf = (path: string, field: string) =>
    openRoute({
      method: 'GET',
      path,
      access: 'public',
      operationId: field,
      chapter: 'Email',
      summary: 'One of two.',
      response: Type.Object({ [field]: Type.String() }, { title: 'Thing' }),
      handle: async () => ({}),
    })
  t.throws(
    () => openApiDocument([routeOf('/one', 'one'), routeOf('/two', 'two')], edition),
    /two different schemas are called Thing/,
  )
  t.end()
})

t.test(
  'what generators trip over is written plainly: records, enumerations of texts, forms of what is taken loosely',
  t => {
    const described = openRoute({
      method: 'POST',
      path: '/loose',
      access: 'public',
      operationId: 'sendLoose',
      chapter: 'Email',
      summary: 'Takes much.',
      body: Type.Object({
        words: Type.Record(Type.String({ maxLength: 9 }), Type.String()),
        kind: Type.Enum(['one', 'two']),
        at: Type.String({ shownFormat: 'date-time' }),
      }),
      response: Type.Object({}),
      handle: async () => ({}),
    })
    const { paths } = openApiDocument([described], edition) as { paths: Paths }
    t.same(paths['/loose']?.['post']?.requestBody?.content['application/json'].schema, {
      type: 'object',
      required: ['words', 'kind', 'at'],
      properties: {
        words: { type: 'object', additionalProperties: { type: 'string' } },
        kind: { type: 'string', enum: ['one', 'two'] },
        at: { type: 'string', format: 'date-time' },
      },
    })
    t.end()
  },
)

t.test('path parameters are required, fields with a default are not', async t => {
  const { paths } = await readDocument(t)
  t.match(paths['/notes/{id}']?.['get']?.parameters, [{ name: 'id', in: 'path', required: true }])
  t.match(paths['/notes']?.['get']?.parameters, [
    {
      name: 'limit',
      in: 'query',
      required: false,
      schema: { type: 'integer', default: 100, maximum: 1_000 },
    },
    { name: 'offset', in: 'query', required: false },
  ])
})

t.test('keys, permissions and bodies are described', async t => {
  const { paths } = await readDocument(t)
  const post = paths['/notes']?.['post']
  t.same(post?.security, [{ apiKey: [] }])
  t.equal(post?.['x-permission'], 'email:send')
  t.match(post?.requestBody, {
    required: true,
    content: { 'application/json': { schema: { required: ['text'] } } },
  })
  t.same(paths['/open']?.['get']?.security, [])
})

t.test('each success and each error that a route can answer has its status', async t => {
  const { paths } = await readDocument(t)
  const statusesOf = (path: string, method: string) => Object.keys(paths[path]?.[method]?.responses ?? {})
  t.same(statusesOf('/notes', 'post'), [
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
  t.same(statusesOf('/open', 'get'), ['200', '400', '500'])
  const responses = paths['/notes']?.['post']?.responses
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

t.test('answers are described as they come: in data, or as a page', async t => {
  const { paths } = await readDocument(t)
  const schemaOf = (path: string) =>
    paths[path]?.['get']?.responses['200']?.content['application/json'].schema
  t.match(schemaOf('/notes/{id}'), {
    properties: { data: { $ref: '#/components/schemas/Note' } },
  })
  t.match(schemaOf('/notes'), {
    properties: {
      data: { type: 'array' },
      pagination: { $ref: '#/components/schemas/CursorPagination' },
    },
  })
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
  t.match(said('/notes', 'post'), /Requires the permission `email:send`\.$/)
  t.match(said('/notes/{id}', 'delete'), /^Works with any valid key/)
  t.match(said('/open'), /^Needs no key\.$/)
})

t.test('bodies and answers come with an example; a route may give its own', async t => {
  const { paths } = await readDocument(t)
  const post = paths['/notes']?.['post']
  t.same(post?.requestBody?.content['application/json'].example, { text: 'Thank you for your order.' })
  t.match(post?.responses['201']?.content['application/json'].example, {
    data: { id: /^[0-9a-f-]{36}$/, text: /./ },
  })
  const own = openRoute({
    method: 'POST',
    path: '/own',
    access: 'public',
    operationId: 'own',
    chapter: 'Email',
    summary: 'With its own example.',
    body: Type.Object({ text: Type.String() }),
    example: { text: 'mine' },
    exampleAnswer: { heard: 'mine' },
    response: Type.Object({ heard: Type.String() }),
    handle: async () => ({ heard: '' }),
  })
  const document = openApiDocument([own], edition) as { paths: Paths }
  t.same(document.paths['/own']?.['post']?.requestBody?.content['application/json'].example, {
    text: 'mine',
  })
  t.same(document.paths['/own']?.['post']?.responses['200']?.content['application/json'].example, {
    data: { heard: 'mine' },
  })
})

t.test('every code of the table is explained and has an example', async t => {
  const everything = openRoute({
    method: 'GET',
    path: '/everything',
    access: 'public',
    operationId: 'everything',
    chapter: 'Email',
    summary: 'Every error.',
    errors: Object.keys(ERRORS) as (keyof typeof ERRORS)[],
    response: Type.Object({}),
    handle: async () => ({}),
  })
  const { paths } = openApiDocument([everything], edition) as { paths: Paths }
  const responses = paths['/everything']?.['get']?.responses ?? {}
  const codes = Object.values(responses).flatMap(({ content }) =>
    Object.keys(content['application/json'].examples ?? {}),
  )
  t.same(codes.sort(), Object.keys(ERRORS).sort())
})
