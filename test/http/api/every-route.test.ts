/**
 * What holds for every route of the running appliance, found in its own description: no key, no permission, what belongs to
 * another workspace, and requests that no client should send.
 */
import { Validator } from '@seriousme/openapi-schema-validator'
import t, { type Test } from 'tap'
import { Compile } from 'typebox/compile'
import { SeededRandom } from '../../../src/world/fake-random.js'
import {
  ask,
  faultOf,
  readOperations,
  usualRequest,
  type ApiRequest,
  type Operation,
} from '../../support/api/api-document.js'
import { RequestFuzz } from '../../support/api/api-fuzz.js'
import { often } from '../../support/long.js'
import { openTestAppliance } from '../../support/program/appliance.js'

const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'

async function open(t: Test) {
  const appliance = await openTestAppliance(t, { env: { POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0' } })
  const operations = await readOperations(appliance.baseUrl)
  return {
    ...appliance,
    operations,
    keyed: operations.filter(({ needsKey }) => needsKey),
    ask: (request: ApiRequest) => ask(appliance.baseUrl, request),
    /** A separate workspace that can send from the shared address. */
    makeWorkspace: async (name: string): Promise<string> => {
      const { id } = await appliance.json<{ id: string }>('workspace', 'create', name)
      await appliance.run(
        'workspace',
        'set',
        id,
        'default_from_email=shop@sender.example',
        'hourly_limit=0',
        'daily_limit=0',
      )
      return appliance.makeKey('--workspace', id)
    },
  }
}

function codeOf(text: string): unknown {
  return (JSON.parse(text) as { error?: { code?: unknown } }).error?.code
}

/** A value for a parameter that names nothing. */
function madeUp(name: string): string {
  return name === 'email' ? 'nobody@nowhere.example' : MADE_UP
}

// proves: Postroad > the API describes itself, without anything internal
t.test('the description is valid OpenAPI 3.1, and its examples pass their own schemas', async t => {
  const { baseUrl, operations } = await open(t)
  const document = (await (await fetch(`${baseUrl}/openapi.json`)).json()) as never
  t.same((await new Validator().validate(document)).errors, undefined)
  for (const { name, body, responses } of operations) {
    if (body) t.ok(Compile(body.schema).Check(body.example), `${name}: request`)
    for (const [status, { content = {} }] of Object.entries(responses)) {
      const { schema, example } = (content['application/json'] ?? {}) as {
        schema?: object
        example?: unknown
      }
      if (schema && example !== undefined) t.ok(Compile(schema).Check(example), `${name}: ${status}`)
    }
  }
})

t.test('examples show real values, in every request and every answer', async t => {
  const { baseUrl } = await open(t)
  const { paths, webhooks } = (await (await fetch(`${baseUrl}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, DescribedBodies>>
    webhooks: Record<string, { post: DescribedBodies }>
  }
  for (const [name, { operationId, requestBody, responses }] of [
    ...Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, one]) => [`${method} ${path}`, one] as const),
    ),
    ...Object.entries(webhooks).map(([event, { post }]) => [event, post] as const),
  ]) {
    t.match(operationId, /^[a-z]\w+$/, `${name}: operationId`)
    const contents = [requestBody, ...Object.values(responses)].flatMap(one =>
      Object.values(one?.content ?? {}),
    )
    for (const { example, examples } of contents) {
      if (examples !== undefined) continue
      t.ok(example !== undefined, `${name}: has an example`)
      t.same(placeholdersOf(example), [], `${name}: no placeholder`)
    }
  }
})

interface DescribedBodies {
  readonly operationId: string
  readonly requestBody?: Described
  readonly responses: Readonly<Record<string, Described>>
}

interface Described {
  readonly content?: Readonly<Record<string, { readonly example?: unknown; readonly examples?: object }>>
}

/** Paths of what is made up where a schema alone suggests no value: the word text, an object without fields. */
function placeholdersOf(value: unknown, path = ''): string[] {
  if (value === 'text') return [path]
  if (typeof value !== 'object' || value === null) return []
  // An empty body is valid: send a campaign now.
  if (path !== '' && !Array.isArray(value) && Object.keys(value).length === 0) return [path]
  return Object.entries(value).flatMap(([name, inner]) => placeholdersOf(inner, `${path}.${name}`))
}

t.test('operations have unique, readable names and belong to chapters', async t => {
  const { operations } = await open(t)
  const ids = operations.map(({ operationId }) => operationId)
  t.equal(new Set(ids).size, ids.length)
  for (const id of ids)
    t.match(
      id,
      /^(get|list|add|create|remove|send|cancel|verify|rotate|track|update|upsert|delete|erase|restore|replay|estimate|preview|import|export|trigger|pause|resume|duplicate|resend|upload|check|choose)[A-Z]\w+$/,
    )
  for (const { name, tags } of operations) t.match(tags, [/^[A-Z]/], name)
})

function isAsDescribed({ responses }: Operation, status: number, text: string): boolean {
  const { schema } = responses[String(status)]?.content['application/json'] ?? {}
  return schema !== undefined && Compile(schema).Check(JSON.parse(text))
}

/** What there has to be before, which the example alone does not make. */
const NEEDED: ReadonlyMap<string, string> = new Map([
  ['createConversion', 'contact_not_found'],
  ['createCampaign', 'template_not_found'],
  ['createFeed', 'template_not_found'],
])

t.test('examples of requests work as they are pasted, and answers are what is described', async t => {
  const { keyed, ask, key, ...appliance } = await open(t)
  await appliance.run('domain', 'add', 'example.com', '--workspace', appliance.workspaceId, '--vouch')
  const creating = keyed.filter(
    ({ method, pathParameters }) => method === 'POST' && pathParameters.length === 0,
  )
  t.ok(creating.length >= 5)
  for (const operation of creating) {
    const request = usualRequest(operation, madeUp, key)
    // What the operator has declared verified is there already.
    const body = operation.operationId === 'addDomain' ? '{"domain":"shop.example.org"}' : request.body
    const { status, text } = await ask({ ...request, body })
    const missing = NEEDED.get(operation.operationId)
    if (missing !== undefined) t.equal(codeOf(text), missing, operation.name)
    else
      t.ok(status < 300 && isAsDescribed(operation, status, text), `${operation.name}: ${text.slice(0, 300)}`)
  }
  for (const operation of keyed.filter(
    ({ method, pathParameters }) => method === 'GET' && pathParameters.length === 0,
  )) {
    const answer = await ask(usualRequest(operation, madeUp, key))
    // Exports have several formats.
    const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true
    if (!isJson) t.equal(faultOf(operation, answer), undefined, operation.name)
    else
      t.ok(
        isAsDescribed(operation, answer.status, answer.text),
        `${operation.name}: ${answer.text.slice(0, 300)}`,
      )
  }
})

// proves: Authentication > 1; Errors > 401 | unauthorized
// answers: keyed: unauthorized
t.test('without a valid key every route but the open ones is a 401', async t => {
  const { keyed, ask } = await open(t)
  t.ok(keyed.length >= 10)
  for (const operation of keyed)
    for (const key of [undefined, `ts_live_${'0'.repeat(40)}`, 'x']) {
      const { status, text, headers } = await ask(usualRequest(operation, madeUp, key))
      t.same([status, codeOf(text)], [401, 'unauthorized'], operation.name)
      t.equal(headers.get('www-authenticate'), 'Bearer')
    }
})

// proves: Authentication > 4; Errors > 403
// proves: decisions: Accounts and keys > Permissions are resourceaction emailsend emailread
// answers: permitted: forbidden
t.test('with a key that lacks the permission, every route that needs one is a 403', async t => {
  const { keyed, ask, ...appliance } = await open(t)
  const keys = {
    'smtp:send': await appliance.makeKey('--permissions', 'smtp:send'),
    'email:read': await appliance.makeKey('--permissions', 'email:read'),
  }
  for (const operation of keyed) {
    const permission = operation['x-permission']
    if (permission === undefined) continue
    for (const [other, key] of Object.entries(keys))
      if (other !== permission) {
        const { status, text } = await ask(usualRequest(operation, madeUp, key))
        t.same([status, codeOf(text)], [403, 'forbidden'], operation.name)
      }
  }
})

/** Resources with their own not-found code in the contract, by the start of the path below the version. */
const CODES_OF_MISSING: readonly (readonly [path: string, code: string])[] = [
  ['contacts/imports/', 'not_found'],
  ['contacts/', 'contact_not_found'],
  ['templates/', 'template_not_found'],
]

function codeOfMissing({ path }: Operation): string {
  const below = path.replace('/api/v1/', '')
  return CODES_OF_MISSING.find(([begin]) => below.startsWith(begin))?.[1] ?? 'not_found'
}

// proves: Errors > not_found
// answers: naming: not_found
t.test('what does not exist is a 404 on every route that names one thing', async t => {
  const { operations, ask, key } = await open(t)
  const naming = operations.filter(({ pathParameters }) => pathParameters.length > 0)
  t.ok(naming.length >= 5)
  for (const operation of naming)
    for (const valueOf of [madeUp, () => 'nonsense', () => '0', () => "x' or '1'='1"]) {
      const answer = await ask(usualRequest(operation, valueOf, operation.needsKey ? key : undefined))
      t.same([answer.status, codeOf(answer.text)], [404, codeOfMissing(operation)], operation.name)
      t.equal(faultOf(operation, answer), undefined, operation.name)
    }
})

// proves: Conventions > Resources belong to a workspace; Authentication > 2
t.test("another workspace's things are a 404 as well", async t => {
  const { keyed, ask, makeWorkspace } = await open(t)
  const [owner, stranger] = [await makeWorkspace('owner'), await makeWorkspace('stranger')]
  const owned = await makeOne(keyed, request => ask({ ...request, key: owner }))
  const naming = keyed.filter(({ pathParameters }) => pathParameters.length === 1)
  const proven = new Set<string>()
  for (const operation of naming)
    for (const value of owned.get(resourceOf(operation)) ?? []) {
      const { status } = await ask(usualRequest(operation, () => value, stranger))
      t.equal(status, 404, `${operation.name} with ${value}`)
    }
  for (const operation of naming.filter(({ method }) => method === 'GET' || method === 'DELETE'))
    for (const value of owned.get(resourceOf(operation)) ?? []) {
      const { status } = await ask(usualRequest(operation, () => value, owner))
      if (status !== 404) proven.add(resourceOf(operation))
    }
  // Their owner does find them: otherwise nothing was shown above.
  for (const resource of [
    'domains',
    'email',
    'suppressions',
    'contacts',
    'lists',
    'segments',
    'tags',
    'forms',
    'webhooks',
  ])
    t.ok(proven.has(resource), resource)
})

/** First word of the path below the version. */
function resourceOf({ path }: Operation): string {
  return path.replace('/api/v1/', '').split('/')[0] ?? ''
}

/** Makes one of everything that can be made from an example alone. @returns names of what was made, by resource */
async function makeOne(
  operations: readonly Operation[],
  ask: (request: ApiRequest) => Promise<{ status: number; text: string }>,
): Promise<Map<string, Set<string>>> {
  const made = new Map<string, Set<string>>()
  for (const operation of operations) {
    if (operation.method !== 'POST' || operation.pathParameters.length > 0) continue
    const { status, text } = await ask(usualRequest(operation, madeUp))
    if (status >= 300) continue
    const names = made.get(resourceOf(operation)) ?? new Set<string>()
    made.set(resourceOf(operation), names)
    const collect = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return
      for (const [key, inner] of Object.entries(value)) {
        if (typeof inner === 'string' && /^(id|email|\w+_id)$/.test(key)) names.add(inner)
        collect(inner)
      }
    }
    collect((JSON.parse(text) as { data: unknown }).data)
  }
  return made
}

const REQUESTS_PER_ROUTE = often(15, 60)
/** With the other fields of a head it may come to 16 KB. */
const LONG_PATH = 15_000

// proves: Errors > 400 | 404 | validation_error
// answers: any: validation_error
t.test('whatever is sent, the answer is described and never an error of the server', async t => {
  const { operations, ask, makeWorkspace, log } = await open(t)
  const key = await makeWorkspace('fuzz')
  const fuzz = new RequestFuzz(new SeededRandom(20260105))
  const faults: string[] = []
  const statuses = new Map<number, number>()
  for (const operation of operations)
    for (let count = 0; count < REQUESTS_PER_ROUTE; count += 1) {
      const request = fuzz.ask(operation, key)
      const answer = await ask(request)
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      // The head of a request has its bound before any route is known.
      const isLong = request.path.length > LONG_PATH && answer.status === 431
      const fault = isLong ? undefined : faultOf(operation, answer)
      if (fault !== undefined && faults.length < 10)
        faults.push(`${request.method} ${request.path} ${String(request.body).slice(0, 300)}: ${fault}`)
    }
  t.same(faults, [])
  t.same(
    log.lines.filter(({ level }) => level === 'error'),
    [],
  )
  t.ok((statuses.get(400) ?? 0) > 100, 'much was refused')
  t.ok((statuses.get(200) ?? 0) > 10, 'something was not')
})
