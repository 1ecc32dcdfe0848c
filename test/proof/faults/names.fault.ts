/** Faults of the name servers that mail is routed by. */
import type { Test } from 'tap'
import t from 'tap'
import { initialise } from '../../support/program/process.js'
import { dnsServer, RCODE, type ScriptedAnswer } from '../../support/smtp/dns-server.js'
import { openSink } from '../../support/smtp/sink.js'
import { until } from '../../support/until.js'
import { healthReasons } from './busy-server.js'

const TTL = 1
const MAILS = 12
const SLOW_MS = 1_000
/** Far more than a lookup, with its retries, takes. */
const LATER_MS = 60_000

const right = (question: string): ScriptedAnswer => {
  const [type, name = ''] = question.split(' ')
  if (type === 'MX' && !name.startsWith('mx.'))
    return { answers: [{ type, name, ttl: TTL, data: { preference: 10, exchange: `mx.${name}` } }] }
  if (type === 'A' && name.startsWith('mx.'))
    return { answers: [{ type, name, ttl: TTL, data: '127.0.0.1' }] }
  return {}
}

/** Mail is routed by DNS to a sink on the loopback. `answer` can be changed while it runs. */
async function open(t: Test, env: Record<string, string> = {}) {
  const sink = await openSink(t)
  const names = {
    answer: (question: string): ScriptedAnswer | readonly ScriptedAnswer[] | 'silence' => right(question),
  }
  const dns = await dnsServer(t, ({ question }) => names.answer(question))
  const postroad = await initialise(t, {
    env: {
      ...{ POSTROAD_DNS_SERVERS: dns.address, POSTROAD_DNS_TIMEOUT: '500ms' },
      ...{
        POSTROAD_MTA_PORT: String(sink.port),
        POSTROAD_MTA_ALLOW_PRIVATE: 'true',
        POSTROAD_MTA_MTA_STS: 'false',
      },
      ...env,
    },
  })
  const server = await postroad.serve()
  let sent = 0
  const send = async () => {
    const ids: string[] = []
    for (let mail = 0; mail < MAILS; mail += 1) {
      sent += 1
      const to = `ann${sent}@d${sent}.test`
      const { status, body } = await server.send(postroad.key, {
        to,
        from_email: 'me@sender.test',
        subject: 'Hello',
        text: 'Hello',
      })
      if (status !== 200) throw new Error(`refused: ${JSON.stringify(body)}`)
      ids.push(String(body.data.results[0].message_id))
    }
    return ids
  }
  const statuses = async (ids: readonly string[]) =>
    Promise.all(
      ids.map(
        async id =>
          (await server.get(`/api/v1/email/${id}`, { key: postroad.key })).body.data.status as string,
      ),
    )
  const allDelivered = (ids: readonly string[]) =>
    until(
      'all to be delivered',
      async () => (await statuses(ids)).every(status => status === 'delivered'),
      LATER_MS,
      async () => (await statuses(ids)).join(),
    )
  const deferredOnce = async (count: number) => {
    await until(
      `${count} deferrals`,
      () => server.log.filter(({ event }) => event === 'message deferred').length >= count,
      LATER_MS,
    )
  }
  return { sink, names, server, send, statuses, allDelivered, deferredOnce }
}

for (const [what, answer] of [
  ['do not answer', 'silence'],
  ['fail (SERVFAIL)', { rcode: RCODE.SERVFAIL }],
] as const)
  t.test(
    `name servers ${what}: mail is accepted and waits, health says so, and it is delivered once they answer`,
    async t => {
      const { names, server, send, statuses, allDelivered, deferredOnce, sink } = await open(t)
      names.answer = () => answer
      const ids = await send()
      await deferredOnce(MAILS)
      t.same(new Set(await statuses(ids)), new Set(['sent']), 'nothing bounces')
      t.match(await server.get('/health'), { status: 200 })
      t.same(await healthReasons(server), ['dns_failing'])
      names.answer = right
      await allDelivered(ids)
      t.equal(sink.accepted.length, MAILS)
      await until('health to be well again', async () => (await healthReasons(server)).length === 0)
    },
  )

t.test(`name servers take ${SLOW_MS} ms: mail is delivered, later`, async t => {
  const { names, send, allDelivered, sink } = await open(t, { POSTROAD_DNS_TIMEOUT: '5s' })
  names.answer = question => ({ ...right(question), afterMs: SLOW_MS })
  await allDelivered(await send())
  t.equal(sink.accepted.length, MAILS)
})

t.test(
  'forged answers (wrong id, wrong question) are ignored, and mail is delivered by the true one',
  async t => {
    const { names, send, allDelivered, sink } = await open(t)
    names.answer = question => {
      const name = question.split(' ')[1] ?? ''
      const forged: ScriptedAnswer = { answers: [{ type: 'A', name, ttl: TTL, data: '192.0.2.66' }] }
      return [
        { ...forged, id: 1 },
        { ...forged, question: { type: 'A', name: 'other.test' } },
        right(question),
      ]
    }
    await allDelivered(await send())
    t.equal(sink.accepted.length, MAILS)
  },
)

t.test('name servers that lead mail to loopback addresses: nothing is connected to', async t => {
  const { send, statuses, sink, server } = await open(t, { POSTROAD_MTA_ALLOW_PRIVATE: 'false' })
  const ids = await send()
  await until(
    'all to have been tried',
    () =>
      new Set(
        server.log
          .filter(({ event }) => /^message (deferred|bounced|failed)$/.test(event))
          .map(line => line['id'] ?? line['message'] ?? line['to']),
      ).size >= MAILS,
    LATER_MS,
  )
  t.equal(sink.begun, 0)
  t.notOk((await statuses(ids)).includes('delivered'))
})
