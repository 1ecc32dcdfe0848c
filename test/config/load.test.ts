/** What an operator sees of the configuration: what is in force, and everything that is wrong with it. */
import t from 'tap'
import { chooseConfigFile } from '../../src/config/environment.js'
import { ConfigError } from '../../src/config/faults.js'
import { loadConfig, type LoadedConfig } from '../../src/config/load.js'
import { CONFIG_SCHEMA } from '../../src/appliance/resources.js'

const HOSTNAME = 'hostname = "mail.example.com"\n'

function load(toml: string, env: Record<string, string> = {}): LoadedConfig {
  return loadConfig({ schema: CONFIG_SCHEMA, file: '/etc/postroad/postroad.toml', env, readFile: () => toml })
}

/** Fault lines of a configuration that must not load. */
function faultsOf(toml: string, env: Record<string, string> = {}): readonly string[] {
  try {
    load(toml, env)
  } catch (error) {
    if (error instanceof ConfigError) return error.faults
    throw error
  }
  throw new Error('it loaded')
}

t.test('a hostname alone is a configuration, with the documented defaults', async t => {
  const { config, keysWithoutEffect } = load(HOSTNAME)
  t.match(config, {
    hostname: 'mail.example.com',
    dataDir: '/var/lib/postroad',
    publicUrl: 'https://mail.example.com',
    shutdownGraceMs: 30_000,
    http: { listen: [{ host: '127.0.0.1', port: 8025 }], anonymousRateLimit: 600 },
    databaseFile: '/var/lib/postroad/postroad.db',
    mta: {
      sharedAddress: undefined,
      returnPathDomain: 'bounce.mail.example.com',
      capture: false,
      port: 25,
      connections: 500,
      connectionsPerDestination: 10,
      connectionMessages: 100,
      connectionIdleMs: 3_000,
      mtaSts: true,
      allowPrivate: false,
      routes: [],
      retry: { firstMs: 300_000, factor: 1.5, maxMs: 14_400_000, expireMs: 259_200_000 },
    },
    dns: { servers: [], timeoutMs: 5_000, dkimZone: 'dkim.mail.example.com' },
    limits: { messageSizeBytes: 25 * 1_024 * 1_024 },
    log: { level: 'info' },
  })
  t.same(keysWithoutEffect, [])
})

t.test('the waiting times for a remote server are those of RFC 5321 §4.5.3.2', async t => {
  const minute = 60_000
  t.match(load(HOSTNAME).config.mta.timeouts, {
    greetingMs: 5 * minute,
    mailMs: 5 * minute,
    rcptMs: 5 * minute,
    dataMs: 2 * minute,
    blockMs: 3 * minute,
    finalDotMs: 10 * minute,
  })
})

t.test('without a hostname nothing loads, and the fault says what one looks like', async t => {
  t.same(faultsOf(''), ['hostname: missing; e.g. hostname = "mail.example.com"'])
})

t.test('a mistyped key is an error that names the nearest one', async t => {
  t.same(faultsOf(`${HOSTNAME}[mta.retry]\nfrist = "5m"`), [
    'mta.retry.frist: unknown key, did you mean mta.retry.first?',
  ])
  t.same(faultsOf(`${HOSTNAME}[htpt]\nlisten = []`), ['htpt: unknown key, did you mean http?'])
  t.same(faultsOf(`${HOSTNAME}[[mta.routes]]\ndomain = "*"\nhost = "10.0.0.5"\nprot = 25`), [
    'mta.routes.0.prot: unknown key, did you mean mta.routes.0.port?',
  ])
})

t.test('a key in the wrong section is an error that names the right section', async t => {
  t.same(faultsOf(`${HOSTNAME}capture = true`), ['capture: unknown key, did you mean mta.capture?'])
})

t.test('a key that resembles nothing gets no suggestion', async t => {
  t.same(faultsOf(`${HOSTNAME}quarantine_folder = "x"`), ['quarantine_folder: unknown key'])
})

t.test('a key named like a built-in property is unknown like any other', async t => {
  t.same(faultsOf(`${HOSTNAME}toString = 1`), ['toString: unknown key'])
})

