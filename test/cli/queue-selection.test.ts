/** Selecting parts of the queue, and changing large parts beside a running server. */
import { rmSync } from 'node:fs'
import t from 'tap'
import type { Frame } from '../../src/cli/mail/top.js'
import { controlSocketPath } from '../../src/appliance/listeners/control.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { enqueue, NOW } from '../support/mailroom.js'
import { initialise, type Initialised } from '../support/program/process.js'
import { openSink, unusedPort } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

interface Entry {
  readonly message_id: string
  readonly to: string
  readonly held: boolean
}

const DUE_IN_A_CENTURY = NOW + 100 * 365 * 86_400_000

/** `one.test` and `two.test` are served by the first host, everything else by the second. */
function twoHosts(first: number, second: number): Record<string, string> {
  const route = (domain: string, port: number) => ({ domain, host: '127.0.0.1', port })
  const routes = [route('one.test', first), route('two.test', first), route('*', second)]
  return { POSTROAD_MTA_ROUTES: JSON.stringify(routes), POSTROAD_MTA_RETRY_FIRST: '1h' }
}

let rowsMade = 0

/** Rows for these domains that are not due for long, written as another process would. */
async function fill(postroad: Initialised, rows: Readonly<Record<string, number>>, workspaceId?: string) {
  const file = `${postroad.dataDir}/postroad.db`
  const database = await openSqlite({ file, clock: new FakeClock() })
  for (const [domain, count] of Object.entries(rows)) {
    const waiting = Array.from({ length: count }, () => ({
      id: `01890a5d-ac96-774b-bcce-${String((rowsMade += 1)).padStart(12, '0')}`,
      to: `ann@${domain}`,
      dueAt: DUE_IN_A_CENTURY,
    }))
    await enqueue(database, waiting, { workspaceId: workspaceId ?? postroad.workspaceId })
  }
  await database[Symbol.asyncDispose]()
}

t.test('a site selects exactly the destinations its hosts serve', async t => {
  const postroad = await initialise(t, { env: twoHosts(4001, 4002) })
  await fill(postroad, { 'one.test': 3, 'two.test': 2, 'three.test': 4 })
  t.match(await postroad.json('queue', 'summary', '--by', 'site'), [
    { site: '127.0.0.1:4001', destinations: 2, total: 5, held: 0, by_age: { older: 5 } },
    { site: '127.0.0.1:4002', destinations: 1, total: 4, held: 0 },
  ])
  t.same(await postroad.json('queue', 'hold', '--site', '127.0.0.1:4001'), { changed: 5 })
  t.match(await postroad.json('queue', 'summary'), [
    { destination: 'three.test', total: 4, held: 0 },
    { destination: 'one.test', total: 3, held: 3 },
    { destination: 'two.test', total: 2, held: 2 },
  ])
  t.match(await postroad.run('queue', 'summary', '--limit', '1'), {
    err: /2 more destinations with 5 messages \(of 9 in all\); --limit shows more/,
  })
  const entries = await postroad.json<Entry[]>('queue', 'list', '--site', '127.0.0.1:4001', '--limit', '4')
  t.same(
    entries.map(({ to, held }) => [to, held]),
    [...Array<unknown>(3).fill(['ann@one.test', true]), ['ann@two.test', true]],
  )
  t.same(await postroad.json('queue', 'release', '--site', '127.0.0.1:4001'), { changed: 5 })
  t.same(await postroad.json('queue', 'delete', '--yes', '--site', '127.0.0.1:4002'), { changed: 4 })
  t.same(await postroad.json('queue', 'delete', '--yes', '--site', 'nowhere.test'), { changed: 0 })
  t.match(await postroad.run('queue', 'summary', '--by', 'site'), {
    out: /SITE +DOMAINS +TOTAL.*\n127\.0\.0\.1:4001 +2 +5 +0 [^\n]*\n$/,
  })
})

t.test('a workspace selects all its mail', async t => {
  const postroad = await initialise(t)
  const other = await postroad.json<{ id: string }>('workspace', 'create', 'Other')
  await fill(postroad, { 'one.test': 2 })
  await fill(postroad, { 'two.test': 1, 'three.test': 2 }, other.id)
  t.same(await postroad.json('queue', 'hold', '--workspace', other.id), { changed: 3 })
  t.same(
    (await postroad.json<Entry[]>('queue', 'list', '--workspace', other.id)).map(({ held }) => held),
    [true, true, true],
  )
  t.same(await postroad.json('queue', 'delete', '--yes', '--workspace', other.id), { changed: 3 })
  t.match(await postroad.json('queue', 'summary'), [{ destination: 'one.test', total: 2, held: 0 }])
})

