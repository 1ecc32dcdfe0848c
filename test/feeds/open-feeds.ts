/** The appliance with campaigns and a server of feeds beside it. */
import { simpleParser } from 'mailparser'
import type { Test } from 'tap'
import { untilLater } from '../support/until.js'
import type { ApplianceOptions } from '../support/program/appliance.js'
import { openCampaigns } from '../campaigns/open-campaigns.js'
import { openFeedServer, rss } from './feed-server.js'

export const PAGE =
  '<h1>{{feed.title}}</h1>{{#each items}}<p><a href="{{this.link}}">{{this.title}}</a> {{this.summary}} {{this.date}}</p>{{/each}}'

export interface ShownRun {
  readonly status: string
  readonly reason: string | null
  readonly attempts: number
  readonly new_items: number
  readonly sent_items: number
  readonly campaign_id: string | null
  readonly is_manual: boolean
  readonly due_at: string
}

/** The clock stands at 2026-01-05T10:00 UTC, a Monday. */
export async function openFeeds(t: Test, options: ApplianceOptions = {}) {
  const server = await openFeedServer(t)
  const postroad = await openCampaigns(t, {
    ...options,
    env: { POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8', ...options.env },
  })
  const { clock, make, get, post } = postroad
  server.answer('/feed', { body: rss(['old']) })
  const list = await make('/lists', { name: 'News' })
  for (const email of ['ann@x.test', 'bob@x.test']) await make('/contacts', { email, list_id: list })
  const template = await make('/templates', { name: 'Feed', html: PAGE })
  const body = {
    ...{ name: 'Blog', url: `${server.url}/feed`, subject: '{{feed.title}}: {{items.0.title}}' },
    ...{ template_id: template, list_id: list, schedule: { every: 'daily', at: '09:00' } },
  }
  let asked = 0
  const runs = async (id: string) => (await get(`/feeds/${id}/runs`)).body.data as ShownRun[]
  return {
    ...postroad,
    server,
    body,
    list,
    template,
    runs,
    publish: (names: readonly string[], path = '/feed') => server.answer(path, { body: rss(names) }),
    makeFeed: (fields: object = {}) => make('/feeds', { ...body, ...fields }),
    runNow: (id: string) =>
      post(`/feeds/${id}/run`, {}, { headers: { 'Idempotency-Key': `run ${(asked += 1)}` } }),
    /** Time passes until a run of the feed is as asked; the newest one. */
    runAfter: async (ms: number, id: string, isSo: (run: ShownRun) => boolean) => {
      clock.skip(ms)
      let newest: ShownRun | undefined
      await untilLater(clock, 'the run', async () => {
        newest = (await runs(id))[0]
        return newest !== undefined && isSo(newest)
      })
      return newest!
    },
    /** The mails of a campaign once it is completed, by address. */
    mailsOf: async (campaign: string) => {
      const status = async () => (await get(`/campaigns/${campaign}`)).body.data.status as string
      await untilLater(clock, 'the end', async () => (await status()) === 'completed')
      const recipients = (await get(`/campaigns/${campaign}/recipients`)).body.data as {
        message_id: string
      }[]
      const mails = await Promise.all(
        recipients.map(async ({ message_id: id }) => {
          const raw = String((await postroad.capture(id)).body.data.raw)
          const { to, subject = '', html } = await simpleParser(Buffer.from(raw, 'latin1'))
          return { to: to && 'text' in to ? to.text : '', subject, html: html || '' }
        }),
      )
      return mails.sort((a, b) => a.to.localeCompare(b.to))
    },
    mailCount: async () => (await get('/email')).body.pagination.total as number,
  }
}

export const HOUR = 3_600_000
