/** What `config check` finds beside the notation: what serve refuses, and what will hurt. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { initialise, install } from '../support/program/process.js'
import { dnsServer, RCODE } from '../support/smtp/dns-server.js'
import { unusedPort } from '../support/smtp/sink.js'
import { runCli } from '../../src/cli/program.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { systemWorld } from '../../src/world/world.js'
import { makeSelfSigned } from '../../src/world/tls/self-signed-certificate.js'

interface Check {
  readonly ok: boolean
  readonly findings: readonly { severity: string; path: string; what: string; fix: string }[]
}

async function check(postroad: ReturnType<typeof install>): Promise<Check & { status: number | null }> {
  const { status, out } = await postroad.run('config', 'check', '--json')
  return { status, ...(JSON.parse(out) as Check) }
}

async function run(args: readonly string[], env: Readonly<Record<string, string>>) {
  let [out, err] = ['', '']
  const status = await runCli(args, {
    env,
    world: { ...systemWorld(), log: new FakeLog() },
    print: text => (out += text),
    complain: text => (err += text),
  })
  return { status, out, err }
}

/** A listener for the public pages, as an ordinary installation has one. */
const LINKS_SERVED = { POSTROAD_HTTP_PUBLIC_LISTEN: '127.0.0.1:0' }

const pathsOf = ({ findings }: Check, severity: string) =>
  findings.filter(one => one.severity === severity).map(({ path }) => path)

t.test('a valid configuration passes without findings', async t => {
  const postroad = await initialise(t, { env: LINKS_SERVED })
  chmodSync(postroad.dataDir, 0o700)
  t.match(await postroad.run('config', 'check'), { status: 0, out: 'ok\n' })
})

t.test('syntax faults name their line and quote nothing from the file', async t => {
  const postroad = install(t)
  postroad.writeConfig(
    '[mta]\nconnections = "many"\n[[mta.routes]]\ndomain = "x.example"\npassword = "hunter2"\nfirst = 1',
  )
  const { status, err } = await postroad.run('config', 'check')
  t.equal(status, 2)
  t.match(err, /line 4: mta\.connections: /)
  t.match(err, /line 8: mta\.routes\.0\.first: unknown key/)
  t.match(err, /line 5: mta\.routes\.0\.host: missing/)
  t.notMatch(err, /hunter2/)
})

t.test(
  'an unusable certificate is a fault, and serve exits with the status of an invalid configuration',
  async t => {
    const folder = t.testdir({ text: 'no certificate' })
    const cert = join(folder, 'text')
    const toml = `[tls]\ncert = "${cert}"\nkey = "${join(folder, 'none')}"`
    const postroad = await initialise(t, { toml })
    t.match(await check(postroad), {
      ok: false,
      status: 1,
      findings: [{ path: 'tls.key', what: /none cannot be read/ }],
    })
    t.match(await postroad.spawn('serve'), { status: 2, err: /tls\.key: .*cannot be read/ })
    postroad.writeConfig(`[tls]\ncert = "${cert}"\nkey = "${cert}"`)
    t.match(await check(postroad), { ok: false, findings: [{ path: 'tls.cert', what: /cannot be used/ }] })
    postroad.writeConfig(`[tls]\ncert = "${cert}"`)
    t.match(await check(postroad), {
      ok: false,
      findings: [{ path: 'tls', what: /only one of tls.cert and tls.key/ }],
    })
    postroad.writeConfig(`[secrets]\nkey = "${cert}"`)
    t.match(await check(postroad), { ok: false, findings: [{ path: 'secrets.key', what: /32 bytes/ }] })
  },
)

t.test('expired or mismatched certificates and world-readable files get warnings', async t => {
  const folder = t.testdir()
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const pair = await makeSelfSigned('other.example', Date.now() - 20 * 365 * 86_400_000)
  writeFileSync(cert, pair.cert)
  writeFileSync(key, pair.key, { mode: 0o644 })
  chmodSync(key, 0o644)
  const route = '[[mta.routes]]\ndomain = "*"\nhost = "127.0.0.1"\nusername = "me"\npassword = "hunter2"'
  const postroad = await initialise(t, {
    toml: `[tls]\ncert = "${cert}"\nkey = "${key}"\n${route}`,
    env: LINKS_SERVED,
  })
  chmodSync(postroad.dataDir, 0o755)
  chmodSync(postroad.configFile, 0o644)
  const found = await check(postroad)
  t.match(found, { ok: true, status: 0 })
  t.same(pathsOf(found, 'warning').sort(), ['', 'data_dir', 'tls.cert', 'tls.cert', 'tls.key'])
  const told = found.findings.map(({ what }) => what).join('\n')
  t.match(told, /expired/)
  t.match(told, /is not for mx\.postroad\.test/)
  t.match(told, /contains passwords/)
  t.notMatch(told, /hunter2/)
  t.ok(found.findings.every(({ fix }) => fix.length > 5))
})