t.test('exactly one part of the queue must be selected', async t => {
  const postroad = await initialise(t)
  for (const args of [
    [],
    ['id', '--all'],
    ['--domain', 'one.test', '--site', 'one.test'],
    ['--workspace', 'w', '--all'],
  ])
    t.match(
      await postroad.run('queue', 'hold', ...args),
      { status: 2, err: /exactly one of/ },
      args.join(' '),
    )
  t.match(await postroad.run('queue', 'summary', '--by', 'colour'), { status: 2, err: /colour/ })
})

t.test('a change of thousands of messages reaches each once while the server accepts mail', async t => {
  const sink = await openSink(t)
  const postroad = await initialise(t, { env: twoHosts(await unusedPort(), sink.port) })
  await fill(postroad, { 'one.test': 4_000, 'two.test': 2_000 })
  const server = await postroad.serve()
  const holding = { isOver: false }
  const held = postroad.spawn('queue', 'hold', '--all', '--json')
  void held.finally(() => (holding.isOver = true))
  const statuses: number[] = []
  while (!holding.isOver) {
    const to = `n${statuses.length}@three.test`
    const mail = { to, from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }
    statuses.push((await server.send(postroad.key, mail)).status)
  }
  t.same([...new Set(statuses)], [200])
  t.equal((await held).status, 0)
  t.match(await postroad.json('queue', 'summary', '--by', 'site'), [{ total: 6_000, held: 6_000 }])
  t.same(await postroad.json('queue', 'release', '--domain', 'two.test'), { changed: 2_000 })
  t.same(await postroad.json('queue', 'delete', '--yes', '--site', (await siteOf(postroad))!), {
    changed: 6_000,
  })
})

async function siteOf(postroad: Initialised): Promise<string | undefined> {
  return (await postroad.json<{ site: string }[]>('queue', 'summary', '--by', 'site'))[0]?.site
}

t.test('mail retried by site is delivered by the running server, held mail is not', async t => {
  const first = await unusedPort()
  const postroad = await initialise(t, { env: twoHosts(first, await unusedPort()) })
  await fill(postroad, { 'one.test': 3, 'two.test': 1, 'three.test': 1 })
  await postroad.json('queue', 'hold', '--domain', 'two.test')
  const server = await postroad.serve()
  const sink = await openSink(t, { port: first })
  t.same(await postroad.json('queue', 'retry', '--site', `127.0.0.1:${first}`), { changed: 4 })
  await sink.acceptedOnce(3)
  await until('the queue knows', async () => (await postroad.json<Entry[]>('queue', 'list')).length === 2)
  t.same(await postroad.json('queue', 'release', '--site', `127.0.0.1:${first}`), { changed: 1 })
  await sink.acceptedOnce(4)
  t.same(
    (
      await until('the rest', async () => {
        const left = await postroad.json<Entry[]>('queue', 'list')
        return left.length === 1 && left
      })
    ).map(({ to }) => to),
    ['ann@three.test'],
  )
  server.signal('SIGTERM')
})

t.test('a retry ends the back-off of its site', async t => {
  const port = await unusedPort()
  const http = `127.0.0.1:${await unusedPort()}`
  const postroad = await initialise(t, {
    env: { ...twoHosts(port, await unusedPort()), POSTROAD_HTTP_LISTEN: http },
  })
  const server = await postroad.serve()
  const to = ['ann@one.test', 'bob@one.test', 'cyd@two.test']
  await server.send(postroad.key, { to, from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' })
  await until('three refused connections have put it to rest', async () => {
    const { sites } = await postroad.json<Frame>('top')
    return sites.some(({ site, backoff_until }) => site === `127.0.0.1:${port}` && backoff_until !== null)
  })
  const sink = await openSink(t, { port })
  // Untried mail is due already and waits only for the site.
  t.match(await postroad.run('queue', 'retry', '--domain', 'one.test'), { out: /^[12] changed\n$/, err: '' })
  // All three, since the rest was the site's; the two that were named are among them.
  t.same((await sink.acceptedOnce(3)).flatMap(({ recipients }) => recipients).sort(), to)
})

t.test('a retry needs an answer of the running server', async t => {
  const postroad = await initialise(t)
  t.match(await postroad.run('queue', 'retry', '--all'), { status: 0, err: '' })
  await postroad.serve()
  t.match(await postroad.run('queue', 'retry', '--all'), { status: 0, err: '' })
  rmSync(controlSocketPath(postroad.dataDir))
  t.match(await postroad.run('queue', 'retry', '--all'), { status: 1, err: /cannot reach/ })
})
