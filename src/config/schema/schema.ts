/**
 * All configuration keys: default, unit, bounds, description and example, in the order of the generated file.
 *
 * The composition root passes in the keys of resources (`src/resource/`), so nothing here depends on them. Used by the loader and by
 * the generators of `config/postroad.toml` and `config/REFERENCE.md`; the program gets a `Config`. A key for a later version is
 * marked `effective: false`, so that setting it warns. Defaults are in file notation.
 */
import type { TObject } from 'typebox'
import {
  choice,
  duration,
  flag,
  integer,
  keeping,
  list,
  parsed,
  parsedOrDerived,
  size,
  table,
  text,
  optionalParsed,
} from './fields.js'
import { INBOUND_SECTION, proxyProtocolFrom, SUBMISSION_SECTION, TLS_SECTION } from './schema-listeners.js'
import { MTA_SECTION } from './schema-mta.js'
import { SECRETS_SECTION } from './secret-key.js'
import {
  parseDatabaseUrl,
  parsePostgresUrl,
  parseDomain,
  parseHostAndPort,
  parseNameServer,
  parseNetwork,
  parseWebUrl,
} from './values.js'

/** Retention of one kind of record, in file notation. */
export interface KeptFor {
  /** E.g. `90d`; `0` = forever. */
  readonly default: string
  /** Minimum; one day if absent. */
  readonly min?: string
  readonly description: string
}

export function retentionSection(kept: Readonly<Record<string, KeptFor>>) {
  const keys = Object.entries(kept).map(
    ([name, { min = '1d', ...notes }]) => [name, keeping({ min, ...notes })] as const,
  )
  return table<Record<string, ReturnType<typeof keeping>>>(Object.fromEntries(keys), {
    description: 'How long records are kept; 0 = forever. Older ones are deleted hourly, in small steps.',
  })
}

const item = { description: '' }
const LISTEN = parsed(parseHostAndPort, 'host:port, e.g. 127.0.0.1:8025 or [::1]:8025', item)
const NETWORK = parsed(parseNetwork, 'a network, e.g. 192.168.7.0/24', item)

