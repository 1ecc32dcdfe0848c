/**
 * Makes the installations of an older version that `upgrade.test.ts` upgrades: every kind of thing that version could hold, in the middle of
 * its work, when its server was killed.
 *
 * Run by hand, with the folder of a built checkout of that version in POSTROAD_OLD; the two databases are made one after the other:
 *
 * ```
 * git worktree add --detach ../old c01656a2 && make -C ../old dist/.built
 * POSTROAD_OLD=../old node build/test/upgrade/write-old-installations.js
 * POSTROAD_OLD=../old node build/test/support/db/with-postgres.js node build/test/upgrade/write-old-installations.js
 * ```
 */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer as createHttpServer } from 'node:http'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import BetterSqlite from 'better-sqlite3'
import nodemailer from 'nodemailer'
import t, { type Test } from 'tap'
import { POSTGRES_SERVER, psql } from '../support/db/real-postgres.js'
import { picture } from '../support/content/images.js'
import { install, routeTo, type Serving } from '../support/program/process.js'
import { openBrowser } from '../support/program/operators.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'
import { linksOf, OLD, OLD_FOLDER, postgresFile, sqliteFile, type OldFacts } from './old-installation.js'

const { POSTROAD_OLD: oldCheckout = '' } = process.env
if (oldCheckout === '') throw new Error('POSTROAD_OLD names no built checkout')

const PEOPLE = 240
/** So many mails of the campaign are sent when the workspace's hour is used up. */
const HOURLY_LIMIT = 120
const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const DAY_MS = 86_400_000
const HTML = `<h1>Hello {{firstName|you}}</h1><p><a href="https://shop.example/sale">The sale</a></p>
<p><a href="{{unsubscribe_url}}">Unsubscribe</a></p>`

