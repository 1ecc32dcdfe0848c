/** Routes with an Idempotency-Key, over HTTP, with answers kept in memory. */
import t, { type Test } from 'tap'
import Type from 'typebox'
import { AppError } from '../../src/core/errors.js'
import type { IdempotencyClaim, KeptRequest } from '../../src/http/idempotency.js'
import { openApiDocument } from '../../src/http/openapi/document.js'
import { Reply, route } from '../../src/http/route.js'
import { answersInMemory, serveRoutes } from '../support/api/api.js'
import { TEST_CHAPTERS } from '../support/api/test-routes.js'

async function serveOrders(t: Test) {
  const kept = new Map<string, KeptRequest>()
  let made = 0
  let refusal: AppError | undefined
  let hold: Promise<void> = Promise.resolve()
  const make = async (claim: IdempotencyClaim | undefined) => {
    await hold
    const value = { number: (made += 1) }
    if (claim) kept.set(claim.id, { answer: { status: 201, value }, bodyHash: claim.bodyHash })
    return new Reply(201, value)
  }
  /** Leaves keys to the frame. */
  const makeOther = async () => {
    await hold
    if (refusal) throw refusal
    return new Reply(201, { number: (made += 1) })
  }
  const spec = {
    access: 'key',
    chapter: 'Email',
    summary: 'x',
    body: Type.Object({ data: Type.Unknown() }),
    response: Type.Object({ number: Type.Integer() }),
    otherAnswers: { 201: Type.Object({ number: Type.Integer() }) },
    location: ({ number }: { number: number }) => `/orders/${number}`,
    handle: ({ claim }: { claim: IdempotencyClaim | undefined }) => make(claim),
  } as const
  const id = { params: Type.Object({ id: Type.String() }) }
  const routes = [
    route({ method: 'POST', path: '/orders', operationId: 'order', keepsAnswer: true, ...spec }),
    route({
      method: 'POST',
      path: '/orders/:id/send',
      operationId: 'send',
      requiresIdempotencyKey: true,
      keepsAnswer: true,
      ...spec,
      ...id,
    }),
    route({ method: 'POST', path: '/others', operationId: 'other', ...spec, handle: makeOther }),
    route({
      method: 'POST',
      path: '/looks',
      operationId: 'look',
      isReadOnly: true,
      ...spec,
      handle: makeOther,
    }),
    route({ method: 'PUT', path: '/others', operationId: 'put', ...spec, handle: makeOther }),
  ]
  const api = await serveRoutes(t, routes, { keptAnswers: answersInMemory(kept) })
  const order = (headers: Record<string, string>, data: unknown = 1, path = '/orders', key = 'all') =>
    api.ask({ method: 'POST', path: `/api/v1${path}`, body: { data }, headers, key })
  const put = (headers: Record<string, string>) =>
    api.ask({ method: 'PUT', path: '/api/v1/others', body: { data: 1 }, headers })
  const post = (body: string) =>
    api.ask({ method: 'POST', path: '/api/v1/orders', body, headers: keyed('raw') })
  return {
    routes,
    post,
    order,
    put,
    kept,
    made: () => made,
    refuseWith: (error: AppError | undefined) => {
      refusal = error
    },
    holdUntil: (until: Promise<void>) => {
      hold = until
    },
  }
}

const keyed = (key: string) => ({ 'Idempotency-Key': key })

t.test('a repeat gets the answer of the first, and nothing is done again', async t => {
  const { order, made } = await serveOrders(t)
  const first = await order(keyed('a'))
  t.match(first, { status: 201, json: { data: { number: 1 } }, headers: { 'x-idempotency-status': 'new' } })
  const second = await order(keyed('a'))
  t.match(second, { status: 201, json: first.json, headers: { 'x-idempotency-status': 'cached' } })
  t.equal(made(), 1)
  t.match(await order(keyed('b')), { json: { data: { number: 2 } } }, 'another key')
  t.match(await order({}), { json: { data: { number: 3 } }, headers: { 'x-idempotency-status': undefined } })
})

t.test('a body is the same whatever the order of its fields, and another one is refused', async t => {
  const { order, made } = await serveOrders(t)
  await order(keyed('a'), { x: 1, y: [{ p: 1, q: 2 }], 10: 'ten', 9: 'nine' })
  t.match(await order(keyed('a'), { 9: 'nine', 10: 'ten', y: [{ q: 2, p: 1 }], x: 1 }), { status: 201 })
  t.equal(made(), 1)
  for (const other of [{ x: 1 }, { x: 1, y: [{ p: 1, q: 3 }], 10: 'ten', 9: 'nine' }, [1], '1', null])
    t.match(
      await order(keyed('a'), other),
      { status: 409, json: { error: { code: 'idempotency_conflict', path: 'Idempotency-Key' } } },
      JSON.stringify(other),
    )
  t.equal(made(), 1)
})

t.test('a key counts for its path alone, parameters included', async t => {
  const { order, made } = await serveOrders(t)
  await order(keyed('a'))
  await order(keyed('a'), 1, '/orders/7/send')
  await order(keyed('a'), 1, '/orders/8/send')
  t.equal(made(), 3)
  await order(keyed('a'), 1, '/orders/8/send')
  t.equal(made(), 3)
})

