/** What `doctor` finds, each with how to fix it: DNS as a declared zone says, ports as a dialler answers, a machine as described. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { EventEmitter } from 'node:events'
import { join } from 'node:path'
import { SMTPServer } from 'smtp-server'
import t from 'tap'
import { runCli } from '../../src/cli/program.js'
import type { Resolver } from '../../src/world/dns/dns.js'
import { fakeDns, type FakeZone } from '../../src/world/dns/fake-dns.js'
import { reversedOctets, reverseName } from '../../src/world/dns/reverse-name.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { fakeMachine, type FakeMachineFacts } from '../../src/world/fake-machine.js'
import { makeSelfSigned } from '../../src/world/tls/self-signed-certificate.js'
import { systemWorld } from '../../src/world/world.js'
import { initialise, type Initialised } from '../support/program/process.js'
import { unusedPort } from '../support/smtp/sink.js'

interface Check {
  readonly status: 'ok' | 'warn' | 'fail'
  readonly name: string
  readonly what: string
  readonly fix?: string
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

/** The only address that mail leaves from. */
const MACHINE: FakeMachineFacts = { addresses: ['127.0.0.1', ADDRESS], sources: [ADDRESS] }

interface World {
  readonly zone?: FakeZone
  readonly resolver?: Resolver
  readonly machine?: FakeMachineFacts
  /** Addresses that refuse connections. */
  readonly refused?: readonly string[]
  /** Greeting by address; undeclared addresses accept connections and stay silent. */
  readonly greetings?: Readonly<Record<string, string>>
  /** Whether 127.0.0.1 is really dialled. */
  readonly isLocalReal?: boolean
  readonly args?: readonly string[]
  readonly onPrint?: (line: string) => void
}

/**
 * Timers a hundred times as fast, so that nobody waits for hosts that are silent. The limit of all checks together sleeps as long as it
 * should, unless the test waits for it.
 */
function quickClock(isLimitQuick: boolean) {
  const { clock } = systemWorld()
  return {
    ...clock,
    after(ms: number, callback: () => void) {
      let isCancelled = false
      // After answers that are on their way: a timer that is late on a busy machine comes before them.
      const late = () => setImmediate(() => setImmediate(() => !isCancelled && callback()))
      const timer = setTimeout(late, ms / 100)
      return {
        cancel() {
          isCancelled = true
          clearTimeout(timer)
        },
      }
    },
    sleep: (ms: number, signal?: AbortSignal) => clock.sleep(isLimitQuick ? ms / 4 : ms, signal),
  }
}

async function doctor({ environment }: Initialised, zone: FakeZone, facts: World = {}) {
  const world = systemWorld()
  const {
    machine = MACHINE,
    refused = [],
    greetings = {},
    isLocalReal = false,
    args = ['--json'],
    onPrint,
  } = facts
  const dialled: string[] = []
  let out = ''
  const status = await runCli(['doctor', ...args], {
    env: environment,
    world: {
      ...world,
      clock: isLocalReal ? world.clock : quickClock(facts.resolver !== undefined && onPrint === undefined),
      log: new FakeLog(),
      machine: fakeMachine(machine),
      openResolver: () => facts.resolver ?? fakeDns(zone),
      dialler: {
        ...world.dialler,
        connect: async target => {
          const { address, port } = target
          dialled.push(`${address}:${port}`)
          if (refused.includes(address)) throw new Error('connection refused')
          if (isLocalReal && address === '127.0.0.1') return world.dialler.connect(target)
          return silentSocket(greetings[address])
        },
      },
    },
    print: text => {
      out += `${text}\n`
      onPrint?.(text)
    },
    complain: () => undefined,
  })
  const checks = args.includes('--json') ? (JSON.parse(out) as Check[]) : []
  return { status, out, checks, dialled, of: (name: string) => checks.filter(one => one.name === name) }
}

