/** `postroad webhook`: seen and told again by the operator, beside the running server. */
import t, { type Test } from 'tap'
import { until } from '../support/until.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { openWebhooks } from '../webhooks/open-webhooks.js'

// The clock jumps to this machine's time, so records kept for a month would be deleted.
const FOR_EVER = '[retention]\nwebhook_deliveries = "0"\nevents = "0"\n'
const open = (t: Test) => openWebhooks(t, options => openTestAppliance(t, options), '127.0.0.0/8', FOR_EVER)

t.test('webhooks, deliveries and a test are shown without secrets', async t => {
  const { subscribe, addContact, receiver, tried, ...postroad } = await open(t)
  const { workspaceId } = postroad
  const { id, secret } = await subscribe('contact.created')
  const listed = await postroad.json<object[]>('webhook', 'list')
  t.match(listed, [{ id, event: 'contact.created', status: 'active', workspace_id: workspaceId }])
  t.same(await postroad.json('webhook', 'list', '--workspace', workspaceId), listed)
  await addContact('ann@x.example')
  const { id: deliveryId } = await tried(id, 1)
  t.match(await postroad.json('webhook', 'deliveries', id), [
    { id: deliveryId, status: 'succeeded', attempts: [{ status_code: 200, response: 'ok' }] },
  ])
  t.match(await postroad.json('webhook', 'deliveries', id, '--status', 'failed'), [])
  t.match(await postroad.json('webhook', 'test', id), { success: true, status_code: 200 })
  t.equal(receiver.received.length, 2)
  receiver.answers({ status: 500 })
  t.match(await postroad.run('webhook', 'test', id), { status: 1, out: /status 500 after \d+ ms/ })
  for (const words of [['list'], ['deliveries', id]]) {
    const { status, out } = await postroad.run('webhook', ...words)
    t.match([status, out], [0, new RegExp(words[0] === 'list' ? id : deliveryId)])
    t.notMatch(out, secret)
  }
})

t.test('failed deliveries are redelivered within a second, one or all since a time', async t => {
  const { subscribe, addContact, receiver, tried, pass, ...postroad } = await open(t)
  const { id } = await subscribe('contact.created')
  await addContact('ann@x.example')
  const { id: deliveryId } = await tried(id, 1)
  t.match(await postroad.json('webhook', 'replay', deliveryId), { replayed: 1 })
  // The command goes by this machine's clock, the appliance here by its own.
  await pass(Date.now() - postroad.clock.now())
  await until('the replay', async () => {
    await pass(0)
    return receiver.received.length === 2
  })
  t.equal(receiver.received[1]?.headers['x-service-delivery-id'], deliveryId)
  t.match(await postroad.json('webhook', 'replay', '--webhook', id, '--since', '2026-01-01'), { replayed: 0 })
})

t.test('invalid arguments are usage errors, unknown ids are failures', async t => {
  const { subscribe, ...postroad } = await open(t)
  const { id } = await subscribe('contact.created')
  const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'
  for (const [status, ...words] of [
    [1, 'deliveries', MADE_UP],
    [1, 'deliveries', 'nonsense'],
    [1, 'replay', MADE_UP],
    [1, 'test', MADE_UP],
    [1, 'list', '--workspace', MADE_UP],
    [1, 'replay', '--webhook', MADE_UP, '--since', '2026-01-01'],
    [2, 'replay'],
    [2, 'replay', '--webhook', id],
    [2, 'replay', '--webhook', id, '--since', 'soon'],
    [2, 'replay', MADE_UP, '--since', '2026-01-01'],
    [2, 'deliveries', id, '--status', 'lost'],
    [2, 'deliveries'],
  ] as const)
    t.equal((await postroad.run('webhook', ...words)).status, status, words.join(' '))
})
