/**
 * Every key of the configuration: default, unit, bounds, meaning and example, in the order of the generated file.
 *
 * What resources add (`src/resource/`) is handed in by the composition root, so that this floor knows none of them. Read by the
 * loader (checking, decoding), by the generators (`config/postroad.toml`, `config/REFERENCE.md`) and by nobody else: the program
 * is handed a `Config`. A key that only a later version will read says `effective: false`,
 * so that the operator hears of it. Defaults are written as the operator would write them.
 */
import type { TObject } from 'typebox'
import { choice, duration, integer, list, parsed, parsedOrDerived, size, table, text } from './fields.js'
import { INBOUND_SECTION, SUBMISSION_SECTION, TLS_SECTION } from './schema-listeners.js'
import { MTA_SECTION } from './schema-mta.js'
import { retentionSection, type KeptFor } from './schema-retention.js'
import { SECRETS_SECTION } from './secret-key.js'
import {
  parseDatabaseUrl,
  parseDomain,
  parseHostAndPort,
  parseNameServer,
  parseNetwork,
  parseWebUrl,
} from './values.js'

const item = { description: '' }
const LISTEN = parsed(parseHostAndPort, 'host:port, e.g. 127.0.0.1:8025 or [::1]:8025', item)
const NETWORK = parsed(parseNetwork, 'a network, e.g. 192.168.7.0/24', item)

/** What the appliance itself is configured by. */
const APPLIANCE = {
  hostname: parsed(parseDomain, 'a host name', {
    example: 'mail.example.com',
    description: 'Name of this machine as DNS knows it; used in EHLO, Received and Message-ID. Required.',
  }),
  data_dir: text({ default: '/var/lib/postroad', description: 'Folder of the database and the secrets.' }),
  public_url: parsedOrDerived(parseWebUrl, 'an http or https URL', {
    default: '',
    fromHostname: hostname => `https://${hostname}`,
    example: 'https://mail.example.com',
    description:
      'Base of the links in mails: tracking, unsubscribe, preferences. Empty: `https://` and the hostname.',
  }),
  shutdown_grace: duration({
    default: '30s',
    min: '0',
    max: '15m',
    description: 'How long SMTP sessions and requests in hand may take to finish after SIGTERM.',
  }),
  http: table(
    {
      listen: list(LISTEN, {
        default: ['127.0.0.1:8025'],
        example: ['127.0.0.1:8025', '[::1]:8025'],
        description:
          'Addresses to listen on; port 0 lets the system choose one. `[::]` is every address, IPv4 included; next to `0.0.0.0` with the ' +
          'same port it is IPv6 only.',
      }),
      public_listen: list(LISTEN, {
        default: [],
        example: ['[::]:8080'],
        description:
          'Addresses for the public pages (links in mails, forms) alone: where one is set, they answer there and nothing else does, ' +
          'and `listen` has none of them. Empty: `listen` has both.',
      }),
      listen_tls: list(LISTEN, {
        default: [],
        example: ['[::]:443'],
        description: 'The same over TLS (HTTPS), with the certificate of `[tls]`.',
      }),
      public_listen_tls: list(LISTEN, {
        default: [],
        example: ['[::]:443'],
        description: 'The same as `public_listen` over TLS.',
      }),
      redirect_listen: list(LISTEN, {
        default: [],
        example: ['[::]:80'],
        description:
          'Addresses that lead browsers to `public_url`, and answer the proofs of `tls.acme`; nothing else is served there.',
      }),
      public_rate_limit: integer({
        min: 0,
        max: 1_000_000,
        default: 600,
        description:
          'Public pages per minute from one client address; clicks, opens and one-click unsubscribes are not counted. 0 = unlimited.',
      }),
      trusted_proxies: list(NETWORK, {
        default: [],
        example: ['127.0.0.1/32'],
        description:
          'Reverse proxies whose X-Forwarded-For is believed, for public pages: without it all their visitors count as one address. Their connections, and those from 127.0.0.1 and ::1, are never cut in favour of others.',
      }),
      anonymous_rate_limit: integer({
        min: 0,
        max: 1_000_000,
        default: 600,
        description: 'Requests per minute from one client address without a valid key; 0 = unlimited.',
      }),
      connections: integer({
        min: 10,
        max: 100_000,
        default: 4_000,
        description:
          'Connections at a time in all. Beyond it the network that holds most loses silent ones to newcomers; otherwise those are answered 503.',
      }),
      connections_per_address: integer({
        min: 10,
        max: 100_000,
        default: 1_000,
        description:
          'Connections at a time from one address (one /64 of IPv6); a reverse proxy counts as one address.',
      }),
    },
    { description: 'The REST API under /api/v1, public pages, /openapi.json, /metrics, /health.' },
  ),
  submission: SUBMISSION_SECTION,
  inbound: INBOUND_SECTION,
  tls: TLS_SECTION,
  database: table(
    {
      url: parsed(parseDatabaseUrl, 'sqlite:FILE', {
        default: 'sqlite:postroad.db',
        // A postgres URL holds a password.
        secret: 'when_wrong',
        description: 'SQLite file, relative to data_dir. postgres:// is reserved for a later version.',
      }),
    },
    { description: 'Where everything is kept.' },
  ),
  secrets: SECRETS_SECTION,
  mta: MTA_SECTION,
  dns: table(
    {
      servers: list(parsed(parseNameServer, 'an IP address, with :port if not 53', item), {
        default: [],
        example: ['127.0.0.1:5353'],
        description: "Resolvers to ask; empty uses the system's.",
      }),
      timeout: duration({
        default: '5s',
        min: '100ms',
        max: '1m',
        description: 'For one answer of one resolver.',
      }),
      dkim_zone: parsedOrDerived(parseDomain, 'a domain name', {
        default: '',
        fromHostname: hostname => `dkim.${hostname}`,
        example: 'dkim.mail.example.com',
        description: "Zone that customers' DKIM CNAMEs point into. Empty: `dkim.` before the hostname.",
      }),
      listen: list(LISTEN, {
        default: [],
        example: ['0.0.0.0:53'],
        description:
          'Addresses on which to answer for dkim_zone with authority, by UDP and TCP; empty for none. On a machine with several addresses ' +
          'name the one that the hostname has: answers leave from there.',
      }),
    },
    { description: 'Looking up names, and publishing DKIM keys.' },
  ),
  webhooks: table(
    {
      allow_networks: list(NETWORK, {
        default: [],
        example: ['10.0.0.0/8'],
        description:
          'Networks beside the public Internet that webhooks, and webhook steps of automations, may call: private ones, this machine. ' +
          'Nothing else opens them.',
      }),
      allow_networks_for: choice(['all', 'permitted'], {
        default: 'all',
        description:
          'Whose webhooks may call allow_networks: `all` workspaces, or only those with the setting allow_private_webhooks ' +
          '(`permitted`; webhook steps then call the public Internet alone).',
      }),
    },
    { description: 'Calls to customers about events.' },
  ),
}

