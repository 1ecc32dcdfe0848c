/**
 * Every key of the configuration: default, unit, bounds, meaning and example, in the order of the generated file.
 *
 * Read by the loader (checking, decoding), by the generators (`config/postroad.toml`, `config/REFERENCE.md`) and by
 * nobody else: the program is handed a `Config`. A key that only a later version will read says `effective: false`,
 * so that the operator hears of it. Defaults are written as the operator would write them.
 */
import { type StaticDecode } from 'typebox'
import {
  choice,
  duration,
  flag,
  integer,
  list,
  number,
  optionalParsed,
  parsed,
  size,
  table,
  text,
} from './fields.js'
import { SECRETS_SECTION } from './secret-key.js'
import {
  parseDatabaseUrl,
  parseDomain,
  parseDomainPattern,
  parseHost,
  parseHostAndPort,
  parseIpAddress,
  parseMailAddress,
  parseNameServer,
  parseNetwork,
  parseWebUrl,
} from './values.js'

const item = { description: '' }
const LISTEN = parsed(parseHostAndPort, 'host:port, e.g. 127.0.0.1:8025 or [::1]:8025', item)
const NETWORK = parsed(parseNetwork, 'a network, e.g. 192.168.7.0/24', item)

const trustedNetwork = table({
  network: parsed(parseNetwork, 'a network, e.g. 192.168.7.0/24', {
    description: 'Network or single address the devices connect from.',
    example: '192.168.7.0/24',
  }),
  key: text({
    description: 'Id of the API key whose permissions and limits they act with.',
    example: 'key-id',
  }),
})

const route = table({
  domain: parsed(parseDomainPattern, 'a domain, *.domain or *', {
    description:
      'Recipient domain: exactly this one, `*.domain` for every name below it, or `*` for all that are left.',
    example: '*.corp.example',
  }),
  host: parsed(parseHost, 'a host name or an IP address', {
    description: 'Host that takes mail for these domains; no MX look-up is made.',
    example: '10.0.0.5',
  }),
  port: integer({ min: 1, max: 65_535, default: 25, description: 'Port of that host.' }),
  tls: choice(['none', 'opportunistic', 'require', 'verify'], {
    default: 'opportunistic',
    description:
      'none: never; opportunistic: where offered, whatever the certificate; require: always, whatever the certificate; verify: always, with a certificate that is right for the host.',
  }),
  username: text({ default: '', description: 'User name for SMTP AUTH at that host; empty for none.' }),
  password: text({ default: '', secret: 'always', description: 'Password for SMTP AUTH at that host.' }),
})

const site = table({
  mx: optionalParsed(parseDomainPattern, 'a host, *.domain or *', {
    default: '',
    description: 'Pattern of the MX host whose site this is about.',
    example: '*.google.com',
  }),
  domain: optionalParsed(parseDomainPattern, 'a domain, *.domain or *', {
    default: '',
    description: 'Pattern of the recipient domain this is about, instead of `mx`.',
  }),
  tls: choice(['opportunistic', 'require', 'verify'], {
    default: 'opportunistic',
    description:
      'What connections to these MX hosts have to be, as for routes; of several sites and MTA-STS the strictest counts.',
  }),
  connections: integer({
    min: 0,
    max: 10_000,
    default: 20,
    description: 'Deliveries at a time at most; 0 = as mta.connections_per_destination says.',
  }),
  messages_per_minute: integer({
    min: 0,
    max: 1_000_000,
    default: 0,
    description: 'Messages per minute; 0 = no limit.',
  }),
})

