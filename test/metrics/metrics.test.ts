/** `/metrics`: access, values after mail was accepted and delivered, and that dashboard and rules use existing metrics. */
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { tokenWith } from '../support/program/operators.js'
import { openTestAppliance, type TestAppliance } from '../support/program/appliance.js'
import { until } from '../support/until.js'

const mail = { from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }
const TOKEN = 'f0e1d2c3b4a5968778695a4b3c2d1e0f'

interface Scraped {
  readonly status: number
  readonly type: string
  readonly text: string
}

/** By node:http, since fetch says which host it names. */
function scrape({ baseUrl }: TestAppliance, headers: Record<string, string> = {}): Promise<Scraped> {
  return new Promise((resolve, reject) => {
    const asked = request(`${baseUrl}/metrics`, { headers }, answer => {
      const pieces: Buffer[] = []
      answer.on('data', (piece: Buffer) => pieces.push(piece))
      answer.on('end', () =>
        resolve({
          status: answer.statusCode ?? 0,
          type: answer.headers['content-type'] ?? '',
          text: Buffer.concat(pieces).toString(),
        }),
      )
    })
    asked.on('error', reject).end()
  })
}

/** @param series e.g. `postroad_queue_messages{destination="google"}` */
function valueOf(text: string, series: string): number | undefined {
  const line = text.split('\n').find(one => one.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

/** The first that shows it. */
function scraped(postroad: TestAppliance, shows: (text: string) => boolean): Promise<Scraped> {
  return until('figures', async () => {
    const one = await scrape(postroad)
    return shows(one.text) && one
  })
}

async function openWithDomain(t: Test, env: Record<string, string> = {}): Promise<TestAppliance> {
  const postroad = await openTestAppliance(t, { env })
  await postroad.json('domain', 'add', 'sender.test', '--workspace', postroad.workspaceId, '--vouch')
  return postroad
}

t.test('accepted and delivered mail is counted by intake, destination and outcome', async t => {
  const postroad = await openWithDomain(t)
  const { key, clock } = postroad
  for (const to of ['ann@gmail.com', 'bob@gmail.com', 'cy@small.test'])
    t.match(await postroad.send(key, { ...mail, to }), { status: 200 })
  t.match(
    await postroad.send(key, {
      ...mail,
      to: 'late@gmail.com',
      send_at: new Date(clock.now() + 3_600_000).toISOString(),
    }),
    {
      status: 202,
    },
  )
  const delivered = (destination: string) =>
    `postroad_delivery_attempts_total{destination="${destination}",outcome="delivered"}`
  const { text } = await scraped(
    postroad,
    found => valueOf(found, delivered('google')) === 2 && valueOf(found, delivered('other')) === 1,
  )
  t.equal(valueOf(text, 'postroad_delivery_seconds_count{destination="google"}'), 2)
  t.equal(valueOf(text, 'postroad_acceptance_seconds_count{way="api"}'), 4)
  t.ok((valueOf(text, 'postroad_database_commit_seconds_count') ?? 0) > 0)
  t.ok((valueOf(text, 'postroad_http_connections') ?? 0) > 0)
  t.ok((valueOf(text, 'postroad_database_bytes') ?? 0) > 100_000)
  t.equal(valueOf(text, 'postroad_disk_free_bytes'), postroad.disk.free)
  t.equal(valueOf(text, 'postroad_health_reason{code="disk_low"}'), 0)
  t.match(text, /^postroad_consumer_lag_events\{consumer="webhooks"\} \d+$/m)
  t.match(text, /^postroad_job_running\{job="deliver webhooks"\} 1$/m)
  t.ok((valueOf(text, 'postroad_certificate_days_left{certificate="tls"}') ?? 0) > 300)
  t.match(text, /^postroad_event_loop_delay_seconds\{quantile="0.99"\} /m)
  t.notMatch(text, /small\.test|sender\.test|gmail\.com/, 'and nothing that strangers write is a label')
  t.notMatch(text, /source_failures_total\{source="\w+"\} [^0]/, 'every part could be measured')

  // A count is cached for ten seconds; the next scrape starts a new count, and the one after shows it.
  await clock.advance(11_000)
  const waiting = (found: string, destination: string) =>
    valueOf(found, `postroad_queue_messages{destination="${destination}"}`)
  const later = await scraped(
    postroad,
    found => waiting(found, 'google') === 1 && waiting(found, 'other') === 0,
  )
  t.ok((valueOf(later.text, 'postroad_queue_oldest_seconds{destination="google"}') ?? 0) >= 11)
})

t.test('only direct connections from listed networks may read metrics without a credential', async t => {
  const postroad = await openTestAppliance(t)
  t.match(await scrape(postroad), { status: 200, type: 'text/plain; version=0.0.4; charset=utf-8' })
  t.match(await scrape(postroad, { Host: 'localhost:9' }), { status: 200 })
  for (const headers of [
    { 'X-Forwarded-For': '192.0.2.7' },
    { Forwarded: 'for=192.0.2.7' },
    { Host: 'rebound.example' },
    { Origin: 'https://page.example' },
  ] as Record<string, string>[])
    t.match(await scrape(postroad, headers), { status: 404, text: /no such path/ }, JSON.stringify(headers))
})

t.test('by default nobody reads metrics or captured mail without a credential; operators do', async t => {
  const postroad = await openTestAppliance(t, {
    env: { POSTROAD_METRICS_NETWORKS: '', POSTROAD_MTA_CAPTURE_NETWORKS: '' },
  })
  const viewer = await tokenWith(postroad, 'viewer')
  const ofOneWorkspace = await tokenWith(postroad, [{ workspaceId: postroad.workspaceId, role: 'owner' }])
  const forwarded = { 'X-Forwarded-For': '192.0.2.7' }
  t.match(await scrape(postroad), { status: 404, text: /no such path/ })
  t.match(await scrape(postroad, { ...forwarded, Authorization: `Bearer ${viewer}` }), {
    status: 200,
    text: /^postroad_build_info/m,
  })
  t.match(await scrape(postroad, { Authorization: `Bearer ${ofOneWorkspace}` }), { status: 403 })
  t.match(await scrape(postroad, { Authorization: `Bearer ${postroad.key}` }), { status: 401 })
  t.equal((await postroad.get('/capture')).status, 404)
  t.equal((await postroad.get('/capture', { key: viewer })).status, 200)
  t.equal((await postroad.get('/capture', { key: ofOneWorkspace })).status, 403)
  t.equal((await postroad.get('/capture', { key: postroad.key })).status, 401)
  for (const path of ['/metrics', '/capture']) t.equal((await postroad.post(path, {})).status, 404)
})

t.test('the token gives access from anywhere, a wrong token does not', async t => {
  const postroad = await openTestAppliance(t, {
    env: { POSTROAD_METRICS_TOKEN: TOKEN, POSTROAD_METRICS_NETWORKS: '' },
  })
  const forwarded = { 'X-Forwarded-For': '192.0.2.7' }
  t.match(await scrape(postroad, { ...forwarded, Authorization: `Bearer ${TOKEN}` }), { status: 200 })
  t.match(await scrape(postroad, { Authorization: `Bearer ${TOKEN}x` }), {
    status: 401,
    text: /unauthorized/,
  })
  t.match(await scrape(postroad), { status: 404 }, 'no network is trusted any more')
  t.notMatch(JSON.stringify(postroad.log.lines), new RegExp(TOKEN))
})

t.test('metrics are not served with the public pages', async t => {
  const postroad = await openTestAppliance(t, { env: { POSTROAD_HTTP_PUBLIC_LISTEN: '127.0.0.1:0' } })
  const [open] = postroad.addresses.public
  const { status } = await scrape({ ...postroad, baseUrl: `http://127.0.0.1:${open?.port ?? 0}` })
  t.equal(status, 404)
})

t.test(
  'dashboard, alert rules and documentation name existing metrics, and every metric is documented',
  async t => {
    const postroad = await openTestAppliance(t)
    const { text } = await scrape(postroad)
    const there = new Set([...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name = '']) => name))
    const named = (file: string) =>
      new Set(
        [...readFileSync(file, 'utf8').matchAll(/\b(?:postroad|process|nodejs)_[a-z0-9_]+\b/g)].map(
          ([name]) => (there.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '')),
        ),
      )
    for (const file of [
      'config/monitoring/grafana-dashboard.json',
      'config/monitoring/alerts.yml',
      'docs/monitoring.md',
    ])
      t.same(
        [...named(file)].filter(name => !there.has(name)),
        [],
        file,
      )
    const told = named('docs/monitoring.md')
    t.same(
      [...there].filter(name => !told.has(name)),
      [],
      'what is not told of',
    )
    JSON.parse(readFileSync('config/monitoring/grafana-dashboard.json', 'utf8'))
  },
)

t.test('alert rules name existing health reasons', async t => {
  const rules = readFileSync('config/monitoring/alerts.yml', 'utf8')
  const { text } = await scrape(await openTestAppliance(t))
  const codes = [...rules.matchAll(/code=~"([^"]+)"/g)].flatMap(([, list = '']) => list.split('|'))
  t.ok(codes.length > 5)
  for (const code of codes) t.equal(valueOf(text, `postroad_health_reason{code="${code}"}`), 0, code)
})
