/**
 * The check of a campaign before it is sent: how long it takes, what it costs, and whom it holds up meanwhile.
 *
 * Called by `main.ts` by itself, beside mail that is sent all the time, and by `campaign.ts`. Fails: throws where anybody was not checked.
 */
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import BetterSqlite from 'better-sqlite3'
import { fillList } from '../fill/fill-list.js'
import { sendRequest } from '../fill/letters.js'
import { percentile, short } from '../numbers.js'
import { openProbes, type Probes } from '../peers/probes.js'
import { openSink } from '../peers/sinks.js'
import {
  copyInstallation,
  SENDER,
  serve,
  type Installation,
  type ServerProcess,
} from '../server/server-process.js'
import { printFacts } from '../table.js'

const LIMIT_MS = 900_000
const PARAGRAPHS = 24
const TAGS = ['firstName', 'lastName', 'email', 'company', 'attributes.city', 'attributes.plan']

/** A template of 10 KB with ten merge tags and twenty links. */
export function newsletter(): string {
  const tags = [...TAGS, 'company_name', 'current_date', 'current_year', 'unsubscribe_url']
  const links = Array.from(
    { length: 20 },
    (_, at) => `<a href="https://shop.example/things/${at}?from=mail">Thing ${at}</a>`,
  )
  const text = 'This week three new things are ready, and the first of them costs no more than twelve euros. '
  return [
    `<table>${tags.map(tag => `<tr><td>{{${tag}|friend}}</td></tr>`).join('')}</table>`,
    ...Array.from({ length: PARAGRAPHS }, () => `<p>${text.repeat(3)}</p>`),
    `<ul>${links.map(link => `<li>${link}</li>`).join('')}</ul>`,
  ].join('\n')
}

export async function measureCheck(
  original: Installation,
  {
    contacts,
    domains,
    profile,
  }: { readonly contacts: number; readonly domains: number; readonly profile: boolean },
): Promise<void> {
  const sink = await openSink()
  const installation = await copyInstallation(original, 'check')
  const listId = await fillList(installation, contacts, domains)
  const outgoing = { connections: 100, connectionsPerDestination: 40, port: sink.port, reportsDelays: true }
  const server = await serve(installation, outgoing, profile ? 'check' : undefined)
  const post = async (path: string, body: object) => {
    const response = await fetch(`http://127.0.0.1:${server.port}/api/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${installation.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const { data, ...rest } = (await response.json()) as { data?: { id: string } }
    if (!data) throw new Error(JSON.stringify(rest))
    return data
  }
  const template = await post('/templates', { name: 'News', html: newsletter() })
  const campaign = await post('/campaigns', {
    name: 'News',
    subject: 'News for {{firstName|you}}',
    from_email: SENDER,
    template_id: template.id,
    list_id: listId,
  })
  const probes = openProbes({
    port: server.port,
    key: installation.key,
    path: () => `/campaigns/${campaign.id}`,
    body: number => sendRequest(number, `single${number}@single.example`),
  })
  const facts = await checkFacts(server, join(installation.dataDir, 'postroad.db'), contacts, probes, () =>
    post(`/campaigns/${campaign.id}/check`, {}),
  )
  const peak = server.peakMemory()
  await server.stop()
  await sink.stop()
  const delays = server.delays()
  printFacts(`Check before sending: ${contacts} contacts, beside 20 mails a second`, [
    ...facts,
    [
      'event loop late',
      delays
        ? `p99 ${short(delays.p99Ms)} ms, most ${short(delays.mostMs)} ms; ${delays.longRuns} runs of more than 10 ms of CPU time, the longest ${short(delays.mostCpuMs)} ms`
        : '-',
    ],
    ['peak memory', `${Math.round(peak / 2 ** 20)} MB`],
  ])
}

/** How long the check takes, and what the API is like meanwhile. */
export async function checkFacts(
  server: ServerProcess,
  file: string,
  contacts: number,
  probes: Probes,
  start: () => Promise<unknown>,
): Promise<[string, string][]> {
  const cpuBefore = server.cpuSeconds()
  probes.begin()
  await start()
  const limit = performance.now() + LIMIT_MS
  for (;;) {
    await sleep(250)
    const [status, checked, ms] = checkOf(file)
    if (performance.now() > limit) throw new Error(`the check is ${status} after ${checked} recipients`)
    if (status === 'running') continue
    const cpuSeconds = server.cpuSeconds() - cpuBefore
    const seen = probes.end()
    await probes.close()
    if (status !== 'completed' || checked !== contacts)
      throw new Error(`the check ${status} after ${checked} recipients`)
    return [
      ['check before sending', `${short((1_000 * checked) / ms)}/s, ${short(ms / 1_000)} s in all`],
      [
        'CPU time of the server meanwhile',
        `${short(cpuSeconds)} s, ${short((1e6 * cpuSeconds) / checked)} µs a recipient; load of the machine ${short(loadavg()[0] ?? 0)}`,
      ],
      [
        'API meanwhile, p99',
        `read ${short(percentile(seen.reads, 0.99))} ms, send ${short(percentile(seen.sends, 0.99))} ms`,
      ],
    ]
  }
}

function checkOf(file: string): [status: string, checked: number, ms: number] {
  const handle = new BetterSqlite(file, { readonly: true, timeout: 10_000 })
  const row = handle
    .prepare('select status, checked, finished_at - started_at from campaign_checks')
    .raw()
    .get()
  handle.close()
  return row as [string, number, number]
}