t.test('a readable secrets.key and a password in database.url get warnings', async t => {
  const folder = t.testdir()
  const key = join(folder, 'secrets.key')
  writeFileSync(key, Buffer.alloc(32, 7).toString('base64'))
  chmodSync(key, 0o644)
  const postroad = await initialise(t, { toml: `[secrets]\nkey = "${key}"`, env: LINKS_SERVED })
  chmodSync(postroad.dataDir, 0o700)
  chmodSync(postroad.configFile, 0o644)
  t.match(await check(postroad), {
    ok: true,
    findings: [{ severity: 'warning', path: 'secrets.key', what: /accessible to every user/, fix: /^chmod/ }],
  })
  chmodSync(key, 0o640)
  t.same(pathsOf(await check(postroad), 'warning'), [])
  for (const url of [
    'postgres://postroad:hunter2@db.example/postroad',
    'postgres://postroad:hunter2@a,b/postroad',
    'postgres://postroad@db.example/postroad?password=hunter2',
  ]) {
    const { out } = await install(t, {
      toml: `[database]\nurl = "${url}"`,
      env: LINKS_SERVED,
      onFolder: dataDir => {
        mkdirSync(dataDir, { mode: 0o700 })
        chmodSync(join(dataDir, '..', 'postroad.toml'), 0o644)
      },
      database: url,
    }).run('config', 'check')
    t.match(out, /contains passwords and is readable by every user/, url)
    t.notMatch(out, 'hunter2')
  }
})

t.test('open relays and addresses this machine lacks get warnings', async t => {
  const postroad = await initialise(t, {
    toml: '[[submission.trusted_networks]]\nnetwork = "0.0.0.0/0"\nkey = "x"\n[mta]\nsource_addresses = ["192.0.2.77", "127.0.0.1"]',
    env: {
      ...LINKS_SERVED,
      POSTROAD_HTTP_LISTEN: '0.0.0.0:0',
      POSTROAD_SUBMISSION_LISTEN: '0.0.0.0:0',
      POSTROAD_SUBMISSION_REQUIRE_TLS: 'false',
      POSTROAD_SUBMISSION_PROXY_PROTOCOL_FROM: '10.0.0.5/32',
      POSTROAD_INBOUND_PROXY_PROTOCOL_FROM: '10.0.0.5, 64.0.0.0/2',
    },
  })
  chmodSync(postroad.dataDir, 0o700)
  t.same(pathsOf(await check(postroad), 'warning'), [
    'http.listen',
    'submission.require_tls',
    'submission.trusted_networks.0.network',
    'inbound.proxy_protocol_from',
    'mta.source_addresses',
  ])
})

t.test('a data directory that is not a directory is a fault', async t => {
  const postroad = install(t)
  t.match(await check(postroad), {
    ok: true,
    findings: [{ path: 'data_dir', what: /does not exist yet/ }, {}],
  })
  mkdirSync(join(postroad.dataDir, '..'), { recursive: true })
  writeFileSync(postroad.dataDir, '')
  t.match(await check(postroad), { ok: false, findings: [{ path: 'data_dir', what: /is not a directory/ }] })
})