t.test('a repeat while the first is in flight is refused', async t => {
  const { order, made, holdUntil } = await serveOrders(t)
  let release = () => {}
  holdUntil(new Promise(resolve => (release = resolve)))
  const first = order(keyed('a'))
  const refused = await Promise.race([first, order(keyed('a')), order(keyed('a'))])
  t.match(refused, { status: 409, json: { error: { code: 'conflict' } } })
  t.match(await order(keyed('a'), 2), { status: 409, json: { error: { code: 'idempotency_conflict' } } })
  release()
  t.match(await first, { status: 201 })
  t.match(await order(keyed('a')), { status: 201, headers: { 'x-idempotency-status': 'cached' } })
  t.equal(made(), 1)
})

t.test('a key that cannot be one is refused, and so is its absence where it is required', async t => {
  const { order, put, made } = await serveOrders(t)
  const refused = { status: 400, json: { error: { code: 'validation_error', path: 'Idempotency-Key' } } }
  for (const key of ['', 'x'.repeat(256), 'ü', 'a\tb']) t.match(await order(keyed(key)), refused, key)
  t.match(await order({}, 1, '/orders/7/send'), refused)
  t.match(await order(keyed('ü'), 1, '/others'), refused)
  t.match(await put(keyed('ü')), { status: 201 }, 'ignored on other methods')
  t.equal(made(), 1)
  t.match(await order(keyed('x'.repeat(255))), { status: 201 })
})

t.test('a body that is nested without end is refused, not unfolded', async t => {
  const { post } = await serveOrders(t)
  const deep = (levels: number) => `{"data": ${'['.repeat(levels)}${']'.repeat(levels)}}`
  const refused = { status: 400, json: { error: { code: 'validation_error', path: 'body' } } }
  t.match(await post(deep(30_000)), refused)
  t.match(await post(deep(100)), refused)
  t.match(await post(deep(90)), { status: 201 })
})

t.test('any POST can be repeated, whether or not its handler knows of keys', async t => {
  const { order, made, kept, refuseWith } = await serveOrders(t)
  const ask = (key: string, data: unknown = 1) => order(keyed(key), data, '/others')
  const first = await ask('a')
  t.match(first, { status: 201, headers: { 'x-idempotency-status': 'new', location: '/api/v1/orders/1' } })
  const cached = { 'x-idempotency-status': 'cached', location: '/api/v1/orders/1' }
  t.match(await ask('a'), { status: 201, json: first.json, headers: cached })
  t.match(await ask('a', 2), { status: 409, json: { error: { code: 'idempotency_conflict' } } })
  t.match(await order(keyed('a'), 1, '/others?x=1'), { status: 400 })
  t.equal(made(), 1)

  refuseWith(new AppError('duplicate', 'it exists'))
  t.match(await ask('b'), { status: 409, json: { error: { code: 'duplicate' } } })
  refuseWith(undefined)
  t.match(await ask('b'), { status: 201, json: { data: { number: 2 } } }, 'a refusal is not kept')

  // As a process leaves it that dies between the work and its answer.
  for (const [id, { bodyHash }] of kept) kept.set(id, { bodyHash, answer: undefined })
  t.match(await ask('b'), { status: 409, json: { error: { code: 'conflict', message: /was interrupted/ } } })
  t.equal(made(), 2)
})

t.test('one of equal requests at once is executed where the handler knows of no keys', async t => {
  const { order, made, holdUntil } = await serveOrders(t)
  let release = () => {}
  holdUntil(new Promise(resolve => (release = resolve)))
  const all = Array.from({ length: 20 }, () => order(keyed('a'), 1, '/others'))
  await Promise.race(all)
  release()
  const answers = await Promise.all(all)
  t.ok(answers.every(({ status }) => status === 201 || status === 409))
  t.equal(answers.filter(({ headers }) => headers['x-idempotency-status'] === 'new').length, 1)
  t.equal(made(), 1)
})

t.test('a POST that changes nothing is executed again', async t => {
  const { order, made, kept } = await serveOrders(t)
  for (const number of [1, 2])
    t.match(await order(keyed('a'), 1, '/looks'), {
      json: { data: { number } },
      headers: { 'x-idempotency-status': 'new' },
    })
  t.equal(made(), 2)
  t.equal(kept.size, 0)
})

t.test('a copy of a thing is found beside it', async t => {
  const id = '0192f000-0000-7000-8000-00000000000c'
  const copy = route({
    ...{ method: 'POST', path: '/orders/:id/duplicate', operationId: 'copy', chapter: 'Email' },
    ...{ access: 'key', summary: 'Copy an order.', status: 201 },
    params: Type.Object({ id: Type.String() }),
    response: Type.Object({ id: Type.String() }),
    handle: () => Promise.resolve({ id }),
  })
  const { ask } = await serveRoutes(t, [copy])
  const made = await ask({ method: 'POST', path: '/api/v1/orders/7/duplicate' })
  t.match(made, { status: 201, headers: { location: `/api/v1/orders/${id}` } })
})

t.test('the description shows the header where it is taken', async t => {
  const { routes } = await serveOrders(t)
  const { paths } = openApiDocument(routes, {
    version: '1',
    origin: 'http://127.0.0.1:8025',
    chapters: TEST_CHAPTERS,
  }) as {
    paths: Record<string, Record<string, object>>
  }
  t.match(paths['/orders']?.['post'], {
    parameters: [{ name: 'Idempotency-Key', in: 'header', required: false }],
    responses: { 409: { description: /conflict[^]*idempotency_conflict/ } },
  })
  t.match(paths['/orders/{id}/send']?.['post'], { parameters: [{ in: 'path' }, { required: true }] })
  t.match(paths['/others']?.['post'], { parameters: [] })
})
