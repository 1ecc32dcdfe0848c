/** The appliance with a receiver of webhooks beside it, and what tests of both ask for again and again. */
import type { Test } from 'tap'
import type { ApplianceOptions, TestAppliance } from '../support/program/appliance.js'
import { until, untilLater } from '../support/until.js'
import { openReceiver } from './receiver.js'

export const PATH = '/api/v1/webhooks'

export async function openWebhooks(
  t: Test,
  openAppliance: (options: ApplianceOptions) => Promise<TestAppliance>,
  networks = '127.0.0.0/8',
  toml = '',
) {
  const receiver = await openReceiver(t)
  const postroad = await openAppliance({
    toml,
    env: { POSTROAD_WEBHOOKS_ALLOW_NETWORKS: networks },
  })
  const { key } = postroad
  const api = {
    subscribe: async (event: string, path = '/hook', by = key) => {
      const { status, body } = await postroad.post(
        `${PATH}/triggers`,
        { targetUrl: receiver.url + path, event },
        { key: by },
      )
      t.equal(status, 201, JSON.stringify(body))
      return body.data as { id: string; secret: string; event: string; targetUrl: string }
    },
    addContact: (email: string, by = key) => postroad.post('/api/v1/contacts', { email }, { key: by }),
    list: async (query = '', by = key) =>
      (await postroad.get(`${PATH}/triggers${query}`, { key: by })).body.data as Record<string, unknown>[],
    deliveries: async (id: string, query = '') =>
      (await postroad.get(`${PATH}/${id}/deliveries${query}`, { key })).body,
    /** The newest delivery, once it has been tried so often. */
    tried: (id: string, attempts: number) =>
      until(`attempt ${attempts}`, async () => {
        const { body } = await postroad.get(`${PATH}/${id}/deliveries`, { key })
        return body.data[0]?.attempts.length === attempts ? body.data[0] : undefined
      }),
  }
  const count = (condition: string) =>
    Number(
      postroad.sql<{ n: number }>(
        `select count(*) as n from webhook_deliveries where subscription_id in (select id from webhook_subscriptions where disabled_at is null) and ${condition}`,
      )[0]?.n,
    )
  /** So much time passes, and every attempt that is due by then has ended. @param deliveries how many have to be there */
  const pass = async (ms: number, deliveries = 0) => {
    await until('the deliveries to be there', () => deliveries === 0 || count('1 = 1') >= deliveries)
    postroad.clock.skip(ms)
    await untilLater(
      postroad.clock,
      'the attempts to end',
      () => count(`next_attempt_at <= ${postroad.clock.now()}`) === 0,
    )
  }
  return { ...postroad, receiver, pass, ...api }
}