t.test('all faults are reported at once', async t => {
  const faults = faultsOf(`
    hostname = "mail.example.com:25"
    data_dirr = "/srv"
    shutdown_grace = "1h"
    [http]
    listen = ["abc", "127.0.0.1:8025", ":25", 7]
    [mta]
    capture = "yes"
    port = 70000
    connections = 0
    connection_idle = "soon"
    shared_address = "nobody"
    [mta.retry]
    factor = 0.5
    [mta.timeouts]
    final_dot = "30s"
    [dns]
    servers = ["ns.example.com"]
    [limits]
    message_size = "25"
    [log]
    level = "loud"
  `)
  t.same(faults, [
    'data_dirr: unknown key, did you mean data_dir?',
    'hostname: "mail.example.com:25" is not a host name',
    'shutdown_grace: "1h" is not a duration from 0 to 15m',
    'http.listen.0: "abc" is not host:port, e.g. 127.0.0.1:8025 or [::1]:8025',
    'http.listen.2: ":25" is not host:port, e.g. 127.0.0.1:8025 or [::1]:8025',
    'http.listen.3: 7 is not host:port, e.g. 127.0.0.1:8025 or [::1]:8025',
    'mta.shared_address: "nobody" is not a mail address, or "" for none',
    'mta.capture: "yes" is not true or false',
    'mta.port: 70000 is not a whole number from 1 to 65535',
    'mta.connections: 0 is not a whole number from 1 to 10000',
    'mta.connection_idle: "soon" is not a duration from 0 to 5m',
    'mta.retry.factor: 0.5 is not a number from 1 to 10',
    'mta.timeouts.final_dot: "30s" is not a duration from 1m to 1h',
    'dns.servers.0: "ns.example.com" is not an IP address, with :port if not 53',
    'limits.message_size: "25" is not a size from 64KB to 1GB',
    'log.level: "loud" is not one of debug, info, warn, error, silent',
  ])
})

t.test('a section, list or list of tables of the wrong type is a fault, not a crash', async t => {
  t.same(faultsOf(`${HOSTNAME}http = 8025\ndns.servers = "127.0.0.1"\nmta.routes = ["a"]\nmta.sites = 3`), [
    'http: must be a table',
    'mta.routes.0: must be a table',
    'mta.sites: must be tables, [[mta.sites]]',
    'dns.servers: must be a list, [...]',
  ])
})

t.test('broken TOML is reported with line and column, without quoting the file', async t => {
  const [fault = ''] = faultsOf(`${HOSTNAME}[[mta.routes]]\npassword = "hunter2" x\n`)
  t.match(fault, /^line 3, column \d+: /)
  t.notMatch(fault, /hunter2/)
})

t.test('a missing file is named, with instructions to create it', async t => {
  try {
    loadConfig({ schema: CONFIG_SCHEMA, file: '/nonexistent/postroad.toml', env: {} })
    t.fail('it loaded')
  } catch (error) {
    t.match(error, {
      name: 'ConfigError',
      message: /^\/nonexistent\/postroad\.toml: 1 fault\n {2}no such file; create it/,
    })
  }
})

t.test('IPv6 addresses are written in brackets', async t => {
  t.same(load(`${HOSTNAME}[http]\nlisten = ["[::1]:25"]`).config.http.listen, [{ host: '::1', port: 25 }])
  t.same(faultsOf(`${HOSTNAME}[http]\nlisten = ["::1:25"]`).length, 1)
  t.same(load(`${HOSTNAME}[dns]\nservers = ["::1", "127.0.0.1:5353"]`).config.dns.servers, [
    { host: '::1', port: 53 },
    { host: '127.0.0.1', port: 5353 },
  ])
})

t.test('a relative database file is in the data folder, an absolute one is used unchanged', async t => {
  const fileOf = (url: string) =>
    load(`${HOSTNAME}data_dir = "./data"\n[database]\nurl = "${url}"`).config.databaseFile
  t.equal(fileOf('sqlite:mail.db'), 'data/mail.db')
  t.equal(fileOf('sqlite:/srv/mail.db'), '/srv/mail.db')
})

t.test(
  'a postgres URL takes the place of the file, and listens there unless another URL is given',
  async t => {
    const placeOf = (lines: string) => {
      const { databaseFile, postgres } = load(`${HOSTNAME}[database]\n${lines}`).config
      return { databaseFile, postgres }
    }
    const url = 'postgres://mail@localhost/mail?host=/run/postgresql'
    t.same(placeOf(`url = "${url}"`), { databaseFile: undefined, postgres: { url, listenUrl: url } })
    const listenUrl = 'postgres://mail@db.example.com/mail'
    t.match(placeOf(`url = "${url}"\nlisten_url = "${listenUrl}"`), { postgres: { url, listenUrl } })
  },
)

t.test('the password in a wrong database URL is not repeated', async t => {
  t.same(faultsOf(`${HOSTNAME}[database]\nurl = "mysql://mail:hunter2@db.example.com/mail"`), [
    'database.url: is not sqlite:FILE or postgres://USER@HOST/DATABASE',
  ])
})

