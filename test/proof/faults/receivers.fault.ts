/** Receivers that stall: mail hosts that stop reading, webhooks that never answer. They delay nobody else. */
import t from 'tap'
import { initialise } from '../../support/program/process.js'
import { openSink } from '../../support/smtp/sink.js'
import { until } from '../../support/until.js'
import { openMailbox } from '../mailbox.js'
import { openReceiver } from '../../webhooks/receiver.js'

const MAILS = 100
const STALLED = 10
/** For mail of other destinations, in ms. */
const LIMIT_MS = 15_000

t.test(
  'a mail host that stops reading in DATA delays no other destination, and gets its mail when it reads again',
  async t => {
    const stalled = await openMailbox(t, { seed: 1, deferredShare: 0 })
    const well = await openSink(t)
    stalled.stallsInData = true
    const postroad = await initialise(t, {
      env: {
        POSTROAD_MTA_ROUTES: JSON.stringify([
          { domain: 'stalled.test', host: '127.0.0.1', port: stalled.port },
          { domain: '*', host: '127.0.0.1', port: well.port },
        ]),
        POSTROAD_MTA_TIMEOUTS_BLOCK: '2s',
        POSTROAD_MTA_TIMEOUTS_FINAL_DOT: '1m',
      },
    })
    const server = await postroad.serve()
    // More than what the buffers of both sides hold.
    const large = [{ filename: 'large.bin', content: Buffer.alloc(8_000_000).toString('base64') }]
    const send = async (to: string, attachments: readonly object[] = []) => {
      const { status, body } = await server.send(postroad.key, {
        to,
        from_email: 'me@sender.test',
        subject: 'Hello',
        text: 'Hello',
        attachments,
      })
      if (status !== 200) throw new Error(`refused: ${status} ${JSON.stringify(body)}`)
    }
    for (let mail = 0; mail < STALLED; mail += 1) await send(`ann${mail}@stalled.test`, large)
    await until('a mail to be begun', () => stalled.stalled > 0)
    const startedAt = performance.now()
    for (let mail = 0; mail < MAILS; mail += 1) await send(`bob${mail}@d${mail % 5}.test`)
    await until('the others to arrive', () => well.accepted.length === MAILS, LIMIT_MS)
    t.comment(`${MAILS} mails of others took ${Math.round(performance.now() - startedAt)} ms`)
    stalled.stallsInData = false
    await until(
      'the rest to arrive',
      () => stalled.arrivals.size === STALLED,
      180_000,
      () => `${stalled.arrivals.size} of ${STALLED}`,
    )
    t.equal(stalled.arrived, STALLED, 'each once')
  },
)

t.test('a webhook receiver that never answers delays no other', async t => {
  const [hanging, well] = [await openReceiver(t), await openReceiver(t)]
  hanging.answers({ hangs: true })
  const postroad = await initialise(t, { env: { POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8' } })
  const { key } = postroad
  const server = await postroad.serve()
  for (let hook = 0; hook < 5; hook += 1)
    await server.post(
      '/api/v1/webhooks/triggers',
      { targetUrl: `${hanging.url}/${hook}`, event: 'contact.created' },
      { key },
    )
  await server.post(
    '/api/v1/webhooks/triggers',
    { targetUrl: `${well.url}/hook`, event: 'contact.created' },
    { key },
  )
  const startedAt = performance.now()
  for (let number = 0; number < MAILS; number += 1)
    await server.post('/api/v1/contacts', { email: `n${number}@x.example` }, { key })
  await well.has(MAILS)
  t.comment(`${MAILS} events took ${Math.round(performance.now() - startedAt)} ms`)
  t.ok(hanging.received.length > 0)
})