t.test('names that a CA would refuse or not find are reported before ordering', async t => {
  const postroad = await initialise(t, { env: LINKS_SERVED })
  chmodSync(postroad.dataDir, 0o700)
  const findings = async (toml: string) => {
    postroad.writeConfig(toml)
    const { findings: found } = await check(postroad)
    return found.map(({ severity, path }) => `${severity} ${path}`)
  }
  const listen = '[http]\nredirect_listen = ["127.0.0.1:80"]\n'
  const right = `${listen}[tls]\nacme = true\nacme_terms_agreed = true\n`
  t.same(await findings(right), [])
  t.same(await findings(`${listen}[tls]\nacme = true`), ['fault tls.acme_terms_agreed'])
  t.same(await findings(right.replace(listen, '')), ['warning http.redirect_listen'])
  t.same(await findings(right.replace(':80"', ':8080"')), [], 'port 80 of a container may be mapped to it')
  t.same(await findings(`public_url = "http://mx.postroad.test"\n${listen}`), ['fault http.redirect_listen'])
  t.same(await findings(`${right}cert = "/x"\nkey = "/y"`), ['fault tls.acme'])
  t.same(await findings(`${right}acme_directory = "http://ca.example/dir"`), ['fault tls.acme_directory'])
  t.same(await findings(`${right}acme_ca = "/nowhere/ca.pem"`), ['fault tls.acme_ca'])
  t.same(await findings(`${right}acme_challenge = "dns"`), ['fault tls.acme_challenge'])
  t.same(await findings(`${right}acme_challenge = "dns"\n[dns]\nlisten = ["127.0.0.1:53"]`), [])
  t.same(await findings('[dns]\nlisten = ["127.0.0.1:53"]\ndkim_zone = "postroad.test"'), [
    'fault dns.dkim_zone',
  ])
})

t.test('public HTTPS with a self-signed certificate gets a warning', async t => {
  const postroad = await initialise(t, { env: LINKS_SERVED })
  chmodSync(postroad.dataDir, 0o700)
  postroad.writeConfig('[http]\nlisten_tls = ["0.0.0.0:443"]')
  t.same(pathsOf(await check(postroad), 'warning'), ['tls.cert'])
})

t.test('a public_url without a listener or proxy behind it gets a warning', async t => {
  const postroad = await initialise(t)
  chmodSync(postroad.dataDir, 0o700)
  const warned = async (toml: string) => {
    postroad.writeConfig(toml)
    return pathsOf(await check(postroad), 'warning').filter(path => path === 'public_url')
  }
  t.match((await check(postroad)).findings, [
    {
      path: 'public_url',
      what: /https:\/\/mx\.postroad\.test, but no listener serves it/,
      fix: /public_listen_tls/,
    },
  ])
  t.same(await warned('public_url = "http://links.postroad.test"'), ['public_url'])
  t.same(await warned('[http]\npublic_listen_tls = ["[::]:443"]'), [])
  t.same(await warned('[http]\ntrusted_proxies = ["127.0.0.1/32"]'), [])
  t.same(await warned('[http]\nproxy_protocol_from = ["10.0.0.5"]'), [])
  t.same(await warned('public_url = "http://127.0.0.1:8025"'), [])
})

t.test('while the server runs, config check and doctor fetch public_url', async t => {
  const [plain, secure] = [await unusedPort(), await unusedPort()]
  const listen = `[http]\npublic_listen = ["127.0.0.1:${plain}"]\npublic_listen_tls = ["127.0.0.1:${secure}"]`
  const postroad = await initialise(t, { toml: `public_url = "http://127.0.0.1:${plain}"\n${listen}` })
  chmodSync(postroad.dataDir, 0o700)
  const server = await postroad.serve()
  const found = async (url: string) => {
    postroad.writeConfig(`public_url = "${url}"\n${listen}`)
    const { findings } = await check(postroad)
    const about = ({ path }: { path: string }) => path === 'public_url'
    const checks = JSON.parse((await postroad.run('doctor', '--json')).out) as {
      name: string
      status: string
    }[]
    const seen = checks.filter(({ name }) => name === 'public_url').map(({ status }) => status)
    return { told: findings.filter(about).map(({ what }) => what), doctor: seen }
  }
  t.same(await found(`http://127.0.0.1:${plain}`), { told: [], doctor: ['ok'] })
  t.match(await found(`https://localhost:${secure}`), { told: [/refuse the certificate/], doctor: ['fail'] })
  t.match(
    await found(server.baseUrl),
    { told: [/something else \(status 404\)/], doctor: ['fail'] },
    'the API',
  )
  t.match(await found(`http://127.0.0.1:${await unusedPort()}`), {
    told: [/nothing listens/],
    doctor: ['fail'],
  })
  const web = createServer((_, response) =>
    response.writeHead(301, { Server: 'nginx', Location: '/x' }).end(),
  )
  await new Promise<void>(resolve => web.listen(0, '127.0.0.1', resolve))
  t.teardown(() => web.close())
  const { port } = web.address() as AddressInfo
  t.match(await found(`http://127.0.0.1:${port}`), { told: [/301 from nginx, redirects to \/x/] })
  await server.end('SIGTERM')
  t.same(
    await found(`http://127.0.0.1:${port}`),
    { told: [], doctor: [] },
    'nobody can answer before the start',
  )
})