/** Keys of the service itself. */
const APPLIANCE = {
  hostname: parsed(parseDomain, 'a host name', {
    example: 'mail.example.com',
    description: "This machine's name in DNS; used in EHLO, Received and Message-ID. Required.",
  }),
  data_dir: text({ default: '/var/lib/postroad', description: 'Directory of the database and the secrets.' }),
  public_url: parsedOrDerived(parseWebUrl, 'an http or https URL', {
    default: '',
    fromHostname: hostname => `https://${hostname}`,
    example: 'https://mail.example.com',
    description:
      'Base URL of links in mail: tracking, unsubscribe, preferences. Empty: `https://` plus the hostname.',
  }),
  shutdown_grace: duration({
    default: '30s',
    min: '0',
    max: '15m',
    description: 'How long SMTP sessions and HTTP requests in progress may take to finish after SIGTERM.',
  }),
  http: table(
    {
      listen: list(LISTEN, {
        default: ['127.0.0.1:8025'],
        example: ['127.0.0.1:8025', '[::1]:8025'],
        description:
          'Addresses to listen on; port 0 lets the system choose. `[::]` listens on all addresses, IPv4 included; next to a `0.0.0.0` with the ' +
          'same port it is IPv6 only.',
      }),
      public_listen: list(LISTEN, {
        default: [],
        example: ['[::]:8080'],
        description:
          'Addresses that serve only the public pages (links in mail, forms). If set, `listen` does not serve them. ' +
          'Empty: `listen` serves both.',
      }),
      listen_tls: list(LISTEN, {
        default: [],
        example: ['[::]:443'],
        description: 'Like `listen`, over TLS (HTTPS) with the certificate of `[tls]`.',
      }),
      public_listen_tls: list(LISTEN, {
        default: [],
        example: ['[::]:443'],
        description: 'Like `public_listen`, over TLS.',
      }),
      redirect_listen: list(LISTEN, {
        default: [],
        example: ['[::]:80'],
        description:
          'Addresses that redirect browsers to `public_url` and answer `tls.acme` challenges; nothing else is served.',
      }),
      public_rate_limit: integer({
        min: 0,
        max: 1_000_000,
        default: 600,
        description:
          'Public page requests per minute from one client address, except clicks, opens and one-click unsubscribes; 0 = no limit.',
      }),
      trusted_proxies: list(NETWORK, {
        default: [],
        example: ['127.0.0.1/32'],
        description:
          'Reverse proxies whose X-Forwarded-For is trusted: limits by address, sign-in, sessions and the activity log then see the client; without it all their clients count as one address. Their connections, and those from 127.0.0.1 and ::1, are never closed to make room for others.',
      }),
      proxy_protocol_from: proxyProtocolFrom(),
      anonymous_rate_limit: integer({
        min: 0,
        max: 1_000_000,
        default: 600,
        description: 'Requests per minute without a valid key from one client address; 0 = no limit.',
      }),
      connections: integer({
        min: 10,
        max: 100_000,
        default: 4_000,
        description:
          'Maximum concurrent connections. At the limit, idle connections of the busiest network are closed for new ones; without idle connections, new ones get 503.',
      }),
      connections_per_address: integer({
        min: 10,
        max: 100_000,
        default: 1_000,
        description:
          'Maximum concurrent connections from one address (one /64 for IPv6); a reverse proxy counts as one address.',
      }),
    },
    { description: 'HTTP: the REST API under /api/v1, public pages, /openapi.json, /metrics, /health.' },
  ),
  submission: SUBMISSION_SECTION,
  inbound: INBOUND_SECTION,
  tls: TLS_SECTION,
  database: table(
    {
      url: parsed(parseDatabaseUrl, 'sqlite:FILE or postgres://USER@HOST/DATABASE', {
        default: 'sqlite:postroad.db',
        // A postgres URL can contain a password.
        secret: 'when_wrong',
        description:
          'SQLite file, relative to data_dir, or a PostgreSQL database (15 or later), which several nodes may share. Of several hosts (`postgres://a,b/postroad`) the one that takes writes is used.',
      }),
      listen_url: optionalParsed(parsePostgresUrl, 'postgres://USER@HOST/DATABASE', {
        default: '',
        example: 'postgres://postroad@db.example.com/postroad',
        secret: 'when_wrong',
        description:
          'URL of the same PostgreSQL database that does not lead through PgBouncer in transaction mode, for LISTEN. Empty: `url`.',
      }),
    },
    { description: 'The database.' },
  ),
  storage: table(
    {
      copy_before_upgrade: choice(['when_room', 'always', 'never'], {
        default: 'when_room',
        description:
          'Whether a new version copies the SQLite database before it upgrades it, to a file beside it named ' +
          '`postroad.db.before-upgrade-VERSION-TIME`, which `postroad restore` accepts; the newest two are kept. `when_room`: if the disk has ' +
          'room for it beside limits.disk_reserve, otherwise the log says so and the upgrade proceeds. `always`: without a copy the upgrade ' +
          'is refused, and the database left as it was. `never`: no copy. No effect with PostgreSQL: use pg_dump.',
      }),
    },
    { description: 'Files of the database.' },
  ),
  roles: table(
    {
      http: flag({
        default: true,
        description: 'Listens on the addresses of `[http]`: REST API, console, public pages.',
      }),
      submission: flag({ default: true, description: 'Listens on the addresses of `[submission]`.' }),
      inbound: flag({
        default: true,
        description:
          'Listens on the addresses of `[inbound]`. What it receives is processed by the node that holds the lease `inbound`.',
      }),
      mta: flag({
        default: true,
        description: 'Delivers mail: takes a share of the destinations. With SQLite always true.',
      }),
      scheduler: flag({
        default: true,
        description:
          'Does background work, which the nodes share by kind: jobs, campaigns, automations, webhooks, statistics, contacts, inbound mail. With SQLite always true.',
      }),
    },
    {
      description:
        'What this node does, of several that share a PostgreSQL database (docs/nodes.md). The control socket is always open.',
    },
  ),
  secrets: SECRETS_SECTION,
  mta: MTA_SECTION,
  dns: table(
    {
      servers: list(parsed(parseNameServer, 'an IP address, with :port if not 53', item), {
        default: [],
        example: ['127.0.0.1:5353'],
        description: 'Resolvers to query; empty uses those of the system.',
      }),
      timeout: duration({
        default: '5s',
        min: '100ms',
        max: '1m',
        description: 'Timeout of one query to one resolver.',
      }),
      dkim_zone: parsedOrDerived(parseDomain, 'a domain name', {
        default: '',
        fromHostname: hostname => `dkim.${hostname}`,
        example: 'dkim.mail.example.com',
        description: "Zone that customers' DKIM CNAMEs point to. Empty: `dkim.` plus the hostname.",
      }),
      listen: list(LISTEN, {
        default: [],
        example: ['0.0.0.0:53'],
        description:
          'Addresses on which to serve dkim_zone as authoritative server, over UDP and TCP; empty for none. On a machine with several addresses ' +
          'use the one the hostname resolves to, since replies are sent from it.',
      }),
    },
    { description: 'Name resolution, and publication of DKIM keys.' },
  ),
  webhooks: table(
    {
      allow_networks: list(NETWORK, {
        default: [],
        example: ['10.0.0.0/8'],
        description:
          'Non-public networks (private, loopback) that webhooks and webhook steps of automations may call, in addition to the public Internet. ' +
          'All others stay blocked.',
      }),
      allow_networks_for: choice(['all', 'permitted'], {
        default: 'all',
        description:
          'Whose webhooks may call allow_networks: `all` workspaces, or only those with the setting allow_private_webhooks ' +
          '(`permitted`; webhook steps may then call only the public Internet).',
      }),
    },
    { description: 'Event notifications to customers over HTTP.' },
  ),
}

