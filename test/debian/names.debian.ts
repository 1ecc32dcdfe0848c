/** The DKIM zone as seen by BIND's tools and an independent resolver, and certificates from Pebble, Let's Encrypt's test CA. */
import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { decode, encode, type Answer } from 'dns-packet'
import t, { type Test } from 'tap'
import { makeSelfSigned } from '../../src/world/tls/self-signed-certificate.js'
import { ask, valuesOf } from '../support/ask-name-server.js'
import { endWithTest } from '../support/program/children.js'
import { runProgram } from '../support/program/mail-programs.js'
import { initialise, type Serving } from '../support/program/process.js'
import { unusedPort } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

const ZONE = 'dkim.mx.postroad.test'

interface ZoneRecord {
  readonly name: string
  readonly value: string
}

const portOf = (server: Serving, listener: string): number => {
  const line = server.log.find(({ event }) => event === 'server started')
  return Number(String(line?.[listener]).split(':').at(-1))
}

async function dig(port: number, ...args: string[]): Promise<string> {
  return (await runProgram('dig', ['@127.0.0.1', '-p', String(port), '+time=5', '+tries=2', ...args])).out
}

/** Of `dig +short`: strings of a record joined. */
const joined = (text: string) => text.trim().replaceAll('" "', '').replaceAll('"', '')

t.test('dig, dnsmasq and named-checkzone agree on the zone', async t => {
  const postroad = await initialise(t, {
    env: { POSTROAD_DNS_LISTEN: '127.0.0.1:0', POSTROAD_MTA_CAPTURE: 'true' },
  })
  const server = await postroad.serve()
  const port = portOf(server, 'dns')
  await postroad.json('domain', 'add', 'one.example', '--vouch', '--workspace', postroad.workspaceId)
  const records = await postroad.json<ZoneRecord[]>('dns', 'zone')
  t.ok(records.length >= 4)
  for (const { name, value } of records) {
    t.equal(joined(await dig(port, '+short', name, 'TXT')), value)
    t.equal(joined(await dig(port, '+short', '+tcp', name.toUpperCase(), 'TXT')), value)
  }
  const [first = { name: '', value: '' }] = records
  t.match(await dig(port, first.name, 'TXT'), /flags: qr aa rd;.*EDNS: version: 0.*udp: 1232/s)
  t.match(await dig(port, first.name, 'A'), /status: NOERROR.*ANSWER: 0.*SOA/s)
  t.match(await dig(port, `none.${ZONE}`, 'TXT'), /status: NXDOMAIN.*SOA\smx\.postroad\.test\./s)
  t.match(await dig(port, 'www.example.com', 'A'), /status: REFUSED/)
  t.match(await dig(port, ZONE, 'AXFR'), /Transfer failed/)
  t.match(await dig(port, ZONE, 'NS', '+short'), /^mx\.postroad\.test\.\n$/)
  t.match(await dig(port, first.name, 'ANY', '+notcp'), /HINFO\s"RFC8482"/)

  const forwarder = await unusedPort()
  const args = [
    '--keep-in-foreground',
    '--no-resolv',
    '--no-hosts',
    '--conf-file=/dev/null',
    '--pid-file=',
    '--user=root',
  ]
  const listen = [`--port=${forwarder}`, '--bind-interfaces', '--listen-address=127.0.0.1']
  endWithTest(t, spawn('dnsmasq', [...args, ...listen, `--server=/${ZONE}/127.0.0.1#${port}`]))
  await t.resolves(
    until('dnsmasq', async () => joined(await dig(forwarder, '+short', first.name, 'TXT')) === first.value),
    'a resolver finds the key',
  )

  const file = join(t.testdir(), 'zone')
  writeFileSync(file, (await postroad.run('dns', 'zone', '--whole')).out)
  t.match(await runProgram('named-checkzone', [ZONE, file]), { status: 0, out: /OK/ })
})

t.test(
  'named-checkzone accepts what domain add --zone prints, with CNAMEs or the keys themselves',
  async t => {
    const postroad = await initialise(t)
    const { out } = await postroad.run(
      ...['domain', 'add', 'one.example', '--zone', '--workspace', postroad.workspaceId],
    )
    const top =
      '$TTL 3600\n@ IN SOA ns.one.example. root.one.example. ( 1 7200 900 1209600 60 )\n@ IN NS ns\nns IN A 192.0.2.1\n'
    const keys = out.replaceAll(/^.* IN CNAME .*\n; or, instead of this CNAME: /gm, '')
    t.notMatch(keys, 'CNAME pr')
    for (const text of [out, keys]) {
      const file = join(t.testdir(), 'zone')
      writeFileSync(file, `${top}${text}\n`)
      t.match(await runProgram('named-checkzone', ['one.example', file]), { status: 0, out: /OK/ })
    }
  },
)