t.test('an installation is filled and killed', { timeout: 300_000 }, async t => {
  const sink = await openSink(t, {
    refusals: { later: [451, '4.7.1 Greylisted, try again later'], full: [452, '4.2.2 Mailbox full'] },
  })
  const hooks = await openHooks(t)
  const feed = await openFeed(t)
  const { dataDir, environment, ...old } = install(t, {
    program: join(oldCheckout, 'dist/main.js'),
    env: {
      ...routeTo(sink.port),
      POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8',
      POSTROAD_MTA_RETRY_FIRST: '15m',
    },
  })
  const { workspace } = await old.json<{ workspace: { id: string } }>('init')
  const unlimited = ['--rate-limit', '0', '--email-rate-limit', '0']
  const named = ['--workspace', workspace.id, '--name', 'of the upgrade']
  const { key } = await old.json<{ key: string }>('key', 'create', ...named, ...unlimited)
  await old.json(
    'workspace',
    'set',
    workspace.id,
    'default_from_email=shop@shop.test',
    'hourly_limit=0',
    'daily_limit=0',
  )
  const operator = await old.json<{ link_token: string }>(
    'operator',
    'add',
    'ann@operators.test',
    '--role',
    'owner',
  )
  const server = await old.serve()
  const browser = openBrowser(server)
  await browser.ask('POST', '/session/link', { token: operator.link_token })
  const { body: made } = await browser.ask('POST', '/me/tokens', { name: 'script' })
  const { token } = (made as { data: { token: string } }).data
  const api = clientWith(server, key)

  // Audience.
  const list = await api.make('/lists', { name: 'News', public: true })
  const dynamic = { match: 'all', rules: [{ field: 'attributes.plan', operator: 'equals', value: 'pro' }] }
  const pro = await api.make('/lists', { name: 'Pro', type: 'dynamic', conditions: dynamic })
  const tag = await api.make('/tags', { name: 'vip', color: '#3366cc' })
  const segment = await api.make('/segments', { name: 'Pro', conditions: dynamic })
  const rows = Array.from(
    { length: PEOPLE },
    (_, at) => `p${at}@d${at % 7}.test,P${at},${at % 4 ? 'free' : 'pro'},2026-0${1 + (at % 9)}-15`,
  )
  const csv = ['email,first_name,plan,birthday', ...rows, 'nobody,,,'].join('\n')
  const started = await server.post(`/api/v1/contacts/import?list_id=${list}`, csv, {
    key,
    headers: { 'Content-Type': 'text/csv' },
  })
  const { import_id: importId } = started.body.data as { import_id: string }
  await until(
    'the import',
    async () => (await api.read(`/contacts/imports/${importId}`)).status === 'completed',
  )
  const people = (await api.read('/contacts?limit=100')) as { id: string; email: string }[]
  const [first, second, third] = people
  if (!first || !second || !third) throw new Error('people are missing')
  await api.make(`/tags/${tag}/contacts`, { contact_ids: [first.id, second.id] })
  await api.patch(`/contacts/${third.id}`, { subscribed: false })
  await api.make('/suppressions', { email: 'gone@d1.test' })
  await api.make('/conversions', {
    contact_id: first.id,
    value: 49.9,
    currency: 'EUR',
    metadata: { order: 'A-1' },
  })
  await api.make('/track/product-view', {
    contact_email: first.email,
    product_id: 'jug',
    product_name: 'Blue jug',
  })
  const form = await api.make('/forms', { name: 'Sign-up', list_ids: [list], double_opt_in: true })
  await server.post(`/f/${form}`, { email: 'new@d2.test' })

  // Content.
  const template = await api.make('/templates', { name: 'News', html: '<p>First</p>' })
  await api.patch(`/templates/${template}`, { html: HTML })
  await api.make('/saved-blocks', {
    name: 'Address',
    json_structure: { blocks: [{ id: 'one', type: 'header', content: { text: '1 High Street', level: 3 } }] },
  })
  const upload = new FormData()
  upload.set(
    'file',
    new Blob([new Uint8Array(await picture('png', 40, 30))], { type: 'image/png' }),
    'jug.png',
  )
  const media = await fetch(`${server.baseUrl}/api/v1/media`, {
    method: 'POST',
    body: upload,
    headers: { Authorization: `Bearer ${key}` },
  })
  if (!media.ok) throw new Error(`media: ${await media.text()}`)
  await api.make('/domains', { domain: 'other.test' })

  // Webhooks: one that works, one whose deliveries wait for their retries.
  for (const path of ['/works', '/fails'])
    await api.make('/webhooks/triggers', { targetUrl: `${hooks}${path}`, event: 'email.delivered' })

  // Mail: delivered, bounced, deferred, scheduled, in a batch.
  const mail = (to: string, more: object = {}) => ({
    ...{ to, from_email: 'shop@shop.test', subject: `To ${to}`, html: HTML, text: 'Hello', ...more },
  })
  const inOneDay = new Date(Date.now() + DAY_MS).toISOString()
  const attachment = { filename: 'invoice.txt', content: Buffer.from('one jug').toString('base64') }
  for (const body of [
    mail('ann@d1.test', {
      attachments: [attachment],
      reply_to: 'desk@shop.test',
      headers: { 'X-Order': 'A-1' },
    }),
    mail('unknown@d1.test'),
    ...Array.from({ length: 5 }, (_, at) => mail(`later@d${at}.test`)),
    mail('full@d3.test'),
    mail('tomorrow@d4.test', { send_at: inOneDay }),
  ])
    await api.make('/email/send', body)
  await api.make('/email/batch', { messages: [mail('bob@d1.test'), mail('cid@d2.test')] })
  await until('delivered and deferred mail', async () => {
    const states = ((await api.read('/email?limit=100')) as { status: string }[]).map(({ status }) => status)
    // The contract has no word for deferred mail: it is sent, and not delivered.
    const [row] = old.sql<{ tried: string | number }>('select count(*) as tried from attempts')
    return states.filter(state => state === 'sent').length === 6 && Number(row?.tried) >= 10
  })
  await bounceLater(sink.accepted, server)

  // Automations: five people wait for a day.
  const flow = await api.make('/automations', {
    ...{ name: 'Welcome', trigger_type: 'tag_added', trigger_config: { tagName: 'welcome' } },
    steps: [
      { step_type: 'email', config: { templateId: template, subject: 'Welcome' } },
      { step_type: 'delay', config: { duration: 1, unit: 'days' } },
      { step_type: 'tag', config: { action: 'add', tagName: 'welcomed' } },
    ],
  })
  await api.patch(`/automations/${flow}`, { status: 'active' })
  const welcome = await api.make('/tags', { name: 'welcome' })
  const waiting = people.slice(0, 5).map(({ id }) => id)
  await api.make(`/tags/${welcome}/contacts`, { contact_ids: waiting })
  await until('five runs that wait', async () => {
    const runs = (await api.read(`/automations/${flow}/runs`)) as { next_run_at: string | null }[]
    return runs.length === 5 && runs.every(run => run.next_run_at !== null)
  })

  // A feed.
  await api.make('/feeds', {
    ...{ name: 'Blog', url: feed, subject: '{{feed.title}}', template_id: template, list_id: list },
    schedule: { every: 'weekly', at: '09:00', weekday: 1 },
  })

  // Campaigns: a draft, a scheduled one, one that has ended, one that is half sent.
  const about = { template_id: template }
  await api.make('/campaigns', {
    ...about,
    name: 'Draft',
    subject: 'Draft for {{firstName|you}}',
    segment_id: segment,
  })
  const scheduled = await api.make('/campaigns', {
    ...about,
    name: 'Scheduled',
    subject: 'Scheduled for {{firstName|you}}',
    list_id: pro,
  })
  await api.make(`/campaigns/${scheduled}/send/api`, { send_at: inOneDay })
  const ended = await api.make('/campaigns', {
    ...about,
    name: 'Ended',
    subject: 'Ended for {{firstName|you}}',
    segment_id: segment,
  })
  await api.make(`/campaigns/${ended}/send/api`, {})
  await until(
    'the first campaign',
    async () => (await api.read(`/campaigns/${ended}`)).status === 'completed',
  )
  await until('its mails', async () => (await api.read(`/campaigns/${ended}`)).stats.delivered === PEOPLE / 4)
  const opened = sink.accepted.at(-1)
  if (!opened) throw new Error('no mail arrived')
  for (const { path } of linksOf(opened.raw.toString('latin1')))
    await fetch(server.baseUrl + path, { redirect: 'manual', headers: { 'User-Agent': BROWSER } })
  const already = sink.accepted.length
  await old.json('workspace', 'set', workspace.id, `hourly_limit=${already + HOURLY_LIMIT}`)
  const half = await api.make('/campaigns', {
    ...about,
    name: 'Half',
    subject: 'Half for {{firstName|you}}',
    list_id: list,
  })
  const { total_recipients: recipients } = await api.data(`/campaigns/${half}/send/api`, {})
  // Nothing is in flight when the server is killed: what was would come twice, by design.
  await until(
    'half of it',
    async () => {
      const { progress } = await api.read(`/campaigns/${half}`)
      return progress.queued === 0 && progress.done > 0 && progress.done < recipients
    },
    60_000,
  )
  await until('its clicks', async () => (await api.read(`/campaigns/${ended}`)).stats.clicks > 0)

  const answers: Record<string, unknown> = {}
  for (const path of [
    ...[
      '/contacts?limit=100',
      '/lists',
      `/lists/${list}`,
      `/lists/${list}/members?limit=100`,
      '/segments',
      '/tags',
      '/forms',
      '/domains',
    ],
    ...[
      '/suppressions',
      '/bounces',
      '/templates',
      `/templates/${template}`,
      `/templates/${template}/versions`,
      '/saved-blocks',
    ],
    ...[
      '/media',
      '/conversions',
      '/feeds',
      '/campaigns',
      `/campaigns/${ended}`,
      `/campaigns/${ended}/links`,
      '/automations',
    ],
    ...[`/automations/${flow}`, '/webhooks/triggers', '/contacts/imports'],
    ...['/email?limit=100', `/contacts/${first.id}`, '/activity?limit=100'],
  ]) {
    const { status, body } = await server.get(`/api/v1${path}`, { key })
    if (status !== 200) throw new Error(`${path}: ${status}`)
    answers[path] = body
  }
  const mails = sink.accepted.map(({ raw, recipients: [to = ''] }) => ({
    to,
    links: linksOf(raw.toString('latin1')),
  }))
  const facts: OldFacts = {
    version: OLD,
    at: new Date().toISOString(),
    workspaceId: workspace.id,
    ...{ key, operatorToken: token },
    campaign: { id: half, recipients, mailed: sink.accepted.length - already },
    automation: flow,
    hooks: Number(new URL(hooks).port),
    lastMail: mails.at(-1) ?? { to: '', links: [] },
    delivered: sink.accepted.map(({ recipients: [to = ''], raw }) => `${to} ${subjectOf(raw)}`),
    answers,
  }
  await server.end('SIGKILL')
  save(facts, dataDir, environment['POSTROAD_DATABASE_URL'])
})

