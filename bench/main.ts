/**
 * `make bench`: measures the real program as a process of its own and prints tables.
 *
 *   node build/bench/main.js [--quick] [--only accept,submission,relay,render,clicks,backlog,bounces,shapes,api,audience,
 *     webhooks,automations,check,campaign,campaign-million,console,nodes,shares,start,tarpits]
 *     [--million] [--waiting MESSAGES] [--profile]
 *
 * `--million` measures the backlog with 1,000,000 messages as well, which takes a minute to fill. `api` asks with 1,000,000
 * messages of ninety days in the database (3 GB beside the other files; 50,000 with `--quick`), which takes a minute or
 * two to fill, and prints the limit beside each figure; `audience` does the same with 1,000,000 contacts (50,000 with
 * `--quick`); `nodes`, measured only if named, needs PostgreSQL and root, and `--waiting` says how many messages wait in
 * one of its rows (1,000,000; 10,000,000 take 10 GB and ten minutes to fill); `console`, measured only if named, opens every screen in Chromium with 1,000,000 contacts and 10,000,000 messages (20 GB; 20,000
 * and 100,000 with `--quick`). `--profile` leaves, in the working folder, CPU profiles of the server's threads: a folder for each row of `accept`,
 * `submission` and `relay`, and one for `api`, `audience`, `clicks`, `webhooks` and `automations` each (read them with the developer tools of
 * any Chromium); its figures are then too low. Ends by itself, within twenty minutes, and takes everything it started
 * with it. A scenario whose foreign program is missing is skipped, with the package to install. Exit status 0 when everything was measured.
 */
import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { CHROMIUM } from '../test/support/program/browser.js'
import { measureAccept } from './scenarios/accept.js'
import { measureApi } from './scenarios/api.js'
import { measureAudience } from './scenarios/audience.js'
import { measureClicks } from './scenarios/tracking/clicks.js'
import { measureCheck } from './scenarios/campaign-check.js'
import { measureCampaign } from './scenarios/campaign.js'
import { measureConsole } from './scenarios/console.js'
import { endWithEverything, temporaryFolder } from './server/children.js'
import { VERSIONS } from './server/postgres-server.js'
import { measureAutomations } from './scenarios/automations.js'
import { measureBacklog } from './scenarios/backlog.js'
import { measureBouncesAmongReports } from './peers/bounces-among-reports.js'
import { measureBounces } from './scenarios/bounces.js'
import { measureMachine } from './machine.js'
import { measureNodes } from './scenarios/nodes.js'
import { measureRelay } from './scenarios/relay.js'
import { measureRender } from './scenarios/render.js'
import { install } from './server/server-process.js'
import { measureShapes } from './scenarios/shapes.js'
import { measureShares } from './scenarios/shares.js'
import { measureStart } from './scenarios/start.js'
import { measureSubmission, POSTFIX_SOURCE } from './scenarios/submission.js'
import { printFacts, printNotice } from './table.js'
import { measureTarpits } from './scenarios/tarpits.js'
import { measureWebhooks } from './scenarios/webhooks.js'

const SCENARIOS = [
  'accept',
  'submission',
  'relay',
  'render',
  'clicks',
  'backlog',
  'bounces',
  'shapes',
  'api',
  'audience',
  'webhooks',
  'automations',
  'check',
  'campaign',
  'campaign-million',
  'console',
  'nodes',
  'shares',
  'start',
  'tarpits',
] as const
/** They take long, or need much disk. */
const ONLY_IF_NAMED = ['campaign-million', 'console', 'nodes']
/** A scenario that takes longer hangs. */
const limitMsOf = (scenario: string) => (ONLY_IF_NAMED.includes(scenario) ? 3_600_000 : 1_200_000)

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: SCENARIOS.filter(name => !ONLY_IF_NAMED.includes(name)).join(',') },
    profile: { type: 'boolean', default: false },
    million: { type: 'boolean', default: false },
    waiting: { type: 'string' },
  },
})
/** Programs that a scenario cannot do without, and Debian's packages of them. */
const PROGRAMS: Readonly<Record<string, readonly [path: string, packageName: string]>> = {
  submission: [POSTFIX_SOURCE, 'postfix'],
  console: [CHROMIUM, 'chromium'],
  nodes: [VERSIONS, 'postgresql'],
}

