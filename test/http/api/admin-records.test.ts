/**
 * Routes of the admin API whose record decides: a record of another workspace does not exist for an operator, and a role without the
 * permission is refused. Every such route is in the description; one without a record here fails the test.
 */
import t, { type Test } from 'tap'
import {
  ADMIN_DOCUMENT,
  ask,
  pathWith,
  readOperations,
  type Operation,
} from '../../support/api/api-document.js'
import { tokenWith } from '../../support/program/operators.js'
import { openTestAppliance } from '../../support/program/appliance.js'
import { until } from '../../support/until.js'

/** Only users of the shell create tokens for others. */
const OF_THE_SHELL = 'POST /api/admin/v1/operators/{id}/tokens'

const SOON = '2026-01-05T12:00:00Z'

/** An appliance with a second workspace and one record of each kind in it, by the start of the paths that name it. */
async function open(t: Test) {
  const appliance = await openTestAppliance(t, { env: { POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0' } })
  const { id: other } = await appliance.json<{ id: string }>('workspace', 'create', 'other')
  const key = await appliance.makeKey('--workspace', other)
  const make = async (path: string, body: object) =>
    (await appliance.post(`/api/v1${path}`, body, { key })).body.data
  const domain = await appliance.json<{ id: string }>(
    ...['domain', 'add', 'other.example', '--workspace', other, '--vouch'],
  )
  const webhook = await make('/webhooks/triggers', {
    event: 'email.sent',
    targetUrl: 'https://hooks.example/',
  })
  const mail = { to: 'ann@example.net', from_email: 'shop@other.example', subject: 'S', text: 'T' }
  const sent = (await make('/email/send', mail)).results[0].message_id as string
  const scheduled = (await make('/email/send', { ...mail, send_at: SOON })).message_id as string
  const delivery = await until('a webhook delivery', async () => {
    const { body } = await appliance.get(`/api/v1/webhooks/${webhook.id}/deliveries`, { key })
    return body.data[0] as { id: string } | undefined
  })
  const [apiKey] = await appliance.json<{ id: string }[]>('key', 'list', '--workspace', other)
  const operator = await appliance.json<{ id: string }>(
    ...['operator', 'add', 'eve@example.com', '--role', 'viewer', '--workspace', other],
  )
  const { body: logged } = await appliance.get('/api/v1/activity?limit=1', { key })
  const records: readonly (readonly [path: string, id: string])[] = [
    ['/messages/', sent],
    ['/queue/', scheduled],
    ['/domains/', domain.id],
    ['/webhooks/', webhook.id],
    ['/webhook-deliveries/', delivery.id],
    ['/keys/', apiKey?.id ?? ''],
    ['/operators/', operator.id],
    ['/activity/', (logged.data as { id: string }[])[0]?.id ?? ''],
  ]
  const bodies: Readonly<Record<string, object>> = {
    'POST /domains': { workspace_id: other, domain: 'new.example' },
    'PATCH /keys/{id}': { name: 'renamed' },
    'POST /operators': { email: 'new@example.com', role: 'viewer', workspace_id: other },
    'POST /queue/hold': { message_ids: [scheduled] },
    'POST /queue/release': { message_ids: [scheduled] },
    'POST /queue/retry': { message_ids: [scheduled] },
    'POST /queue/delete': { message_ids: [scheduled] },
  }
  const operations = (await readOperations(appliance.baseUrl, ADMIN_DOCUMENT)).filter(
    operation => operation['x-scope'] === 'record',
  )
  return {
    ...appliance,
    other,
    operations,
    call: async (operation: Operation, token: string) => {
      const name = operation.name.replace('/api/admin/v1', '')
      const below = operation.path.replace('/api/admin/v1', '')
      const id = records.find(([start]) => below.startsWith(start))?.[1]
      if (operation.pathParameters.length > 0 && id === undefined) throw new Error(`no record for ${name}`)
      const body = bodies[name] ?? operation.body?.example
      return ask(appliance.baseUrl, {
        method: operation.method,
        path: pathWith(operation, parameter => (parameter === 'workspaceId' ? other : (id ?? ''))),
        key: token,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
    },
  }
}

t.test(
  'records of another workspace are not found by its foreign owners, and not listed for them',
  async t => {
    const { operations, other, call, workspaceId, ...appliance } = await open(t)
    t.ok(operations.length > 20)
    const token = await tokenWith(appliance, [{ workspaceId, role: 'owner' }])
    for (const operation of operations) {
      const { status, text } = await call(operation, token)
      const isList = operation.method === 'GET' && operation.pathParameters.length === 0
      if (operation.name === OF_THE_SHELL) t.equal(status, 403, text)
      else if (!isList) t.equal(status, 404, `${operation.name}: ${text}`)
      else {
        t.equal(status, 200, operation.name)
        t.notMatch(text, other, operation.name)
      }
    }
  },
)

t.test('a role that lacks the permission of a record is refused, and one that holds it is not', async t => {
  const { operations, other, call, ...appliance } = await open(t)
  const viewer = await tokenWith(appliance, [{ workspaceId: other, role: 'viewer' }])
  const owner = await tokenWith(appliance, [{ workspaceId: other, role: 'owner' }])
  for (const operation of operations) {
    const isReading = operation.method === 'GET'
    const isOpen = isReading && !/^(keys|operators):/.test(operation['x-permission'] ?? '')
    const { status, text } = await call(operation, viewer)
    if (isOpen) t.ok(status < 400, `${operation.name}: ${text}`)
    else t.equal(status, 403, `${operation.name}: ${text}`)
    if (isReading) t.ok((await call(operation, owner)).status < 400, operation.name)
  }
})