function subjectOf(raw: Buffer): string {
  return /^Subject: (.*)$/m.exec(raw.toString('latin1'))?.[1]?.trim() ?? ''
}

function save(facts: OldFacts, dataDir: string, postgres: string | undefined): void {
  mkdirSync(OLD_FOLDER, { recursive: true })
  const kind = postgres === undefined ? 'sqlite' : 'postgres'
  writeFileSync(join(OLD_FOLDER, `${OLD}.${kind}.json.gz`), gzipSync(JSON.stringify(facts), { level: 9 }))
  if (postgres === undefined) {
    const file = join(dataDir, 'postroad.db')
    const handle = new BetterSqlite(file)
    handle.pragma('wal_checkpoint(truncate)')
    handle.close()
    writeFileSync(sqliteFile, gzipSync(readFileSync(file), { level: 9 }))
  } else {
    if (POSTGRES_SERVER === undefined) throw new Error('there is no PostgreSQL server')
    const dump = execFileSync('pg_dump', ['--no-owner', '--no-privileges', postgres], {
      maxBuffer: 100_000_000,
    })
    writeFileSync(postgresFile, gzipSync(dump, { level: 9 }))
    psql(postgres, 'select 1')
  }
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- what an older version answers
type Any = any

function clientWith(server: Serving, key: string) {
  let requests = 0
  const data = async (path: string, body: unknown): Promise<Any> => {
    const headers = { 'Idempotency-Key': `upgrade-${(requests += 1)}` }
    const answer = await server.post(`/api/v1${path}`, body, { key, headers })
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body.data
  }
  return {
    data,
    make: async (path: string, body: unknown): Promise<string> => String((await data(path, body)).id),
    async patch(path: string, body: unknown): Promise<void> {
      const answer = await server.patch(`/api/v1${path}`, body, { key })
      if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    },
    async read(path: string): Promise<Any> {
      const { status, body } = await server.get(`/api/v1${path}`, { key })
      if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`)
      return body.data
    },
  }
}

/** Endpoints of webhooks: `/works` and `/fails`. @returns the base URL */
async function openHooks(t: Test): Promise<string> {
  const server = createHttpServer((request, response) => {
    response.statusCode = request.url === '/fails' ? 500 : 200
    request.resume().on('end', () => response.end())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function openFeed(t: Test): Promise<string> {
  const item = '<item><title>First</title><link>https://blog.example/1</link><guid>1</guid></item>'
  const server = createHttpServer((_, response) =>
    response.end(`<rss version="2.0"><channel><title>Blog</title>${item}</channel></rss>`),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/feed.xml`
}

/** A delivery status notification that comes after the delivery (RFC 3464), to the return path of a mail. */
async function bounceLater(
  mails: readonly { sender: string; recipients: readonly string[] }[],
  server: Serving,
): Promise<void> {
  const mail = mails.find(({ recipients }) => recipients.includes('bob@d1.test'))
  const started = server.log.find(({ event }) => event === 'server started')
  if (!mail || !started) throw new Error('no mail to bounce')
  const raw = [
    'From: MAILER-DAEMON@d1.test',
    `To: ${mail.sender}`,
    'Subject: Undelivered',
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type=delivery-status; boundary=b',
    '',
    '--b',
    'Content-Type: text/plain',
    '',
    'No such user.',
    '--b',
    'Content-Type: message/delivery-status',
    '',
    'Reporting-MTA: dns; mx.d1.test',
    '',
    'Final-Recipient: rfc822; bob@d1.test',
    'Action: failed',
    'Status: 5.1.1',
    'Diagnostic-Code: smtp; 550 5.1.1 No such user',
    '',
    '--b--',
    '',
  ].join('\r\n')
  const port = Number(String(started['inbound']).split(':').pop())
  const transport = nodemailer.createTransport({ host: '127.0.0.1', port, secure: false, ignoreTLS: true })
  await transport.sendMail({ envelope: { from: '', to: [mail.sender] }, raw })
  transport.close()
}
