/**
 * The `[mta]` section of the configuration: what mail on its way out is held to.
 *
 * Part of `schema.ts`, which says how such a section is written.
 */
import {
  choice,
  duration,
  flag,
  integer,
  list,
  number,
  optionalParsed,
  parsed,
  parsedOrDerived,
  table,
  text,
} from './fields.js'
import { parseDomain, parseDomainPattern, parseHost, parseIpAddress, parseMailAddress } from './values.js'

const item = { description: '' }

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
  password: text({
    default: '',
    secret: 'always',
    description:
      'Password for SMTP AUTH at that host. It is said under `tls = "verify"` only, unless the host is a loopback address.',
  }),
  password_without_verification: flag({
    default: false,
    description:
      'true says the password to a host whose certificate nobody checks, and with `tls = "none"` in clear, where anybody on the way can read it.',
  }),
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
    attempt: duration({
      default: '10m',
      min: '1m',
      max: '2h',
      description:
        'For all hosts and addresses of one attempt together, until one of them has taken sender and recipient. Each address gets an equal share of what is left for greeting and TLS.',
    }),
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

const sourcePool = table({
  workspace: text({ description: 'Id of the workspace.', example: 'workspace-id' }),
  addresses: list(parsed(parseIpAddress, 'an IP address', item), {
    default: [],
    example: ['192.0.2.26', '192.0.2.27'],
    description: 'Addresses of this machine that its mail is sent from, in turn.',
  }),
})

export const MTA_SECTION = table(
  {
    shared_address: optionalParsed(parseMailAddress, 'a mail address', {
      default: '',
      example: 'notify@mail.example.com',
      description: 'From address of mail whose own domain is not added; without it such mail is refused.',
    }),
    return_path_domain: parsedOrDerived(parseDomain, 'a domain name', {
      default: '',
      fromHostname: hostname => `bounce.${hostname}`,
      example: 'bounce.mail.example.com',
      description:
        'Domain of the envelope sender, to which bounces come back. Empty: `bounce.` before the hostname.',
    }),
    workers: integer({
      min: 0,
      max: 64,
      default: 0,
      description:
        'Threads that build and deliver mail, at most; 0 = one per core. All but the first come when they are needed.',
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
    source_pools: list(sourcePool, {
      default: [],
      description: 'Workspaces that send from addresses of their own, instead of from `source_addresses`.',
    }),
    connections: integer({
      min: 1,
      max: 10_000,
      default: 500,
      description:
        'Outgoing connections in all. Sites that have not answered lately share a quarter of them; the rest is for those that have.',
    }),
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
    allow_private: flag({
      default: false,
      description:
        'true lets DNS send mail, and look-ups of MTA-STS policies, to private, link-local and loopback addresses: for networks with mail servers of their own. Routes may lead anywhere without it.',
    }),
    tls_ca: text({
      default: '',
      example: '/var/lib/postroad/tls/private-ca.pem',
      description:
        'PEM file of certification authorities of your own, which `tls = "verify"` believes beside the usual ones: for mail servers with ' +
        'certificates of a private CA. Empty: the usual ones alone.',
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
