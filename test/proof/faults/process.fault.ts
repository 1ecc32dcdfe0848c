/** Faults of the process and its machine: a clock that is set, a process that is stopped, no descriptors left, a thread that dies. */
import { execFileSync } from 'node:child_process'
import { appendFileSync, cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Serving } from '../../support/program/process.js'
import { until } from '../../support/until.js'
import { openBusyServer } from './busy-server.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** The clock of the process jumps by what a file says at each SIGUSR2. Its threads keep the machine's. */
const SET_CLOCK = `
import { readFileSync } from 'node:fs'
const now = Date.now
let by = 0
Date.now = () => now() + by
process.on('SIGUSR2', () => { by = Number(readFileSync(process.env.CLOCK_FILE, 'utf8')) })`

t.test(
  'the clock is set back an hour, ahead a day, and right again: mail goes on, is neither early nor expired, and nothing arrives twice',
  async t => {
    const file = join(mkdtempSync('/tmp/postroad-clock-'), 'by')
    t.teardown(() => rmSync(join(file, '..'), { recursive: true }))
    const { server, flow, sink, postroad, settle } = await openBusyServer(t, {
      flags: ['--import', `data:text/javascript,${encodeURIComponent(SET_CLOCK)}`],
      env: { CLOCK_FILE: file },
    })
    const setClock = (by: number) => {
      writeFileSync(file, String(by))
      server.signal('SIGUSR2')
    }
    for (const by of [-HOUR_MS, 0, DAY_MS, 0]) {
      sink.atRcpt = 'defer'
      const deferrals = () => server.log.filter(({ event }) => event === 'message deferred').length
      const before = deferrals()
      await until('mail to be deferred', () => deferrals() > before)
      setClock(by)
      sink.atRcpt = 'accept'
      await flow.more(40)
    }
    await settle()
    t.same(
      server.log.filter(({ event }) => /^message (bounced|failed)$/.test(event)),
      [],
      'no mail expired',
    )
    t.ok(server.log.some(({ event }) => event === 'clock set back, correcting due times'))
    t.same(await postroad.json('queue', 'list'), [])
  },
)

const STOPPED_MS = 12_000

t.test(
  `the process is stopped (SIGSTOP) for ${STOPPED_MS / 1_000} s: it goes on where it was, and nothing arrives twice`,
  async t => {
    const { server, flow, settle } = await openBusyServer(t)
    server.signal('SIGSTOP')
    // The time is the fault itself.
    await sleep(STOPPED_MS)
    server.signal('SIGCONT')
    await flow.more(100)
    await settle()
    t.match(await server.end('SIGTERM'), { status: 0 })
  },
)

t.test(
  'no file descriptors are left: the server keeps what it promised, and goes on once there are some',
  async t => {
    const { server, flow, settle } = await openBusyServer(t)
    const usual = openFiles(server)
    limitFiles(server, `${usual}:`)
    // New connections cannot be accepted, and no mail host can be dialled.
    const strangers = await Promise.all(
      Array.from({ length: 40 }, async () => {
        try {
          const answer = await fetch(`${server.baseUrl}/health`, {
            signal: AbortSignal.timeout(3_000),
            headers: { Connection: 'close' },
          })
          return String(answer.status)
        } catch {
          return 'none'
        }
      }),
    )
    t.comment(`answers without descriptors: ${[...new Set(strangers)].join(', ')}; ${usual} were open`)
    limitFiles(server, `${LIMIT}:`)
    await flow.more(100)
    await settle()
    t.match(await server.get('/health'), { status: 200 })
    t.match(await server.end('SIGTERM'), { status: 0 })
  },
)

function openFiles({ pid }: Serving): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

function limitFiles({ pid }: Serving, limits: string): void {
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${limits}`])
}

/** As many as there is room for in any hard limit. */
const LIMIT = 4_096
const THREAD_LIVES_MS = 2_500

t.test('delivery threads die again and again: each is replaced, and all mail is delivered', async t => {
  // Beside the program, where it finds its packages.
  const folder = mkdtempSync(resolve('build/faulty-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  cpSync('dist', folder, { recursive: true })
  appendFileSync(
    join(folder, 'worker-main.js'),
    `\nsetTimeout(() => { throw new Error('a fault of the test') }, ${THREAD_LIVES_MS})\n`,
  )
  const { server, flow, settle } = await openBusyServer(t, { program: join(folder, 'main.js') })
  const deaths = () => server.log.filter(({ event }) => event === 'delivery thread ended').length
  await until('three threads to die', () => deaths() >= 3, 60_000)
  await flow.more(100)
  // What a thread had sent and not reported when it died is sent again.
  await settle(true)
  t.ok(flow.repeated.length <= deaths() * MOST_IN_FLIGHT, 'only what was in flight arrived twice')
  t.comment(`${deaths()} threads died, ${flow.repeated.length} mails arrived twice`)
})

/** Mails of one thread at a time: `mta.connections_per_destination` of each destination. */
const MOST_IN_FLIGHT = 20
