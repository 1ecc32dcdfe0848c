/** Limits hold over all nodes, however requests are spread over them. */
import t from 'tap'
import { openTwo } from '../support/program/nodes.js'
import type { Initialised } from '../support/program/process.js'

/** As a browser sends it. */
const headers = { 'Sec-Fetch-Site': 'same-origin' }
const OPERATOR = { email: 'ann@example.net', password: 'wrong' }

/** A new key: no node has kept one with another limit. @param rateLimit requests per minute */
async function keyWith(first: Initialised, rateLimit: number): Promise<string> {
  const named = ['--workspace', first.workspaceId, '--name', 'limited']
  const { key } = await first.json<{ key: string }>(
    'key',
    'create',
    ...named,
    '--rate-limit',
    String(rateLimit),
  )
  return key
}

t.test('a key with 60 requests per minute makes 60 over both nodes', async t => {
  const { first, one, two } = await openTwo(t)
  const key = await keyWith(first, 60)
  const statuses: number[] = []
  const began = Date.now()
  for (let at = 0; at < 120; at += 1) {
    const { status } = await (at % 3 === 0 ? one : two).get('/api/v1/templates', { key })
    statuses.push(status)
  }
  const allowed = statuses.filter(status => status !== 429).length
  t.ok(Date.now() - began < 55_000, 'within a minute')
  t.ok(allowed >= 57 && allowed <= 63, `${allowed} of 60`)
})

t.test('what one node allowed counts at the other at once', async t => {
  const { first, one, two } = await openTwo(t)
  const key = await keyWith(first, 20)
  const answers = await Promise.all(Array.from({ length: 20 }, () => one.get('/api/v1/templates', { key })))
  const refused = answers.filter(({ status }) => status !== 200)
  t.same(
    refused.map(({ status, body }) => ({ status, body })),
    [],
  )
  t.equal((await two.get('/api/v1/templates', { key })).status, 429)
})

t.test('failed sign-ins at both nodes lock the account at both', async t => {
  const { one, two } = await openTwo(t)
  const statuses: number[] = []
  for (let at = 0; at < 12; at += 1) {
    const { status } = await (at % 2 === 0 ? one : two).post('/api/admin/v1/session', OPERATOR, { headers })
    statuses.push(status)
  }
  const refused = statuses.indexOf(429)
  t.equal(refused, 10, statuses.join())
  t.same([...new Set(statuses.slice(refused))], [429])
})