t.test('routes keep their order and take exact names, *.names and *', async t => {
  const { config } = load(`${HOSTNAME}
    [[mta.routes]]
    domain = "Example.ORG"
    host = "mx.corp.example"
    tls = "verify"
    username = "relay"
    password = "hunter2"
    [[mta.routes]]
    domain = "*.corp.example"
    host = "10.0.0.5"
    port = 2525
    [[mta.routes]]
    domain = "*"
    host = "::1"
    tls = "none"
  `)
  t.equal(config.mta.routes.length, 3)
  t.match(config.mta.routes, [
    {
      domain: 'example.org',
      host: 'mx.corp.example',
      port: 25,
      tls: 'verify',
      username: 'relay',
      password: 'hunter2',
      passwordWithoutVerification: false,
    },
    { domain: '*.corp.example', host: '10.0.0.5', port: 2525, tls: 'opportunistic', username: '' },
    { domain: '*', host: '::1', port: 25, tls: 'none', username: '' },
  ])
})

t.test('a route without a host or with half its credentials is a fault that hides the password', async t => {
  const faults = faultsOf(`${HOSTNAME}
    [[mta.routes]]
    domain = "*.*.example"
    password = "hunter2"
    [[mta.routes]]
    domain = "*"
    host = "10.0.0.5"
    password = ["hunter2"]
  `)
  t.same(faults, [
    'mta.routes.0.domain: "*.*.example" is not a domain, *.domain or *',
    'mta.routes.0.host: missing; e.g. host = "10.0.0.5"',
    'mta.routes.1.password: is not plain text',
    'mta.routes.0: set both username and password, or neither',
    'mta.routes.1: set both username and password, or neither',
  ])
})

t.test('a password needs verified TLS, a loopback host, or explicit permission', async t => {
  const route = (...lines: readonly string[]) =>
    [HOSTNAME, '[[mta.routes]]', 'domain = "*"', 'username = "relay"', 'password = "hunter2"', ...lines].join(
      '\n',
    )
  for (const [tls, line] of [
    ['opportunistic', ''],
    ['none', 'tls = "none"'],
    ['require', 'tls = "require"'],
  ] as const)
    t.same(faultsOf(route('host = "relay.example"', line)), [
      `mta.routes.0: with tls = "${tls}" the password could be intercepted; set tls = "verify", or password_without_verification = true`,
    ])
  for (const lines of [
    ['host = "relay.example"', 'tls = "verify"'],
    ['host = "relay.example"', 'tls = "none"', 'password_without_verification = true'],
    ['host = "127.0.0.1"'],
    ['host = "::1"', 'tls = "none"'],
  ])
    t.match(load(route(...lines)).config.mta.routes, [{ username: 'relay', password: 'hunter2' }])
})

t.test('retries cannot expire before the first one', async t => {
  t.same(faultsOf(`${HOSTNAME}[mta.retry]\nfirst = "2h"\nmax = "1h"\nexpire = "30m"`), [
    'mta.retry.max: must be at least mta.retry.first',
    'mta.retry.expire: must be at least mta.retry.first',
  ])
})

t.test('environment variables override the file and the defaults', async t => {
  const { config } = load(`${HOSTNAME}[mta.retry]\nfirst = "5m"\nmax = "3h"`, {
    POSTROAD_HOSTNAME: 'other.example.com',
    POSTROAD_MTA_RETRY_FIRST: '10m',
    POSTROAD_MTA_TIMEOUTS_FINAL_DOT: '15m',
    POSTROAD_MTA_CAPTURE: 'true',
    POSTROAD_MTA_PORT: '2525',
    POSTROAD_HTTP_LISTEN: '127.0.0.1:1, [::1]:2',
    POSTROAD_DNS_SERVERS: '',
    POSTROAD_MTA_ROUTES: '[{"domain": "*", "host": "10.0.0.5"}]',
    PATH: '/usr/bin',
  })
  t.match(config, {
    hostname: 'other.example.com',
    http: {
      listen: [
        { host: '127.0.0.1', port: 1 },
        { host: '::1', port: 2 },
      ],
    },
    mta: {
      capture: true,
      port: 2525,
      retry: { firstMs: 600_000, maxMs: 10_800_000 },
      timeouts: { finalDotMs: 900_000 },
      routes: [{ domain: '*', host: '10.0.0.5', port: 25 }],
    },
    dns: { servers: [] },
  })
})