function silentSocket(greeting?: string): Socket {
  const socket = Object.assign(new EventEmitter(), { destroy: () => undefined })
  if (greeting !== undefined) setImmediate(() => socket.emit('data', Buffer.from(`${greeting}\r\n`)))
  return socket as unknown as Socket
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

t.test('a healthy setup passes, with only the server not running', async t => {
  const { status, checks } = await doctor(await prepared(t), GOOD)
  t.same(
    checks.filter(one => one.status !== 'ok').map(({ name }) => name),
    ['server'],
  )
  t.equal(status, 1)
  t.ok(checks.filter(one => one.status !== 'ok').every(({ fix }) => fix !== undefined))
})

t.test('each DNS fault comes with the record to publish', async t => {
  const postroad = await prepared(t)
  const empty = await doctor(postroad, {})
  t.match(empty.of('dns.hostname'), [{ status: 'fail', fix: /A record/ }])
  t.match(empty.of('dns.return_path'), [
    { status: 'fail', fix: `publish: bounce.mx.postroad.test. IN MX 10 ${NAME}.` },
  ])
  t.match(empty.of('dns.spf'), [{ status: 'fail', fix: /v=spf1 mx -all/ }])
  t.match(empty.of('port 25 out'), [{ status: 'warn' }])
  const wrong = await doctor(postroad, {
    ...GOOD,
    '25.2.0.192.in-addr.arpa': { PTR: ['host25.provider.test'] },
    'host25.provider.test': { A: [ADDRESS] },
    'bounce.mx.postroad.test': { MX: ['10 other.test'], TXT: ['v=spf1 -all', 'another'] },
    [`${reversedOctets(ADDRESS)}.zen.spamhaus.org`]: { A: ['127.0.0.4'] },
    [`${reversedOctets(ADDRESS)}.bl.spamcop.net`]: { A: ['127.255.255.254'] },
  })
  t.match(wrong.of('dns.ptr'), [
    { status: 'warn', what: /host25\.provider\.test/, fix: /PTR record of 192\.0\.2\.25/ },
  ])
  t.match(wrong.of('dns.return_path'), [{ status: 'fail', what: /other\.test/ }])
  t.match(wrong.of('dns.spf'), [
    { status: 'fail', what: /fail for 192\.0\.2\.25 \(by "-all"\)/, fix: /TXT "v=spf1 mx -all"/ },
  ])
  t.match(wrong.of('dnsbl'), [{ status: 'fail', what: /by zen\.spamhaus\.org$/ }])
  const silent = await doctor(postroad, { [NAME]: 'servfail', 'bounce.mx.postroad.test': 'servfail' })
  for (const name of ['dns.hostname', 'dns.return_path', 'dns.spf'])
    t.match(silent.of(name), [{ status: 'warn' }], 'silence is no fault')
})

t.test('each domain is checked in public DNS, and its state is not changed', async t => {
  const postroad = await prepared(t)
  await postroad.json('domain', 'add', 'sender.test', '--workspace', postroad.workspaceId)
  const { of } = await doctor(postroad, GOOD)
  t.match(of('domain sender.test'), [
    { status: 'fail', what: /_postroad\.sender\.test/, fix: /domain show sender\.test/ },
  ])
  t.match(await postroad.json('domain', 'show', 'sender.test', '--workspace', postroad.workspaceId), {
    checked_at: null,
  })
})

t.test(
  'a DMARC record that asks for reports at a former name is named, with the address to put there',
  async t => {
    const postroad = await prepared(t)
    const { dns_records: records } = await postroad.json<{
      dns_records: readonly { type: string; name: string; value: string; required: boolean }[]
    }>('domain', 'add', 'sender.test', '--workspace', postroad.workspaceId)
    const server = await postroad.serve()
    await server.end('SIGTERM')
    const zoneWith = (rua: string): FakeZone => ({
      ...GOOD,
      ...Object.fromEntries(
        records
          .filter(({ required }) => required)
          .flatMap(({ type, name, value }) => [
            [name, type === 'TXT' ? { TXT: [value] } : { CNAME: value }],
            [value, { TXT: ['v=DKIM1; p=x'] }],
          ]),
      ),
      '_dmarc.sender.test': { TXT: [`v=DMARC1; p=reject; rua=mailto:${rua}`] },
    })
    const check = async (rua: string) => (await doctor(postroad, zoneWith(rua))).of('domain sender.test')
    t.match(await check(`dmarc@${NAME}`), [{ status: 'ok' }])
    Object.assign(postroad.environment, { POSTROAD_INBOUND_REPORT_DOMAIN: 'reports.postroad.test' })
    t.match(await check(`dmarc@${NAME}`), [
      {
        status: 'warn',
        what: /asks for reports at dmarc@mx\.postroad\.test, a former address/,
        fix: 'in _dmarc.sender.test, replace it by mailto:dmarc@reports.postroad.test',
      },
    ])
    t.match(await check(`dmarc@${NAME},mailto:dmarc@reports.postroad.test`), [{ status: 'ok' }])
    t.match(await check('reports@other.test'), [{ status: 'ok' }], 'whoever else gets them')
  },
)

t.test('a domain for reports of its own has to lead somewhere', async t => {
  const domain = 'reports.postroad.test'
  const postroad = await prepared(t, { POSTROAD_INBOUND_REPORT_DOMAIN: domain })
  const check = async (zone: FakeZone) => (await doctor(postroad, { ...GOOD, ...zone })).of('dns.reports')
  t.match(await check({}), [{ status: 'fail', fix: `publish: ${domain}. IN MX 10 ${NAME}.` }])
  t.match(await check({ [domain]: { MX: [`10 ${NAME}`] } }), [
    { status: 'ok', what: new RegExp(`go to ${NAME}`) },
  ])
  t.match(await check({ [domain]: { A: [ADDRESS] } }), [{ status: 'ok', what: /go to 192\.0\.2\.25/ }])
  t.match(await check({ [domain]: 'servfail' }), [{ status: 'warn' }])
})

t.test('nodes that publish different names are told apart, with the setting to change', async t => {
  const postroad = await prepared(t)
  t.same((await doctor(postroad, GOOD)).of('names'), [], 'an only node')
  const now = Date.now()
  const other = 'mx2.postroad.test'
  postroad.sql(
    `insert into nodes (id, name, roles, is_stopping, started_at, alive_until) values ('other', '${other}', 'mta', 0, ${now}, ${now + 600_000})`,
  )
  const record = (purpose: string, name: string, usedAt: number) =>
    postroad.sql(
      `insert into published_names (node, purpose, name, used_at) values ('${other}', '${purpose}', '${name}', ${usedAt})`,
    )
  record('reports', 'formerly.postroad.test', 1)
  record('reports', NAME, 2)
  record('return_path', 'bounce.mx.postroad.test', 2)
  t.match((await doctor(postroad, GOOD)).of('names'), [
    { status: 'ok', what: /2 nodes publish the same names/ },
  ])
  record('reports', other, 3)
  t.match((await doctor(postroad, GOOD)).of('names'), [
    {
      status: 'fail',
      what: `inbound.report_domain differs: ${NAME} on ${NAME}, ${other} on ${other}`,
      fix: /set inbound\.report_domain to one name that leads to all nodes.*; mail to the former names is still accepted$/,
    },
  ])
  postroad.sql(`update published_names set used_at = 4 where node = '${other}' and name = '${NAME}'`)
  record('public_url', 'https://other.test', 4)
  t.match((await doctor(postroad, GOOD)).of('names'), [
    { status: 'fail', what: /^public_url differs: /, fix: /and restart them$/ },
  ])
})

t.test('free ports of ours and a blocked outgoing port 25 are named', async t => {
  const env = { POSTROAD_HTTP_LISTEN: '127.0.0.1:8025' }
  const { of } = await doctor(await prepared(t, env), GOOD, {
    refused: ['127.0.0.1', '192.0.2.200'],
  })
  t.match(of('port http'), [{ status: 'ok', what: /127\.0\.0\.1:8025 is free/ }], 'the server does not run')
  t.match(of('port 25 out'), [{ status: 'fail', what: /mx\.gmail\.test/, fix: /provider/ }])
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

t.test('addresses are reversed as in DNS', async t => {
  t.equal(reverseName('192.0.2.25'), '25.2.0.192.in-addr.arpa')
  t.equal(
    reverseName('2001:db8::1'),
    '1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa',
  )
  t.equal(reverseName('::1')?.length, 32 * 2 + 8)
  t.equal(reverseName('nowhere'), undefined)
})

t.test('a zone served by the appliance must be delegated to it', async t => {
  const postroad = await prepared(t, { POSTROAD_DNS_LISTEN: '127.0.0.1:53' })
  const zone = 'dkim.mx.postroad.test'
  const line = `${zone}. 3600 IN NS ${NAME}.`
  t.match((await doctor(postroad, GOOD)).of('dns.dkim_zone'), [
    { status: 'fail', what: /delegated to no name server/, fix: line },
  ])
  const elsewhere = await doctor(postroad, { ...GOOD, [zone]: { NS: ['ns.other.test'] } })
  t.match(elsewhere.of('dns.dkim_zone'), [{ status: 'fail', what: /ns\.other\.test/, fix: line }])
  const silent = await doctor(postroad, { ...GOOD, [zone]: { NS: 'servfail' } })
  t.match(silent.of('dns.dkim_zone'), [{ status: 'fail', fix: /port 53/ }])
  const right = await doctor(postroad, { ...GOOD, [zone]: { NS: [NAME] } })
  t.match(right.of('dns.dkim_zone'), [{ status: 'ok' }])
})

t.test(
  'a hostname that resolves to another machine fails, one that leads here through NAT passes',
  async t => {
    const postroad = await prepared(t)
    const found = async (machine: FakeMachineFacts, facts: World = {}) =>
      (await doctor(postroad, GOOD, { ...facts, machine })).of('dns.hostname')
    const elsewhere = { addresses: ['127.0.0.1', '203.0.113.9'], sources: ['203.0.113.9'] }
    t.match(await found(MACHINE), [{ status: 'ok', what: `${NAME} is ${ADDRESS}` }])
    t.match(await found(elsewhere), [
      {
        status: 'fail',
        what: /mx\.postroad\.test is 192\.0\.2\.25 in DNS, which is another machine/,
        fix: 'publish: mx.postroad.test. IN A 203.0.113.9',
      },
    ])
    t.match(await found(elsewhere, { greetings: { [ADDRESS]: `220 ${NAME} ESMTP Postroad` } }), [
      { status: 'warn', what: /a Postroad of that name answers there/, fix: /load balancer/ },
    ])
    const behindNat = { addresses: ['127.0.0.1', '10.0.0.5'], sources: ['10.0.0.5'] }
    t.match(await found(behindNat, { greetings: { [ADDRESS]: `220 ${NAME} ESMTP Postroad` } }), [
      { status: 'ok', what: /NAT/ },
    ])
    t.match(await found(behindNat, { greetings: { [ADDRESS]: '220 old.test ESMTP Exim 4.96' } }), [
      { status: 'fail', what: /another machine: it says "220 old\.test ESMTP Exim 4\.96"/ },
    ])
    t.match(await found(behindNat, { refused: [ADDRESS] }), [
      { status: 'warn', what: /this machine does not have \(it has 10\.0\.0\.5\)/, fix: /forward port 25/ },
    ])
  },
)

t.test('a source address this machine lacks fails', async t => {
  const postroad = await prepared(t, { POSTROAD_MTA_SOURCE_ADDRESSES: '192.0.2.26' })
  const { of, status } = await doctor(postroad, GOOD)
  t.match(of('mta.source_addresses'), [{ status: 'fail', what: /192\.0\.2\.26 is not an address of this/ }])
  t.equal(status, 1)
})

t.test('reverse DNS names must resolve back to their address', async t => {
  const postroad = await prepared(t)
  const ptr = async (zone: FakeZone) => (await doctor(postroad, { ...GOOD, ...zone })).of('dns.ptr')
  t.match(await ptr({ '25.2.0.192.in-addr.arpa': { PTR: ['host25.provider.test'] } }), [
    { status: 'fail', what: /host25\.provider\.test by its PTR record, which does not lead back/ },
  ])
  t.match(await ptr({ '25.2.0.192.in-addr.arpa': {} }), [{ status: 'fail', what: /no PTR record/ }])
  const ipv6 = '2001:db8::25'
  const machine = { addresses: [ADDRESS, ipv6], sources: [ADDRESS, ipv6] }
  const both = await doctor(postroad, { ...GOOD, [NAME]: { A: [ADDRESS], AAAA: [ipv6] } }, { machine })
  t.match(both.of('dns.ptr'), [{ status: 'ok' }, { status: 'fail', what: /2001:db8::25 has no PTR/ }])
})

t.test('SPF is evaluated for every sending address, with the record to publish', async t => {
  const postroad = await prepared(t, { POSTROAD_MTA_SOURCE_ADDRESSES: '192.0.2.25,192.0.2.26,2001:db8::26' })
  const addresses = [ADDRESS, '192.0.2.26', '2001:db8::26']
  const spf = async (record: string, zone: FakeZone = {}) => {
    const bounce = { MX: [`10 ${NAME}`], TXT: [record] }
    const world = { ...GOOD, 'bounce.mx.postroad.test': bounce, ...zone }
    return (await doctor(postroad, world, { machine: { addresses } })).of('dns.spf')
  }
  t.match(await spf('v=spf1 mx ip4:192.0.2.26 ip6:2001:db8::/64 -all'), [
    { status: 'ok' },
    { status: 'ok' },
    { status: 'ok' },
  ])
  const partly = await spf('v=spf1 mx ~all')
  t.match(partly, [
    { status: 'ok', what: 'bounce.mx.postroad.test: pass for 192.0.2.25 (by "mx")' },
    {
      status: 'fail',
      what: 'bounce.mx.postroad.test: softfail for 192.0.2.26, 2001:db8::26 (by "~all")',
      fix: 'publish: bounce.mx.postroad.test. IN TXT "v=spf1 ip4:192.0.2.26 ip6:2001:db8::26 mx ~all"',
    },
  ])
  t.match(await spf('v=spf1 mx a:%{x} -all'), [
    { status: 'fail', what: /permerror.*a:%\{x\}/, fix: /correct or remove "a:%\{x\}" in: bounce/ },
  ])
  t.match(await spf('v=spf1 include:many.test -all', { 'many.test': 'servfail' }), [
    { status: 'warn', what: /temperror/ },
  ])
  t.match(await spf('v=spf1 redirect=_spf.test', { '_spf.test': { TXT: ['v=spf1 -all'] } }), [
    { status: 'fail', what: /by "-all" of _spf\.test/, fix: /ip4:192\.0\.2\.25 ip4:192\.0\.2\.26/ },
  ])
})

t.test('a failing SPF record of the hostname or a sending domain is reported', async t => {
  const postroad = await prepared(t)
  await postroad.json('domain', 'add', 'sender.test', '--workspace', postroad.workspaceId)
  const { of } = await doctor(postroad, {
    ...GOOD,
    [NAME]: { A: [ADDRESS], TXT: ['v=spf1 -all'] },
    'sender.test': { TXT: ['v=spf1 include:other.test -all'] },
    'other.test': { TXT: ['v=spf1 ip4:198.51.100.0/24 -all'] },
  })
  t.match(of('dns.spf_hello'), [{ status: 'fail', what: /bounces/, fix: /"v=spf1 a -all"/ }])
  t.match(of('spf'), [
    {
      status: 'warn',
      what: /sender\.test: fail for 192\.0\.2\.25/,
      fix: 'publish: sender.test. IN TXT "v=spf1 a:mx.postroad.test include:other.test -all"',
    },
    { what: /mail\.postroad\.test: none/, status: 'ok' },
  ])
})

t.test('a port taken by another program is named with the program and its greeting', async t => {
  const postfix = createServer(socket => socket.end('220 debian.test ESMTP Postfix\r\n'))
  await new Promise<void>(resolve => postfix.listen(0, '127.0.0.1', resolve))
  t.teardown(() => postfix.close())
  const { port } = postfix.address() as AddressInfo
  const free = await unusedPort()
  const postroad = await prepared(t, {
    POSTROAD_INBOUND_LISTEN: `[::]:${port}`,
    POSTROAD_SUBMISSION_LISTEN: `0.0.0.0:${free}`,
  })
  const holders = { [port]: [{ address: '127.0.0.1', process: { pid: 123, program: 'master' } }] }
  const known = await doctor(postroad, GOOD, { isLocalReal: true, machine: { ...MACHINE, holders } })
  t.match(known.of('port inbound'), [
    {
      status: 'fail',
      what: `[::]:${port} is held by postfix (master), process 123, which says "220 debian.test ESMTP Postfix"`,
      fix: /systemctl disable --now postfix/,
    },
  ])
  t.match(known.of('port submission'), [{ status: 'ok', what: /free/ }])
  const unknown = await doctor(postroad, GOOD, { isLocalReal: true })
  t.match(unknown.of('port inbound'), [{ status: 'fail', what: /another program, which says/ }])
  const elsewhere = { [free]: [{ address: ADDRESS, process: { pid: 7, program: 'nginx' } }] }
  const bound = await doctor(postroad, GOOD, {
    isLocalReal: true,
    machine: { ...MACHINE, holders: elsewhere },
  })
  t.match(bound.of('port submission'), [{ status: 'fail', what: /held by nginx, process 7$/ }])
})

t.test('where this machine is a load balancer itself, its listeners are greeted as by one', async t => {
  const [submission, inbound] = [await unusedPort(), await unusedPort()]
  const postroad = await prepared(t, {
    POSTROAD_SUBMISSION_LISTEN: `127.0.0.1:${submission}`,
    POSTROAD_INBOUND_LISTEN: `[::]:${inbound}`,
    POSTROAD_SUBMISSION_PROXY_PROTOCOL_FROM: '127.0.0.0/8',
    POSTROAD_INBOUND_PROXY_PROTOCOL_FROM: '127.0.0.1',
    POSTROAD_LOG_LEVEL: 'debug',
  })
  const server = await postroad.serve()
  const found = await doctor(postroad, GOOD, { isLocalReal: true })
  for (const name of ['port submission', 'port inbound'])
    t.match(found.of(name), [{ status: 'ok', what: /the server answers/ }], name)
  t.match(await server.logged('smtp session ended'), { peer: '127.0.0.1' })
  t.notOk(server.log.some(({ event }) => event === 'proxy header rejected'))
})

t.test('[::] is dialled over IPv4 too, so that a machine without IPv6 passes', async t => {
  const postroad = await prepared(t, { POSTROAD_SUBMISSION_LISTEN: '[::]:5870' })
  const { dialled } = await doctor(postroad, GOOD)
  t.ok(dialled.includes('127.0.0.1:5870'))
  t.notOk(dialled.some(one => one.startsWith('::1')))
})

t.test('capture fails in production and passes for trials', async t => {
  const env = { POSTROAD_MTA_CAPTURE: 'true' }
  t.same((await doctor(await prepared(t, env), GOOD)).of('mta.capture'), [], 'below .test')
  const real = await prepared(t, { ...env, POSTROAD_HOSTNAME: 'mail.shop-real.net' })
  t.match((await doctor(real, GOOD)).of('mta.capture'), [
    { status: 'fail', what: /no mail is delivered/, fix: /false/ },
  ])
})

t.test('an expired, a not yet valid and a mismatched certificate each fail', async t => {
  const day = 86_400_000
  const folder = t.testdir()
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const postroad = await prepared(t, { POSTROAD_TLS_CERT: cert, POSTROAD_TLS_KEY: key })
  const shown = async (name: string, madeAt: number) => {
    const pair = await makeSelfSigned(name, madeAt)
    writeFileSync(cert, pair.cert)
    writeFileSync(key, pair.key, { mode: 0o600 })
    return (await doctor(postroad, GOOD)).of('tls.cert')
  }
  t.match(await shown(NAME, Date.now() - 20 * 365 * day), [{ status: 'fail', what: /expired/ }])
  t.match(await shown(NAME, Date.now() + 9 * day), [{ status: 'fail', what: /not valid before/ }])
  t.match(await shown('other.test', Date.now()), [
    { status: 'fail', what: /is not for mx\.postroad\.test, but for other\.test/ },
  ])
  t.same(await shown(NAME, Date.now()), [])
})

t.test('keys of trusted networks must exist, be valid and be allowed to send', async t => {
  const folder = await prepared(t)
  const keys = await folder.json<{ id: string }[]>('key', 'list')
  const created = async (...more: string[]) =>
    (
      await folder.json<{ id: string }>(
        'key',
        'create',
        '--workspace',
        folder.workspaceId,
        '--name',
        'x',
        ...more,
      )
    ).id
  const [revoked, reading] = [await created(), await created('--permissions', 'contacts:read')]
  await folder.run('key', 'revoke', revoked)
  const trusting = async (...ids: readonly string[]) => {
    const networks = ids.map((key, index) => ({ network: `10.0.${index}.0/24`, key }))
    const environment = {
      ...folder.environment,
      POSTROAD_SUBMISSION_TRUSTED_NETWORKS: JSON.stringify(networks),
    }
    return (await doctor({ ...folder, environment }, GOOD)).of('submission.trusted_networks')
  }
  t.match(await trusting('nobody', revoked, reading), [
    { status: 'fail', what: /10\.0\.0\.0\/24: the key nobody does not exist/, fix: /key create/ },
    { status: 'fail', what: /was revoked/ },
    { status: 'fail', what: /lacks the permission smtp:send/ },
  ])
  t.match(await trusting(keys[0]?.id ?? ''), [{ status: 'ok' }])
})

t.test('routes are tried as deliveries use them, reporting unverified TLS and refused logins', async t => {
  const pair = await makeSelfSigned('relay.test', Date.now())
  const relay = new SMTPServer({
    ...{ cert: pair.cert, key: pair.key, logger: false, disableReverseLookup: true, closeTimeout: 1 },
    onAuth: ({ password }, _session, done) =>
      password === 'right' ? done(null, { user: 'me' }) : done(new Error('wrong password')),
  })
  relay.on('error', () => {})
  const listener = relay.listen(0, '127.0.0.1')
  await new Promise(resolve => listener.once('listening', resolve))
  t.teardown(() => new Promise<void>(resolve => relay.close(resolve)))
  const { port } = listener.address() as AddressInfo
  const ca = join(t.testdir({ 'ca.pem': pair.cert }), 'ca.pem')
  const zone = { ...GOOD, 'relay.test': { A: ['127.0.0.1'] }, 'alias.test': { A: ['127.0.0.1'] } }
  const route = async (fields: object, env: Record<string, string> = {}) => {
    const routes = JSON.stringify([{ domain: 'a.test', host: 'relay.test', port, ...fields }])
    const postroad = await prepared(t, { ...env, POSTROAD_MTA_ROUTES: routes })
    return (await doctor(postroad, zone, { isLocalReal: true })).of('route')
  }
  const trusted = { POSTROAD_MTA_TLS_CA: ca }
  t.match(await route({ tls: 'verify' }), [
    {
      status: 'fail',
      what: `a.test -> relay.test:${port}: TLS does not verify: certificate not trusted: self-signed certificate`,
      fix: /tls_ca/,
    },
  ])
  t.match(await route({ tls: 'verify', host: 'alias.test' }, trusted), [
    { status: 'fail', what: /certificate is for another name/ },
  ])
  t.match(await route({ tls: 'verify' }, trusted), [
    { status: 'ok', what: /TLSv1\.3, the certificate is valid/ },
  ])
  t.match(await route({}), [
    { status: 'ok', what: /self-signed certificate\), which tls = "opportunistic" accepts/ },
  ])
  const login = { tls: 'verify', username: 'me' }
  t.match(await route({ ...login, password: 'right' }, trusted), [{ status: 'ok', what: /login accepted/ }])
  t.match(await route({ ...login, password: 'hunter2' }, trusted), [
    { status: 'fail', what: /login fails: it answers 535/, fix: /username and password/ },
  ])
  t.match(await route({ host: 'nowhere.test' }), [{ status: 'fail', what: /has no address/ }])
  t.match(await route({ port: await unusedPort() }), [{ status: 'fail', what: /connection refused/ }])
})

t.test('run as root, files that the service user cannot open or the unit hides are reported', async t => {
  // Not below the checkout, whose own folders may be closed to others, but where the unit's PrivateTmp hides it.
  const { TMPDIR } = process.env
  process.env['TMPDIR'] = '/tmp'
  t.teardown(() => {
    if (TMPDIR === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = TMPDIR
  })
  const folder = mkdtempSync('/tmp/postroad-access-')
  t.teardown(() => rmSync(folder, { recursive: true }))
  chmodSync(folder, 0o755)
  for (const name of ['open', 'closed']) mkdirSync(join(folder, name), { mode: 0o755 })
  const [cert, key] = [join(folder, 'closed/cert.pem'), join(folder, 'open/key.pem')]
  const link = join(folder, 'open/cert.pem')
  for (const file of [cert, key]) writeFileSync(file, '')
  symlinkSync(cert, link)
  chmodSync(key, 0o600)
  chmodSync(cert, 0o644)
  chmodSync(join(folder, 'closed'), 0o700)
  const postroad = await prepared(t, { POSTROAD_TLS_CERT: link, POSTROAD_TLS_KEY: key })
  const postroadUser = { name: 'postroad', uid: 54_321, gid: 54_321, groups: [54_321] }
  const asked = async (facts: FakeMachineFacts) =>
    (await doctor(postroad, GOOD, { machine: { ...MACHINE, accounts: [postroadUser], ...facts } })).of(
      'access',
    )
  const unit = { 'postroad.service': { User: 'postroad' } }
  t.same(await asked({ userId: 1_000, units: unit }), [], 'only root may open what the service may not')
  const found = await asked({ userId: 0, units: unit })
  const about = (path: string) => found.find(({ what }) => what.includes(path))
  t.match(about(link), {
    status: 'fail',
    what: new RegExp(`may not read .*: ${folder}/closed belongs to .*mode 0700`),
  })
  t.match(about(key), { status: 'fail', what: /\(tls\.key\): it belongs to .* mode 0600/, fix: /setfacl/ })
  t.match(about(postroad.dataDir), { status: 'fail', fix: /chown -R postroad:/ })
  const opened = [link, key, postroad.configFile, postroad.dataDir]
  const granted = await asked({ userId: 0, units: unit, opened })
  t.notOk(
    granted.some(({ what }) => what.includes(key)),
    'an access control list may grant it',
  )
  t.match(await asked({ userId: 0, units: { 'postroad.service': { User: 'nobody-here' } } }), [
    { status: 'fail', what: /an account that does not exist/ },
  ])
  const strict = {
    User: 'postroad',
    ProtectSystem: 'strict',
    PrivateTmp: 'yes',
    StateDirectory: 'postroad',
  }
  const hidden = await asked({ userId: 0, units: { 'postroad.service': strict } })
  t.match(hidden, [{ status: 'fail', what: /PrivateTmp=yes \(and \d+ more\)/ }])
})

t.test('with a silent name server it ends in time, names the unfinished checks, and fails', async t => {
  const silence = () => new Promise<never>(() => {})
  const resolver: Resolver = {
    ...fakeDns({}),
    mx: silence,
    ipv4: silence,
    ipv6: silence,
    txt: silence,
    ptr: silence,
    cname: silence,
    ns: silence,
  }
  const postroad = await prepared(t)
  await postroad.json('domain', 'add', 'sender.test', '--workspace', postroad.workspaceId)
  const { of, status } = await doctor(postroad, {}, { resolver })
  t.equal(status, 1)
  t.match(of('dns.servers'), [{ status: 'fail', what: /cut off after 10 s/, fix: /dns\.servers/ }])
  t.match(of('dns.spf'), [{ status: 'warn', what: /cut off/ }])
  t.match(of('domain'), [{ status: 'warn', what: /sender\.test: cut off/ }])
  t.match(of('disk'), [{ status: 'ok' }], 'what needs no DNS was checked')
})

t.test('each check is printed when it finishes', async t => {
  const printed: string[] = []
  let tell = () => {}
  const diskIsPrinted = new Promise<void>(resolve => (tell = resolve))
  const dns = fakeDns(GOOD)
  const resolver: Resolver = {
    ...dns,
    ipv4: async name => {
      await diskIsPrinted
      return dns.ipv4(name)
    },
  }
  const onPrint = (line: string) => {
    printed.push(line)
    if (line.includes('disk:')) tell()
  }
  await doctor(await prepared(t), {}, { resolver, args: [], onPrint })
  const at = (text: string) => printed.findIndex(line => line.includes(text))
  t.ok(at('disk:') < at('dns.hostname:'))
  t.match(printed[at('dns.hostname:')], /^ok {4}dns\.hostname: /)
  t.match(printed.at(-1), /checks: 1 failed, 0 with warnings/)
})
