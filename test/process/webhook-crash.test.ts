/** The real program is killed while it tells receivers of events: nothing is lost. */
import t from 'tap'
import { initialise } from '../support/program/process.js'
import { until } from '../support/until.js'
import { openReceiver } from '../webhooks/receiver.js'

const EVENTS = 30

t.test('deliveries pending at a kill are delivered by the next process with the same id', async t => {
  const receiver = await openReceiver(t)
  const postroad = await initialise(t, { env: { POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8' } })
  const { key } = postroad
  receiver.answers({ hangs: true })
  const first = await postroad.serve()
  const { body } = await first.post(
    '/api/v1/webhooks/triggers',
    { targetUrl: `${receiver.url}/hook`, event: 'contact.created' },
    { key },
  )
  for (let number = 0; number < EVENTS; number += 1)
    await first.post('/api/v1/contacts', { email: `n${number}@x.example` }, { key })
  const [begun] = await receiver.has(1)
  await first.end('SIGKILL')
  receiver.answers({})
  const second = await postroad.serve()
  await receiver.has(EVENTS + 1)
  const told = receiver.received.slice(1)
  t.equal(new Set(told.map(({ json }) => json.data.email)).size, EVENTS)
  const again = told.find(({ json }) => json.data.email === begun!.json.data.email)
  t.equal(again?.headers['x-service-delivery-id'], begun!.headers['x-service-delivery-id'])
  const log = await until('the log', async () => {
    const { body: found } = await second.get(
      `/api/v1/webhooks/${String(body.data.id)}/deliveries?status=succeeded`,
      { key },
    )
    return found.pagination.total === EVENTS && found
  })
  t.match(log.data[0], { attempts: [{ status_code: 200 }] })
  await second.end('SIGTERM')
})