/** RFC 5321 §4.5.3.2, but for `connect`, `starttls` and `quit`, of which it says nothing. */
const timeouts = table(
  {
    connect: duration({
      default: '30s',
      min: '1s',
      max: '10m',
      // A host that has not completed the handshake after five SYNs is down, and the next MX is waiting.
      description: 'For the TCP connection itself.',
    }),
    greeting: duration({ default: '5m', min: '1s', max: '1h', description: 'For the 220 greeting.' }),
    ehlo: duration({ default: '5m', min: '1s', max: '1h', description: 'For the reply to EHLO or HELO.' }),
    starttls: duration({
      default: '2m',
      min: '1s',
      max: '1h',
      description: 'For the reply to STARTTLS and again for the TLS handshake.',
    }),
    mail: duration({ default: '5m', min: '1s', max: '1h', description: 'For the reply to MAIL FROM.' }),
    rcpt: duration({ default: '5m', min: '1s', max: '1h', description: 'For the reply to RCPT TO.' }),
    data: duration({ default: '2m', min: '1s', max: '1h', description: 'For the 354 after DATA.' }),
    block: duration({
      default: '3m',
      min: '1s',
      max: '1h',
      description: 'For each block of the message to be taken.',
    }),
    final_dot: duration({
      default: '10m',
      min: '1m',
      max: '1h',
      description:
        'For the reply to the final dot. Giving up earlier makes duplicates: the server may have accepted.',
    }),
    quit: duration({
      default: '10s',
      min: '1s',
      max: '10m',
      // Everything is settled by then; the reply to QUIT only keeps the close from looking like an abort.
      description: 'For the reply to QUIT.',
    }),
  },
  { description: 'How long to wait for a remote server at each step (RFC 5321 §4.5.3.2).' },
)

const mta = table(
  {
    shared_address: optionalParsed(parseMailAddress, 'a mail address', {
      default: '',
      example: 'notify@mail.example.com',
      description: 'From address of mail whose own domain is not added; without it such mail is refused.',
    }),
    return_path_domain: optionalParsed(parseDomain, 'a domain name', {
      default: '',
      example: 'bounce.mail.example.com',
      description:
        'Domain of the envelope sender, to which bounces come back. Empty: `bounce.` before the hostname.',
    }),
    workers: integer({
      min: 0,
      max: 64,
      default: 0,
      description: 'Threads that build and deliver mail; 0 = one per core.',
    }),
    capture: flag({
      default: false,
      description: 'true keeps every outgoing mail in the local inbox instead of sending it.',
    }),
    port: integer({
      min: 1,
      max: 65_535,
      default: 25,
      description: 'Port of the remote servers found by MX look-up.',
    }),
    source_addresses: list(parsed(parseIpAddress, 'an IP address', item), {
      default: [],
      example: ['192.0.2.25'],
      description: 'Addresses of this machine to send from, in turn; empty lets the system choose.',
    }),
    connections: integer({ min: 1, max: 10_000, default: 500, description: 'Outgoing connections in all.' }),
    connections_per_destination: integer({
      min: 1,
      max: 1_000,
      default: 10,
      description: 'Outgoing connections to one destination.',
    }),
    connection_messages: integer({
      min: 1,
      max: 10_000,
      default: 100,
      description: 'Messages sent over one connection before it is closed.',
    }),
    connection_idle: duration({
      default: '3s',
      min: '0',
      max: '5m',
      description: 'How long an idle connection is kept for the next message; 0 closes it at once.',
    }),
    mta_sts: flag({
      default: true,
      description: 'Whether MTA-STS policies of recipient domains (RFC 8461) are applied.',
    }),
    routes: list(route, {
      default: [],
      description:
        'Where mail for certain domains goes instead of to their MX hosts. The first match wins; without a match the MX is looked up.',
    }),
    sites: list(site, {
      default: [],
      description: 'Limits and TLS for certain destinations, by MX host or by recipient domain.',
    }),
    retry: table(
      {
        first: duration({
          default: '5m',
          min: '1s',
          max: '1d',
          description: 'Delay after the first failure.',
        }),
        factor: number({ default: 1.5, min: 1, max: 10, description: 'Growth from one delay to the next.' }),
        max: duration({
          default: '4h',
          min: '1s',
          max: '7d',
          description: 'Longest delay between two attempts.',
        }),
        expire: duration({
          default: '3d',
          min: '1m',
          max: '30d',
          description: 'Age at which a message that still cannot be delivered is given up.',
        }),
      },
      { description: 'When deferred mail is tried again (RFC 5321 §4.5.4.1).' },
    ),
    timeouts,
  },
  { description: 'The outbound mail transfer agent.' },
)

