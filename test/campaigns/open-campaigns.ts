/** The appliance with a workspace that may send without limits, and what tests of campaigns ask of it. */
import type { Test } from 'tap'
import type { AskOptions } from '../support/api/client.js'
import { openTestAppliance, type ApplianceOptions } from '../support/program/appliance.js'
import { until } from '../support/until.js'

export const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'

export async function openCampaigns(t: Test, options: ApplianceOptions = {}) {
  const postroad = await openTestAppliance(t, options)
  const { workspaceId } = postroad
  const settings = ['default_from_email=news@shop.test', 'hourly_limit=0', 'daily_limit=0']
  await postroad.run('workspace', 'set', workspaceId, ...settings)
  const key = await postroad.makeKey()
  const api = apiWith(postroad, key)
  let asked = 0
  return {
    ...postroad,
    run: (...args: string[]) => postroad.run(...args),
    json: <T>(...args: string[]) => postroad.json<T>(...args),
    send: (as: string, body: object) => postroad.send(as, body),
    messageOnce: (as: string, id: string, status: string) => postroad.messageOnce(as, id, status),
    makeKey: (...args: string[]) => postroad.makeKey(...args),
    key,
    ...api,
    /** With a key of its own, such as a sandbox's. */
    as: (other: string) => apiWith(postroad, other),
    /** A draft to a new list of so many contacts, with the given fields. */
    draft: async (contacts: readonly string[], fields: object = {}, on = api) => {
      const list = await on.make('/lists', { name: 'News' })
      for (const email of contacts) await on.make('/contacts', { email, list_id: list })
      const template = await on.make('/templates', {
        name: 'T',
        html: '<p>Hello {{firstName|friend}}, <a href="https://shop.test/jugs">look</a></p>',
      })
      return on.make('/campaigns', {
        ...{ name: 'January', subject: 'News', template_id: template, list_id: list },
        ...fields,
      })
    },
    /** Sent, with a unique Idempotency-Key. */
    sendIt: (id: string, body: object = {}, on = api, idempotencyKey = `key ${(asked += 1)}`) =>
      on.post(`/campaigns/${id}/send/api`, body, { headers: { 'Idempotency-Key': idempotencyKey } }),
    campaignOnce: (id: string, what: string, isSo: (campaign: Shown) => boolean, on = api) =>
      until(what, async () => {
        const { data } = (await on.get(`/campaigns/${id}`)).body as { data: Shown }
        return isSo(data) && data
      }),
    /** A mail of the local inbox. */
    capture: (id: string) => postroad.get(`/capture/${id}`),
    /** One value of the database. */
    one: (sql: string): unknown => Object.values(postroad.sql<object>(sql)[0] ?? {})[0],
    /** Rows that take long to come about. */
    change: (statements: readonly string[]): void => {
      for (const statement of statements) postroad.sql(statement)
    },
  }
}

export interface Shown {
  readonly id: string
  readonly status: string
  readonly error: string | null
  readonly total_recipients: number
  readonly progress: Readonly<Record<'pending' | 'queued' | 'done' | 'skipped' | 'cancelled', number>>
  readonly stats: Readonly<Record<string, number>>
  readonly rates: Readonly<Record<string, number>>
}

type Appliance = Awaited<ReturnType<typeof openTestAppliance>>

function apiWith(postroad: Appliance, key: string) {
  const at = (path: string) => `/api/v1${path}`
  const post = (path: string, body: unknown, options: AskOptions = {}) =>
    postroad.post(at(path), body, { key, ...options })
  return {
    get: (path: string) => postroad.get(at(path), { key }),
    post,
    patch: (path: string, body: object) => postroad.patch(at(path), body, { key }),
    remove: (path: string, body?: object) => postroad.delete(at(path), { key }, body),
    make: async (path: string, body: object): Promise<string> => {
      const { status, body: answer } = await post(path, body)
      if (status !== 201) throw new Error(JSON.stringify(answer))
      return String(answer.data.id)
    },
  }
}

export const addresses = (count: number, domain = 'x.test') =>
  Array.from({ length: count }, (_, at) => `c${at}@${domain}`)
