/** What `doctor` finds, each with its mend: DNS as a declared zone says, ports as a dialler answers. */
import { chmodSync } from 'node:fs'
import type { Socket } from 'node:net'
import t from 'tap'
import { runCli } from '../../src/cli/program.js'
import { fakeDns, type FakeZone } from '../../src/world/dns/fake-dns.js'
import { reversedOctets, reverseName } from '../../src/world/dns/reverse-name.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { systemWorld } from '../../src/world/world.js'
import { initialise, type Initialised } from '../support/program/process.js'

interface Check {
  readonly status: 'ok' | 'warn' | 'fail'
  readonly name: string
  readonly what: string
  readonly mend?: string
}

const NAME = 'mx.postroad.test'
const ADDRESS = '192.0.2.25'

/** All that DNS has to say where everything is right. */
const GOOD: FakeZone = {
  [NAME]: { A: [ADDRESS] },
  '25.2.0.192.in-addr.arpa': { PTR: [NAME] },
  'bounce.mx.postroad.test': { MX: [`10 ${NAME}`], TXT: ['v=spf1 mx -all'] },
  'gmail.com': { MX: ['5 mx.gmail.test'] },
  'mx.gmail.test': { A: ['192.0.2.200'] },
}

async function doctor({ environment }: Initialised, zone: FakeZone, refused: readonly string[] = []) {
  const world = systemWorld()
  let out = ''
  const status = await runCli(['doctor', '--json'], {
    env: environment,
    world: {
      ...world,
      log: new FakeLog(),
      openResolver: () => fakeDns(zone),
      dialler: {
        ...world.dialler,
        connect: async ({ address }) => {
          if (refused.includes(address)) throw new Error('connection refused')
          return { destroy: () => undefined } as unknown as Socket
        },
      },
    },
    print: text => (out += text),
    complain: () => undefined,
  })
  const checks = JSON.parse(out) as Check[]
  return { status, checks, of: (name: string) => checks.filter(one => one.name === name) }
}

async function prepared(t: Test, env: Record<string, string> = {}) {
  const postroad = await initialise(t, {
    env: {
      POSTROAD_MTA_RETURN_PATH_DOMAIN: 'bounce.mx.postroad.test',
      POSTROAD_HTTP_PUBLIC_LISTEN: '127.0.0.1:0',
      ...env,
    },
  })
  chmodSync(postroad.dataDir, 0o700)
  return postroad
}
type Test = Parameters<typeof initialise>[0]

t.test('where all is well it says so, and only that the server does not run', async t => {
  const { status, checks } = await doctor(await prepared(t), GOOD)
  t.same(
    checks.filter(one => one.status !== 'ok').map(({ name }) => name),
    ['server'],
  )
  t.equal(status, 1)
  t.ok(checks.filter(one => one.status !== 'ok').every(({ mend }) => mend !== undefined))
})

t.test('what is wrong in DNS comes with the record to publish', async t => {
  const postroad = await prepared(t)
  const empty = await doctor(postroad, {})
  t.match(empty.of('dns.hostname'), [{ status: 'fail', mend: /A record/ }])
  t.match(empty.of('dns.return_path'), [
    { status: 'fail', mend: `publish: bounce.mx.postroad.test. IN MX 10 ${NAME}.` },
  ])
  t.match(empty.of('dns.spf'), [{ status: 'fail', mend: /v=spf1 mx -all/ }])
  t.match(empty.of('port 25 out'), [{ status: 'warn' }])
  const wrong = await doctor(postroad, {
    ...GOOD,
    '25.2.0.192.in-addr.arpa': { PTR: ['host25.provider.test'] },
    'bounce.mx.postroad.test': { MX: ['10 other.test'], TXT: ['v=spf1 -all', 'another'] },
    [`${reversedOctets(ADDRESS)}.zen.spamhaus.org`]: { A: ['127.0.0.4'] },
    [`${reversedOctets(ADDRESS)}.bl.spamcop.net`]: { A: ['127.255.255.254'] },
  })
  t.match(wrong.of('dns.ptr'), [{ status: 'warn', what: /host25/ }])
  t.match(wrong.of('dns.return_path'), [{ status: 'fail', what: /other\.test/ }])
  t.match(wrong.of('dns.spf'), [{ status: 'fail', what: /nobody/ }])
  t.match(wrong.of('dnsbl'), [{ status: 'fail', what: /by zen\.spamhaus\.org$/ }])
  const silent = await doctor(postroad, { [NAME]: 'servfail', 'bounce.mx.postroad.test': 'servfail' })
  for (const name of ['dns.hostname', 'dns.return_path', 'dns.spf'])
    t.match(silent.of(name), [{ status: 'warn' }], 'silence is no fault')
})