const LIMITS_SECTION = table(
  {
    message_size: size({
      default: '25MB',
      min: '64KB',
      max: '1GB',
      description: 'Largest message accepted, in encoded form.',
    }),
    disk_reserve: size({
      default: '500MB',
      min: '0B',
      max: '1000GB',
      description:
        'Minimum free space on the disk of the database. Below it new mail is refused (452, 503), while accepted mail is still delivered; 0B = none.',
    }),
  },
  { description: 'Limits of message intake.' },
)

const LOG_SECTION = table(
  {
    level: choice(['debug', 'info', 'warn', 'error', 'silent'], {
      default: 'info',
      description: 'Minimum level of messages written to standard output.',
    }),
    format: choice(['json', 'text'], {
      default: 'json',
      description:
        'Line format: a JSON object, or text with `name=value` pairs. Lines to the systemd journal carry their priority, so `journalctl -p warning` works.',
    }),
  },
  { description: 'Logging.' },
)

/** Configuration keys added by resources. */
export interface AddedKeys {
  /** Sections by name. */
  readonly sections: Readonly<Record<string, TObject>>
  /** Keys of `[retention]`. */
  readonly kept: Readonly<Record<string, KeptFor>>
}

/** Keys independent of resources. */
export const OWN_KEYS = table({ ...APPLIANCE, limits: LIMITS_SECTION, log: LOG_SECTION })

export function configSchema({ sections, kept }: AddedKeys) {
  const { log, limits, ...first } = OWN_KEYS.properties
  const known = { ...first, limits, retention: retentionSection(kept), log }
  // In file order. Added sections have no type here; the resource that declares one reads it.
  return table<typeof known>({ ...first, ...sections, ...known })
}

export type ConfigSchema = ReturnType<typeof configSchema>