t.test('faults of environment variables name the variable', async t => {
  t.same(
    faultsOf(HOSTNAME, {
      POSTROAD_MTA_RETRY_FRIST: '10m',
      POSTROAD_MTA_PORT: 'smtp',
      POSTROAD_MTA_CAPTURE: '1',
      POSTROAD_HTTP_LISTEN: '127.0.0.1:1,here',
      POSTROAD_MTA_ROUTES: '[{"password": "hunter2"',
    }),
    [
      'POSTROAD_MTA_RETRY_FRIST: unknown variable, did you mean POSTROAD_MTA_RETRY_FIRST?',
      'mta.routes (POSTROAD_MTA_ROUTES): must be a list of tables in JSON, [{...}, ...]',
      'http.listen.1 (POSTROAD_HTTP_LISTEN): "here" is not host:port, e.g. 127.0.0.1:8025 or [::1]:8025',
      'mta.capture (POSTROAD_MTA_CAPTURE): "1" is not true or false',
      'mta.port (POSTROAD_MTA_PORT): "smtp" is not a whole number from 1 to 65535',
    ],
  )
})

t.test('POSTROAD_CONFIG is not a key', async t => {
  t.equal(load(HOSTNAME, { POSTROAD_CONFIG: '/srv/postroad.toml' }).config.hostname, 'mail.example.com')
  t.equal(chooseConfigFile(undefined, { POSTROAD_CONFIG: '/srv/a.toml' }), '/srv/a.toml')
  t.equal(chooseConfigFile('b.toml', { POSTROAD_CONFIG: '/srv/a.toml' }), 'b.toml')
  t.equal(chooseConfigFile(undefined, { POSTROAD_CONFIG: '' }), '/etc/postroad/postroad.toml')
})

t.test('every key of the file has an effect', async t => {
  const { config, keysWithoutEffect } = load(
    `${HOSTNAME}
    [webhooks]
    allow_networks = []
    [mta]
    sites = []
    [dns]
    listen = ["0.0.0.0:53"]`,
    { POSTROAD_PUBLIC_URL: 'https://mail.example.com/' },
  )
  t.same(keysWithoutEffect, [])
  t.equal(config.publicUrl, 'https://mail.example.com')
  t.same(faultsOf(`${HOSTNAME}[webhooks]\nallow_networks = ["10.0.0.0/33"]`), [
    'webhooks.allow_networks.0: "10.0.0.0/33" is not a network, e.g. 192.168.7.0/24',
  ])
  t.same(faultsOf(`${HOSTNAME}[[mta.sites]]\nconnections = 1`), ['mta.sites.0: set either mx or domain'])
})

t.test('TLS can be required per MX host or domain, and MTA-STS disabled', async t => {
  const { config, keysWithoutEffect } = load(`${HOSTNAME}
    [mta]
    mta_sts = false
    [[mta.sites]]
    mx = "*.Bank.example"
    tls = "verify"
    [[mta.sites]]
    domain = "partner.example"`)
  t.equal(config.mta.mtaSts, false)
  t.match(config.mta.sites, [
    { mx: '*.bank.example', domain: undefined, tls: 'verify' },
    { mx: undefined, domain: 'partner.example', tls: 'opportunistic' },
  ])
  t.same(keysWithoutEffect, [])
})

t.test('a site cannot disable TLS', async t => {
  t.same(faultsOf(`${HOSTNAME}[[mta.sites]]\nmx = "*"\ntls = "none"`), [
    'mta.sites.0.tls: "none" is not one of opportunistic, require, verify',
  ])
})

t.test('a node without a role for clients has no addresses to listen on', async t => {
  const { config } = load(
    `${HOSTNAME}[roles]\nhttp = false\nsubmission = false\n[http]\nlisten_tls = ["[::]:443"]\n`,
  )
  t.match(config.http, { listen: [], listenTls: [], publicListen: [], redirectListen: [] })
  t.match(config.submission, { listen: [], listenTls: [] })
  t.not(config.inbound.listen.length, 0)
})

t.test('with SQLite the only node delivers and runs jobs; with PostgreSQL a node may do without', async t => {
  const withoutWork = '[roles]\nmta = false\nscheduler = false\n'
  t.match(faultsOf(`${HOSTNAME}${withoutWork}`), [
    /^roles.mta: must be true with SQLite, .* set database.url to a PostgreSQL database$/,
    /^roles.scheduler: must be true with SQLite/,
  ])
  const url = '[database]\nurl = "postgres://postroad@db.example.com/postroad"\n'
  t.match(load(`${HOSTNAME}${withoutWork}${url}`).config.roles, { mta: false, scheduler: false, http: true })
  t.match(load(HOSTNAME, { POSTROAD_ROLES_HTTP: 'false' }).config.roles, { http: false })
})

t.test('a node needs a role', async t => {
  const none = ['http', 'submission', 'inbound', 'mta', 'scheduler'].map(role => `${role} = false\n`).join('')
  t.same(faultsOf(`${HOSTNAME}[roles]\n${none}`), ['roles: must have at least one role that is true'])
})