const LIMITS_SECTION = table(
  {
    message_size: size({
      default: '25MB',
      min: '64KB',
      max: '1GB',
      description: 'Largest message accepted, everything encoded.',
    }),
    disk_reserve: size({
      default: '500MB',
      min: '0B',
      max: '1000GB',
      description:
        'Free space on the disk of the database below which new mail is refused (452, 503), while what was accepted is still delivered; 0B = none.',
    }),
  },
  { description: 'What is accepted at all.' },
)

const LOG_SECTION = table(
  {
    level: choice(['debug', 'info', 'warn', 'error', 'silent'], {
      default: 'info',
      description: 'Least important event that is written, as lines on standard output.',
    }),
    format: choice(['json', 'text'], {
      default: 'json',
      description:
        'Form of a line: an object of JSON, or words and `name=value` for people. To the journal of systemd each line goes with its priority, so that `journalctl -p warning` shows what matters.',
    }),
  },
  { description: 'What is written down.' },
)

/** What resources add to the configuration. */
export interface AddedKeys {
  /** Sections of their own, by name. */
  readonly sections: Readonly<Record<string, TObject>>
  /** Keys of `[retention]`. */
  readonly kept: Readonly<Record<string, KeptFor>>
}

/** What is there whatever resources add. */
export const OWN_KEYS = table({ ...APPLIANCE, limits: LIMITS_SECTION, log: LOG_SECTION })

export function configSchema({ sections, kept }: AddedKeys) {
  const { log, limits, ...first } = OWN_KEYS.properties
  const known = { ...first, limits, retention: retentionSection(kept), log }
  // In the order of the file. What is added has no type here: it is read by the resource that declares it.
  return table<typeof known>({ ...first, ...sections, ...known })
}

export type ConfigSchema = ReturnType<typeof configSchema>
