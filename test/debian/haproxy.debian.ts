/** HAProxy with the configuration of docs/haproxy.cfg in front of a server: every listener sees the client's address. */
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { endWithTest } from '../support/program/children.js'
import { runProgram, swaks } from '../support/program/mail-programs.js'
import { initialise, type Serving } from '../support/program/process.js'
import { unusedPort } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

const FILE = 'docs/haproxy.cfg'
const NODES = { NODE1: '127.0.0.1', NODE2: '127.0.0.8' }
/** Where HAProxy connects from. */
const PROXY = '127.0.0.9'
const CLIENT = '127.0.7.9'
/** Ports in the file: HAProxy's, and those of the nodes behind them. */
const PORTS = { http: [80, 8080], https: [443, 8443], submission: [587, 2587], submissionTls: [465, 2465], inbound: [25, 2525] } // prettier-ignore

type Ports = Readonly<Record<keyof typeof PORTS, number>>

t.test('haproxy accepts the documented configuration', async t => {
  const { status, stderr, stdout } = spawnSync('haproxy', ['-c', '-f', FILE], {
    env: { ...process.env, ...NODES },
    encoding: 'utf8',
  })
  t.equal(status, 0, stderr)
  t.match(stdout + stderr, /Configuration file is valid/)
  t.notMatch(stdout + stderr, /WARNING/)
})

interface Site {
  readonly front: Ports
  readonly back: Ports
}

async function openSite(t: Test): Promise<Site & { key: string; server: Serving }> {
  const site = { front: await somePorts(), back: await somePorts() }
  const { key, server } = await openNode(t, site, NODES.NODE1)
  await openHaproxy(t, site)
  return { ...site, key, server }
}

async function openNode(t: Test, { back }: Site, host: string) {
  const at = (port: number) => `${host}:${port}`
  const postroad = await initialise(t, {
    env: {
      POSTROAD_LOG_LEVEL: 'debug',
      POSTROAD_MTA_CAPTURE: 'true',
      POSTROAD_HTTP_LISTEN_TLS: at(back.https),
      POSTROAD_HTTP_REDIRECT_LISTEN: at(back.http),
      POSTROAD_SUBMISSION_LISTEN: at(back.submission),
      POSTROAD_SUBMISSION_LISTEN_TLS: at(back.submissionTls),
      POSTROAD_INBOUND_LISTEN: at(back.inbound),
      POSTROAD_HTTP_PROXY_PROTOCOL_FROM: PROXY,
      POSTROAD_SUBMISSION_PROXY_PROTOCOL_FROM: PROXY,
      POSTROAD_INBOUND_PROXY_PROTOCOL_FROM: PROXY,
    },
  })
  return { key: postroad.key, server: await postroad.serve() }
}

async function somePorts(): Promise<Ports> {
  const entries: [string, number][] = []
  for (const name of Object.keys(PORTS)) entries.push([name, await unusedPort()])
  return Object.fromEntries(entries) as unknown as Ports
}

/** The documented configuration, with other ports, and an address of its own to connect from. */
async function openHaproxy(t: Test, { front, back }: Site): Promise<void> {
  let text = readFileSync(FILE, 'utf8').replace('send-proxy-v2\n', `send-proxy-v2 source ${PROXY}\n`)
  for (const name of Object.keys(PORTS) as (keyof typeof PORTS)[]) {
    const [own, ofNodes] = PORTS[name]
    text = text
      .replace(`bind :::${own} v4v6`, `bind 127.0.0.1:${front[name]}`)
      .replaceAll(`}:${ofNodes}"`, `}:${back[name]}"`)
  }
  const file = join(t.testdir(), 'haproxy.cfg')
  writeFileSync(file, text)
  const child = spawn('haproxy', ['-f', file], { env: { ...process.env, ...NODES }, stdio: 'ignore' })
  endWithTest(t, child)
  await until('HAProxy', async () => (await get(front.https, '/health').catch(() => undefined))?.status)
}