t.test('each domain is looked at as the world sees it, and its state stays as it was', async t => {
  const postroad = await prepared(t)
  await postroad.json('domain', 'add', 'sender.test', '--workspace', postroad.workspaceId)
  const { of } = await doctor(postroad, GOOD)
  t.match(of('domain sender.test'), [
    { status: 'fail', what: /_postroad\.sender\.test/, mend: /domain show sender\.test/ },
  ])
  t.match(await postroad.json('domain', 'show', 'sender.test', '--workspace', postroad.workspaceId), {
    checked_at: null,
  })
})

t.test('ports that do not answer are named: ours, and the way out', async t => {
  const env = { POSTROAD_HTTP_LISTEN: '127.0.0.1:8025' }
  const { of } = await doctor(await prepared(t, env), GOOD, ['127.0.0.1', '192.0.2.200'])
  t.match(of('port http'), [
    { status: 'fail', what: /127\.0\.0\.1:8025 does not answer: connection refused/ },
  ])
  t.match(of('port 25 out'), [{ status: 'fail', what: /mx\.gmail\.test/, mend: /provider/ }])
  const routed = await prepared(t, {
    POSTROAD_MTA_ROUTES: JSON.stringify([{ domain: '*', host: '192.0.2.99', port: 25 }]),
  })
  t.match((await doctor(routed, GOOD)).of('port 25 out'), [{ status: 'ok', what: /192\.0\.2\.99:25/ }])
})

t.test('a database that cannot be opened is one finding among others', async t => {
  const postroad = await prepared(t, { POSTROAD_DATABASE_URL: 'sqlite:other.db' })
  const { of, checks } = await doctor(postroad, GOOD)
  t.match(of('database'), [{ status: 'fail', what: /no database/ }])
  t.ok(checks.some(({ name }) => name === 'dns.ptr'))
})

t.test('addresses are turned around as DNS has them', async t => {
  t.equal(reverseName('192.0.2.25'), '25.2.0.192.in-addr.arpa')
  t.equal(
    reverseName('2001:db8::1'),
    '1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa',
  )
  t.equal(reverseName('::1')?.length, 32 * 2 + 8)
  t.equal(reverseName('nowhere'), undefined)
})

t.test('a zone that the appliance answers for has to lead to it', async t => {
  const postroad = await prepared(t, { POSTROAD_DNS_LISTEN: '127.0.0.1:53' })
  const zone = 'dkim.mx.postroad.test'
  const line = `${zone}. 3600 IN NS ${NAME}.`
  t.match((await doctor(postroad, GOOD)).of('dns.dkim_zone'), [
    { status: 'fail', what: /no name server/, mend: line },
  ])
  const elsewhere = await doctor(postroad, { ...GOOD, [zone]: { NS: ['ns.other.test'] } })
  t.match(elsewhere.of('dns.dkim_zone'), [{ status: 'fail', what: /ns\.other\.test/, mend: line }])
  const silent = await doctor(postroad, { ...GOOD, [zone]: { NS: 'servfail' } })
  t.match(silent.of('dns.dkim_zone'), [{ status: 'fail', mend: /port 53/ }])
  const right = await doctor(postroad, { ...GOOD, [zone]: { NS: [NAME] } })
  t.match(right.of('dns.dkim_zone'), [{ status: 'ok' }])
})