/** What the CA looks names up by: all are this machine, and proofs stand where a CNAME leads, in our zone. */
async function resolver(t: Test, ours: () => number): Promise<number> {
  const socket = createSocket('udp4')
  t.teardown(() => socket.close())
  socket.on('message', (message, from) => {
    const query = decode(message)
    const [{ name, type } = { name: '', type: 'A' as const }] = query.questions ?? []
    const target = `_acme-challenge.${ZONE}`
    const answersOf = async (): Promise<Answer[]> => {
      if (type === 'A') return [{ name, type: 'A', data: '127.0.0.1', ttl: 0 }]
      if (type !== 'TXT') return []
      const values = valuesOf(await ask(ours(), { name: target }))
      return [
        { name, type: 'CNAME', data: target, ttl: 0 },
        ...values.map(data => ({ name: target, type: 'TXT' as const, data, ttl: 0 })),
      ]
    }
    void answersOf().then(answers => {
      const { id = 0, questions = [] } = query
      socket.send(
        encode({ type: 'response', id, flags: 0x0180, questions, answers }),
        from.port,
        from.address,
      )
    })
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return socket.address().port
}

/** @returns the URL of its directory, the certificate that its own server has, and how to learn whom it signs as */
async function pebble(t: Test, httpPort: number, dnsPort: number) {
  const folder = t.testdir()
  const file = (name: string) => join(folder, name)
  const pair = await makeSelfSigned('localhost', Date.now())
  writeFileSync(file('cert.pem'), pair.cert)
  writeFileSync(file('key.pem'), pair.key)
  const [port, management] = [await unusedPort(), await unusedPort()]
  const config = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${management}`,
    certificate: file('cert.pem'),
    privateKey: file('key.pem'),
    httpPort,
    tlsPort: 9,
    ocspResponderURL: '',
    externalAccountBindingRequired: false,
  }
  writeFileSync(file('config.json'), JSON.stringify({ pebble: config }))
  const args = ['-strict', '-config', file('config.json'), '-dnsserver', `127.0.0.1:${dnsPort}`]
  // Of good nonces it refuses a third.
  const env = { ...process.env, PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '15' }
  endWithTest(t, spawn('pebble', args, { env, stdio: 'ignore' }))
  const curl = (url: string) => runProgram('curl', ['-sS', '--cacert', file('cert.pem'), url])
  const directory = `https://localhost:${port}/dir`
  await until('Pebble', async () => (await curl(directory)).out.includes('newOrder'))
  const root = async () => (await curl(`https://localhost:${management}/roots/0`)).out
  return { directory, authority: file('cert.pem'), root }
}

for (const challenge of ['http', 'dns'] as const)
  t.test(`Pebble issues a certificate validated by ${challenge}, and mail clients see it`, async t => {
    const httpPort = await unusedPort()
    let dnsPort = 0
    const ca = await pebble(t, httpPort, await resolver(t, () => dnsPort))
    const postroad = await initialise(t, {
      toml: `public_url = "https://links.postroad.test"\n[tls]\nacme = true\nacme_terms_agreed = true\nacme_contact = "admin@postroad.test"
acme_directory = "${ca.directory}"\nacme_ca = "${ca.authority}"\nacme_challenge = "${challenge}"`,
      env: {
        POSTROAD_MTA_CAPTURE: 'true',
        POSTROAD_DNS_LISTEN: `127.0.0.1:${(dnsPort = await unusedPortOfBoth())}`,
        POSTROAD_HTTP_REDIRECT_LISTEN: `127.0.0.1:${httpPort}`,
        POSTROAD_HTTP_LISTEN_TLS: '127.0.0.1:0',
      },
    })
    const server = await postroad.serve()
    const { names } = await Promise.race([
      server.logged('certificate obtained'),
      server.logged('certificate order failed').then(line => Promise.reject(new Error(JSON.stringify(line)))),
    ])
    t.equal(names, 'mx.postroad.test, links.postroad.test')
    const root = await ca.root()
    for (const [listener, name] of [
      ['submissionTls', 'mx.postroad.test'],
      ['https', 'mx.postroad.test'],
      ['https', 'links.postroad.test'],
    ] as const) {
      const socket = connectTls({
        host: '127.0.0.1',
        port: portOf(server, listener),
        servername: name,
        ca: root,
      })
      await once(socket, 'secureConnect')
      t.equal(socket.authorized, true, `${listener} as ${name}`)
      socket.destroy()
    }
    const doctor = await postroad.run('doctor')
    t.match(doctor.out, /ok {4}certificate: for mx\.postroad\.test, links\.postroad\.test, until/)
  })

async function unusedPortOfBoth(): Promise<number> {
  for (;;) {
    const port = await unusedPort()
    const socket = createSocket('udp4')
    const isFree = await new Promise<boolean>(resolve => {
      socket.once('error', () => resolve(false))
      socket.bind(port, '127.0.0.1', () => resolve(true))
    })
    socket.close()
    if (isFree) return port
  }
}