/** Over TLS, from the client's address. */
function get(port: number, path: string): Promise<{ readonly status: number | undefined }> {
  const to = { host: '127.0.0.1', port, path, localAddress: CLIENT, rejectUnauthorized: false, agent: false }
  return new Promise((resolve, reject) => {
    request(to, response => {
      response.resume().on('end', () => resolve({ status: response.statusCode }))
    })
      .on('error', reject)
      .end()
  })
}

const FROM_CLIENT = ['--local-interface', CLIENT]

t.test('mail, submission and HTTP come from the client, not from HAProxy', async t => {
  const { key, server, front } = await openSite(t)

  for (const [subject, door] of [
    ['STARTTLS', ['--port', String(front.submission), '--tls']],
    ['implicit TLS', ['--port', String(front.submissionTls), '--tls-on-connect']],
  ] as const) {
    const from = server.log.length
    const { status, out } = await swaks(
      ...[...FROM_CLIENT, ...door, '--auth', 'PLAIN', '--auth-user', 'apikey', '--auth-password', key],
      ...['--from', 'app@sender.test', '--to', 'ann@one.test', '--header', `Subject: ${subject}`],
    )
    t.equal(status, 0, `${subject} ${/^.*[<*] +[45]\d\d .*$/m.exec(out)?.[0] ?? ''}`)
    t.match(await server.logged('message accepted', from), { peer: CLIENT })
    const { id } = await until(`"${subject}" in the local inbox`, async () => {
      const { body } = await server.get('/capture?limit=100')
      return (body.data as { id: number; subject: string }[]).find(mail => mail.subject === subject)
    })
    const { body } = await server.get(`/capture/${id}`)
    t.match(String(body.data.raw), new RegExp(`^Received: from client\\.test \\(\\[${CLIENT}\\]\\)`, 'm'))
  }

  const beforeInbound = server.log.length
  const inbound = await swaks(
    ...[...FROM_CLIENT, '--port', String(front.inbound)],
    ...['--from', 'someone@x.test', '--to', 'postmaster@mx.postroad.test'],
  )
  t.equal(inbound.status, 0)
  const session = await server.logged('smtp session ended', beforeInbound)
  t.match(session, { peer: CLIENT, messages: 1 })

  const beforeHttp = server.log.length
  t.match(await get(front.https, '/api/v1/domains'), { status: 401 })
  t.match(await server.logged('request refused', beforeHttp), { peer: CLIENT })
  const { out } = await runProgram('curl', [
    ...['--silent', '--interface', CLIENT, '--output', '/dev/null', '--write-out', '%{http_code}'],
    `http://127.0.0.1:${front.http}/u/x`,
  ])
  t.equal(out, '308')

  const beforeForgery = server.log.length
  const forged = await runProgram('curl', [
    ...['--silent', '--max-time', '10', '--interface', CLIENT, '--haproxy-protocol', '--insecure'],
    `http://127.0.0.1:${front.submission}/`,
  ])
  t.not(forged.status, 0)
  t.match(
    await server.logged('smtp session ended', beforeForgery),
    { peer: CLIENT },
    'a header of the client',
  )

  t.notOk(
    server.log.some(({ event }) => event === 'proxy header rejected'),
    'health checks have a header too',
  )
})

t.test('when a node has stopped the other gets its clients at once', async t => {
  const site = await openSite(t)
  const second = await openNode(t, site, NODES.NODE2)
  const { https, inbound } = site.front
  const sessions = () => second.server.log.filter(({ event }) => event === 'smtp session ended').length
  const greet = () => swaks(...FROM_CLIENT, '--port', String(inbound), '--quit-after', 'EHLO')
  await until('the second node to be used', async () => {
    await greet()
    return sessions() > 0
  })
  await site.server.end('SIGTERM')
  const before = sessions()
  for (let n = 0; n < 3; n += 1) {
    t.match(await get(https, '/health'), { status: 200 })
    t.match(await greet(), { status: 0 })
  }
  await until('three sessions', () => sessions() === before + 3)
})