const named = values.only.split(',')
const unknown = named.filter(name => !SCENARIOS.some(scenario => scenario === name))
if (unknown.length > 0) {
  process.stderr.write(`bench: no scenario ${unknown.join(', ')}; there are ${SCENARIOS.join(', ')}\n`)
  process.exit(2)
}
const wanted = named.filter(scenario => {
  const [path, packageName] = PROGRAMS[scenario] ?? []
  if (path === undefined || existsSync(path)) return true
  printNotice(
    `${scenario}: not measured, because ${path} is missing. Install Debian's package ${packageName}.`,
  )
  return false
})
if (wanted.length === 0) process.exit(1)

endWithEverything(wanted.reduce((sum, scenario) => sum + limitMsOf(scenario), 0))
const { quick, profile } = values
const folder = temporaryFolder()
const machine = await measureMachine(folder)
printFacts('Machine', machine.facts)
const installation = await install(folder)
if (wanted.includes('accept')) await measureAccept(installation, { limitMs: quick ? 1_500 : 5_000, profile })
const { signaturesPerSecond } = machine
if (wanted.includes('submission'))
  await measureSubmission(installation, { messages: quick ? 2_000 : 20_000, signaturesPerSecond, profile })
if (wanted.includes('relay')) {
  await measureRelay(installation, { messages: quick ? 1_000 : 5_000, signaturesPerSecond, profile })
}
if (wanted.includes('render'))
  await measureRender(installation, {
    renderings: quick ? 10_000 : 100_000,
    messages: quick ? 1_000 : 5_000,
    profile,
  })
if (wanted.includes('clicks'))
  await measureClicks(installation, { perSecond: 5_000, seconds: quick ? 6 : 30, profile })
if (wanted.includes('backlog')) {
  const most = values.million ? [1_000_000] : []
  await measureBacklog(installation, quick ? [10_000] : [10_000, 100_000, ...most])
}
if (wanted.includes('bounces')) {
  await measureBounces(installation, { perSecond: 1_000, seconds: quick ? 5 : 60 })
  await measureBouncesAmongReports(installation, { bouncesPerSecond: 20, seconds: quick ? 10 : 60 })
}
if (wanted.includes('shapes')) await measureShapes(installation)
if (wanted.includes('api'))
  await measureApi(installation, {
    messages: quick ? 50_000 : 1_000_000,
    limitMs: quick ? 500 : 2_000,
    profile,
  })
if (wanted.includes('audience'))
  await measureAudience(installation, {
    contacts: quick ? 50_000 : 1_000_000,
    limitMs: quick ? 1_000 : 3_000,
    profile,
  })
if (wanted.includes('webhooks')) await measureWebhooks(installation, { seconds: quick ? 20 : 60, profile })
if (wanted.includes('automations')) {
  const [contacts, waiting] = quick ? [10_000, 100_000] : [100_000, 1_000_000]
  await measureAutomations(installation, { contacts, waiting, profile })
}
if (wanted.includes('check'))
  await measureCheck(installation, { contacts: quick ? 50_000 : 1_000_000, domains: 200, profile })
if (wanted.includes('campaign'))
  await measureCampaign(installation, {
    contacts: quick ? 10_000 : 200_000,
    domains: 20,
    kills: quick ? 2 : 5,
    relayMessages: quick ? 2_000 : 5_000,
    profile,
  })
if (wanted.includes('campaign-million'))
  await measureCampaign(installation, {
    contacts: quick ? 50_000 : 1_000_000,
    domains: 200,
    kills: 0,
    relayMessages: 0,
    profile,
  })
if (wanted.includes('console'))
  await measureConsole(installation, {
    contacts: quick ? 20_000 : 1_000_000,
    messages: quick ? 100_000 : 10_000_000,
    tries: 3,
  })
if (wanted.includes('shares'))
  await measureShares(installation, { contacts: quick ? 50_000 : 300_000, limitMs: quick ? 2_000 : 5_000 })
if (wanted.includes('start')) await measureStart(installation, { messages: quick ? 20_000 : 100_000 })
if (wanted.includes('nodes'))
  await measureNodes(installation, {
    messages: quick ? 2_000 : 10_000,
    waiting: Number(values.waiting ?? (quick ? 100_000 : 1_000_000)),
    profile,
  })
if (wanted.includes('tarpits')) await measureTarpits(installation, { seconds: quick ? 15 : 60 })
process.exit(wanted.length === named.length ? 0 : 1)
