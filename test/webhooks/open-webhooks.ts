/** The appliance with a receiver of webhooks beside it, and what tests of both ask for again and again. */
import { setTimeout } from 'node:timers/promises'
import type { Test } from 'tap'
import type { ApplianceOptions, TestAppliance } from '../support/program/appliance.js'
import { until } from '../support/until.js'
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
  /** Hours pass: nobody looks at every second of them. */
  const pass = async (ms: number) => {
    postroad.clock.skip(ms)
    // More than once: the worker may be at work, and only then sleep until its next look.
    for (let look = 0; look < 3; look++) {
      await postroad.clock.advance(1_100)
      await setTimeout(20)
    }
  }
  return { ...postroad, receiver, pass, ...api }
}