export const SCHEMA = table({
  hostname: parsed(parseDomain, 'a host name', {
    example: 'mail.example.com',
    description: 'Name of this machine as DNS knows it; used in EHLO, Received and Message-ID. Required.',
  }),
  data_dir: text({ default: '/var/lib/postroad', description: 'Folder of the database and the secrets.' }),
  public_url: optionalParsed(parseWebUrl, 'an http or https URL', {
    default: '',
    example: 'https://mail.example.com',
    effective: false,
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
        description: 'Addresses to listen on; port 0 lets the system choose one.',
      }),
      anonymous_rate_limit: integer({
        min: 0,
        max: 1_000_000,
        default: 600,
        description: 'Requests per minute from one client address without a valid key; 0 = unlimited.',
      }),
    },
    { description: 'The REST API under /api/v1, public pages, /openapi.json, /metrics, /health.' },
  ),
  submission: table(
    {
      listen: list(LISTEN, {
        default: ['0.0.0.0:587'],
        description: 'Addresses for submission with STARTTLS.',
      }),
      listen_tls: list(LISTEN, {
        default: ['0.0.0.0:465'],
        description: 'Addresses for submission over implicit TLS.',
      }),
      require_tls: flag({
        default: true,
        description: 'false takes passwords in clear; for development on loopback or a trusted LAN only.',
      }),
      trusted_networks: list(trustedNetwork, {
        default: [],
        description: 'Devices that cannot authenticate (printers, old applications).',
      }),
    },
    { effective: false, description: 'SMTP submission for applications (RFC 6409, RFC 8314).' },
  ),
  inbound: table(
    { listen: list(LISTEN, { default: ['0.0.0.0:25'], description: 'Addresses to listen on.' }) },
    {
      effective: false,
      description: 'The SMTP listener for bounces, feedback reports and unsubscribe mail.',
    },
  ),
  tls: table(
    {
      cert: text({
        default: '',
        example: '/etc/postroad/tls/fullchain.pem',
        description: 'PEM file, chain included.',
      }),
      key: text({
        default: '',
        example: '/etc/postroad/tls/privkey.pem',
        description: 'PEM file of its private key.',
      }),
    },
    { effective: false, description: 'The certificate for SMTP and, where wanted, HTTPS.' },
  ),
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
  mta,
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
      dkim_zone: optionalParsed(parseDomain, 'a domain name', {
        default: '',
        example: 'dkim.mail.example.com',
        description: "Zone that customers' DKIM CNAMEs point into. Empty: `dkim.` before the hostname.",
      }),
      listen: list(LISTEN, {
        default: [],
        example: ['0.0.0.0:53'],
        effective: false,
        description: 'Addresses on which to answer for dkim_zone with authority; empty for none.',
      }),
    },
    { description: 'Looking up names, and publishing DKIM keys.' },
  ),
  webhooks: table(
    {
      allow_networks: list(NETWORK, {
        default: [],
        example: ['10.0.0.0/8'],
        description: 'Private networks that webhooks may call.',
      }),
    },
    { effective: false, description: 'Calls to customers about events.' },
  ),
  limits: table(
    {
      message_size: size({
        default: '25MB',
        min: '64KB',
        max: '1GB',
        description: 'Largest message accepted, everything encoded.',
      }),
    },
    { description: 'What is accepted at all.' },
  ),
  log: table(
    {
      level: choice(['debug', 'info', 'warn', 'error', 'silent'], {
        default: 'info',
        description: 'Least important event that is written, as JSON lines on standard output.',
      }),
    },
    { description: 'What is written down.' },
  ),
})

/** The configuration in the file's words, decoded: durations in ms, sizes in bytes, addresses in parts. */
export type Settings = StaticDecode<typeof SCHEMA>