t.test('two listeners on one port are a fault, and serve exits before opening anything', async t => {
  const postroad = await initialise(t, {
    env: {
      ...LINKS_SERVED,
      POSTROAD_SUBMISSION_LISTEN: '127.0.0.1:2587',
      POSTROAD_SUBMISSION_LISTEN_TLS: '127.0.0.1:2465',
      POSTROAD_INBOUND_LISTEN: '127.0.0.1:2525',
    },
  })
  chmodSync(postroad.dataDir, 0o700)
  const faults = async (env: Record<string, string>) => {
    const environment = { ...postroad.environment, ...env }
    const { out } = await run(['config', 'check', '--json'], environment)
    const { findings } = JSON.parse(out) as Check
    return findings.filter(({ severity }) => severity === 'fault').map(({ path, what }) => `${path}: ${what}`)
  }
  t.same(await faults({}), [])
  t.same(await faults({ POSTROAD_INBOUND_LISTEN: '[::]:2587' }), [
    'inbound.listen: [::]:2587 uses the same port as 127.0.0.1:2587 of submission.listen',
  ])
  t.same(await faults({ POSTROAD_SUBMISSION_LISTEN: '[::]:2525', POSTROAD_INBOUND_LISTEN: '0.0.0.0:2525' }), [
    'inbound.listen: 0.0.0.0:2525 uses the same port as [::]:2525 of submission.listen',
  ])
  t.match(await faults({ POSTROAD_INBOUND_LISTEN: '127.0.0.1:25,127.0.0.1:25' }), [/of the same list$/])
  t.match(await faults({ POSTROAD_DNS_LISTEN: '[::1]:2525', POSTROAD_INBOUND_LISTEN: '[::]:2525' }), [/^dns/])
  const apart = [
    { POSTROAD_INBOUND_LISTEN: '0.0.0.0:2525,[::]:2525' },
    { POSTROAD_INBOUND_LISTEN: '[::1]:2587' },
    { POSTROAD_INBOUND_LISTEN: '127.0.0.2:2587' },
    { POSTROAD_HTTP_PUBLIC_LISTEN: '127.0.0.1:0', POSTROAD_HTTP_LISTEN: '127.0.0.1:0' },
  ]
  for (const env of apart) t.same(await faults(env), [], JSON.stringify(env))
  postroad.writeConfig('')
  const { status, err } = await run(['serve'], {
    ...postroad.environment,
    POSTROAD_INBOUND_LISTEN: '127.0.0.1:2587',
  })
  t.equal(status, 2)
  t.match(err, /inbound\.listen: .* uses the same port/)
})

t.test('names from the example, and capture in production, get warnings', async t => {
  const postroad = await initialise(t, { env: LINKS_SERVED })
  chmodSync(postroad.dataDir, 0o700)
  const warned = async (hostname: string, toml = '') => {
    writeFileSync(
      postroad.configFile,
      `hostname = "${hostname}"\ndata_dir = "${postroad.dataDir}"\n${toml}\n`,
    )
    return pathsOf(await check(postroad), 'warning')
  }
  t.same(await warned('mail.example.com'), ['hostname'])
  t.same(await warned('mail.real-name.net'), [])
  t.same(await warned('mail.real-name.net', 'public_url = "https://links.example.org"'), ['public_url'])
  t.same(await warned('mail.real-name.net', '[mta]\ncapture = true'), ['mta.capture'])
  t.same(await warned('mail.real-name.test', '[mta]\ncapture = true'), [])
})

t.test('a public_url that is not in DNS is dead before the server starts', async t => {
  const dns = await dnsServer(t, () => ({ rcode: RCODE.NXDOMAIN }))
  const postroad = await initialise(t, { env: { ...LINKS_SERVED, POSTROAD_DNS_SERVERS: dns.address } })
  chmodSync(postroad.dataDir, 0o700)
  const found = await check(postroad)
  t.match(found, { status: 0, ok: true })
  t.match(found.findings, [
    { path: 'public_url', what: /mx\.postroad\.test has no address in DNS/, fix: /publish an A record/ },
  ])
})
