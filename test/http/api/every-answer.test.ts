/**
 * What every route of the running appliance answers when it cannot do what was asked: the rate is used up, the workspace is
 * gone, the database is broken, the query makes no sense. Routes are found in the appliance's own description.
 */
import t, { type Test } from 'tap'
import {
  ask,
  faultOf,
  readOperations,
  usualRequest,
  type Answer,
  type Operation,
} from '../../support/api/api-document.js'
import { openTestAppliance } from '../../support/program/appliance.js'
import { nextTurn, pauseFor } from '../../../src/world/time/clock.js'
import type { FakeClock } from '../../../src/world/time/fake-clock.js'
import { hideTable, lockDatabase, showTable } from '../../support/db/sabotage.js'

const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'
const madeUp = (name: string) => (name === 'email' ? 'nobody@nowhere.example' : MADE_UP)

async function open(t: Test) {
  const appliance = await openTestAppliance(t, { env: { POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0' } })
  const operations = await readOperations(appliance.baseUrl)
  return {
    ...appliance,
    operations,
    keyed: operations.filter(({ needsKey }) => needsKey),
    /** As its example has it. @param query with its question mark @param headers further ones */
    ask: (
      operation: Operation,
      { key, query = '', headers = {} }: { key?: string; query?: string; headers?: object } = {},
    ) => {
      const usual = usualRequest(operation, madeUp, operation.needsKey ? key : undefined)
      return ask(appliance.baseUrl, {
        ...usual,
        path: usual.path + (usual.path.includes('?') ? query.replace('?', '&') : query),
        headers: { ...usual.headers, ...headers },
      })
    },
  }
}

function errorOf({ text }: Answer): { code?: string; message?: string; path?: string } {
  return (JSON.parse(text) as { error?: object }).error ?? {}
}

/** The headers of every answer. */
function showsLimits(t: Test, { headers }: Answer, name: string): void {
  t.match(headers.get('x-ratelimit-limit'), /^\d+$/, name)
  t.match(headers.get('x-ratelimit-remaining'), /^\d+$/, name)
  t.match(headers.get('x-ratelimit-reset'), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, name)
  t.ok(headers.get('x-request-id'), name)
}

// proves: Limits > Rate-limit response headers
t.test('every route shows the limits of its caller, whether it answers or refuses', async t => {
  const { operations, ask, key } = await open(t)
  for (const operation of operations) {
    showsLimits(t, await ask(operation, { key }), operation.name)
    showsLimits(t, await ask(operation, { key, query: '?nonsense=1' }), `${operation.name}: 400`)
    if (operation.needsKey) showsLimits(t, await ask(operation), `${operation.name}: 401`)
  }
})

// proves: Errors > validation_error
// answers: any: validation_error
t.test('what a query cannot be is a 400 on every route, naming the field', async t => {
  const { operations, ask, key } = await open(t)
  for (const operation of operations) {
    const answer = await ask(operation, { key, query: '?nonsense=1' })
    t.equal(faultOf(operation, answer), undefined, operation.name)
    t.equal(answer.status, 400, operation.name)
    t.match(errorOf(answer), { code: 'validation_error', path: 'nonsense' }, operation.name)
  }
})

// proves: Errors > 429 | rate_limited | rate_limit_exceeded
// proves: decisions: Accounts and keys > Each key has rate_limit (requests/min
// answers: keyed: rate_limited
t.test(
  'a key over its rate is a 429 on every route that needs one, and passes after Retry-After',
  async t => {
    const { keyed, ask, clock, ...appliance } = await open(t)
    const key = await appliance.makeKey('--rate-limit', '1')
    for (const operation of keyed) {
      const first = await ask(operation, { key })
      t.not(first.status, 429, operation.name)
      const refused = await ask(operation, { key })
      t.equal(refused.status, 429, operation.name)
      t.equal(errorOf(refused).code, 'rate_limited', operation.name)
      t.equal(faultOf(operation, refused), undefined, operation.name)
      showsLimits(t, refused, operation.name)
      t.equal(refused.headers.get('x-ratelimit-remaining'), '0')
      const seconds = refused.headers.get('retry-after') ?? ''
      t.match(seconds, /^([1-9]|[1-5]\d|60)$/, operation.name)
      await clock.advance(Number(seconds) * 1_000)
    }
  },
)

// proves: Authentication > 4; Errors > workspace_not_found
// answers: keyed: workspace_not_found
t.test(
  'a key of a removed workspace is a 404 workspace_not_found on every route that needs a workspace',
  async t => {
    const { keyed, ask, ...appliance } = await open(t)
    const { id } = await appliance.json<{ id: string }>('workspace', 'create', 'short-lived')
    const key = await appliance.makeKey('--workspace', id)
    await appliance.json('workspace', 'remove', id, '--yes')
    for (const operation of keyed) {
      const answer = await ask(operation, { key })
      t.same([answer.status, errorOf(answer).code], [404, 'workspace_not_found'], operation.name)
      showsLimits(t, answer, operation.name)
    }
  },
)

// proves: Errors > 500 | internal_error
// answers: keyed: internal_error
t.test(
  'a broken database is a 500 on every route that needs a key, and tells nothing of the inside',
  async t => {
    const { keyed, ask, key, clock, log, ...appliance } = await open(t)
    hideTable(appliance, 'api_keys')
    // What was looked up in the last second is not looked up again.
    await clock.advance(2_000)
    for (const operation of keyed) {
      const answer = await ask(operation, { key })
      t.equal(answer.status, 500, operation.name)
      t.same(JSON.parse(answer.text), {
        error: { code: 'internal_error', message: 'unexpected error; it was logged and is safe to retry' },
      })
      showsLimits(t, answer, operation.name)
    }
    const reported = log.lines.filter(({ level, event }) => level === 'error' && event === 'request failed')
    t.equal(reported.length, keyed.length, 'each is logged')
    showTable(appliance, 'api_keys')
    const permissions = keyed.find(({ path }) => path === '/api/v1/api-key/permissions')
    t.equal((await ask(permissions!, { key })).status, 200, 'the server keeps running')
  },
)

// answers: keyed: unavailable
t.test(
  'a database that another process holds locked is a 503 with Retry-After, and is waited for',
  async t => {
    const { keyed, ask, key, clock, log, ...appliance } = await open(t)
    const unlock = lockDatabase(appliance)
    const asked = keyed.map(operation => ({ operation, answer: ask(operation, { key }) }))
    const answers = Promise.all(asked.map(({ answer }) => answer))
    await passUntil(clock, answers)
    let refused = 0
    for (const { operation, answer: pending } of asked) {
      const answer = await pending
      t.not(answer.status, 500, operation.name)
      if (answer.status !== 503) continue
      refused += 1
      t.equal(errorOf(answer).code, 'unavailable', operation.name)
      // Or it waited for its thread, by the same clock.
      t.match(
        errorOf(answer).message,
        /locked by another process|the query took longer|too many long-running queries/,
        operation.name,
      )
      t.match(answer.headers.get('retry-after'), /^[1-9]\d*$/, operation.name)
      t.ok(operation.responses['503'], operation.name)
      showsLimits(t, answer, operation.name)
    }
    t.ok(refused >= 5, `${refused} routes write`)
    t.same(
      log.lines.filter(({ event }) => event === 'request failed'),
      [],
    )
    const send = keyed.find(({ name }) => name === 'POST /api/v1/email/send')
    const waiting = ask(send!, { key })
    await nextTurn()
    unlock()
    t.not((await waiting).status, 503, 'the lock is waited for without blocking others')
  },
)

/** Lets the clock run until it has happened. */
async function passUntil(clock: FakeClock, done: Promise<unknown>): Promise<void> {
  const over = new AbortController()
  void done.finally(() => over.abort())
  while (!over.signal.aborted) {
    await clock.advance(500)
    await pauseFor(5)
  }
}

// proves: Postroad > a local inbox that cannot be read is a 500
t.test('a local inbox that cannot be read is a 500 as well', async t => {
  const appliance = await open(t)
  hideTable(appliance, 'captured_mails')
  for (const path of ['/capture', '/capture/1']) {
    const answer = await ask(appliance.baseUrl, { method: 'GET', path })
    t.same([answer.status, errorOf(answer).code], [500, 'internal_error'], path)
    t.notMatch(answer.text, 'captured_mails')
  }
  showTable(appliance, 'captured_mails')
})

// proves: Postroad > routes for this machine alone are hidden from others
t.test('a route for this machine alone is a 404 through a proxy', async t => {
  const { baseUrl } = await open(t)
  for (const path of ['/capture', '/capture/1']) {
    const answer = await ask(baseUrl, { method: 'GET', path, headers: { 'X-Forwarded-For': '198.51.100.7' } })
    t.equal(answer.status, 404, path)
    t.match(errorOf(answer), { code: 'not_found', message: 'no such path' }, path)
  }
})

// proves: Conventions > A list is returned as
// at and past limit: Limits > Pagination
t.test('every list begins at the first of at most 100, and shows up to 1,000', async t => {
  const { operations, ask, key } = await open(t)
  const lists = operations.filter(
    ({ name, parameters }) => name.startsWith('GET ') && parameters.some(one => one.name === 'limit'),
  )
  t.ok(lists.length >= 8)
  for (const operation of lists) {
    const isThere = operation.pathParameters.length === 0
    for (const query of [
      '?limit=0',
      '?limit=1001',
      '?limit=-1',
      '?limit=x',
      '?limit=1.5',
      '?limit=5&limit=6',
    ])
      t.match(errorOf(await ask(operation, { key, query })), { code: 'validation_error', path: 'limit' })
    for (const query of ['?offset=-1', '?offset=x'])
      t.match(errorOf(await ask(operation, { key, query })), { code: 'validation_error', path: 'offset' })
    for (const [query, limit, offset] of [
      ['', 100, 0],
      ['?limit=1', 1, 0],
      ['?limit=1000&offset=7', 1_000, 7],
    ] as const) {
      const { status, text } = await ask(operation, { key, query })
      t.equal(status, isThere ? 200 : 404, `${operation.name}${query}`)
      if (isThere)
        t.match(
          JSON.parse(text),
          { data: Array, pagination: { limit, offset, total: Number } },
          operation.name,
        )
    }
  }
})
