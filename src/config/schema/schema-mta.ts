/** The `[mta]` section of the configuration: outgoing mail. See `schema.ts`. */
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
import {
  parseDomain,
  parseDomainPattern,
  parseHost,
  parseIpAddress,
  parseMailAddress,
  parseNetwork,
} from './values.js'

const item = { description: '' }

const route = table({
  domain: parsed(parseDomainPattern, 'a domain, *.domain or *', {
    description: 'Recipient domain: an exact name, `*.domain` for all names below it, or `*` for all others.',
    example: '*.corp.example',
  }),
  host: parsed(parseHost, 'a host name or an IP address', {
    description: 'Host that receives mail for these domains; MX records are not looked up.',
    example: '10.0.0.5',
  }),
  port: integer({ min: 1, max: 65_535, default: 25, description: 'Port on that host.' }),
  tls: choice(['none', 'opportunistic', 'require', 'verify'], {
    default: 'opportunistic',
    description:
      'none: no TLS; opportunistic: TLS if offered, any certificate; require: always TLS, any certificate; verify: always TLS, with a certificate valid for the host.',
  }),
  username: text({ default: '', description: 'User name for SMTP AUTH; empty for none.' }),
  password: text({
    default: '',
    secret: 'always',
    description:
      'Password for SMTP AUTH. Sent only with `tls = "verify"`, unless the host is a loopback address.',
  }),
  password_without_verification: flag({
    default: false,
    description:
      'true sends the password without verifying the certificate, and with `tls = "none"` in clear text, where it can be intercepted.',
  }),
})

const site = table({
  mx: optionalParsed(parseDomainPattern, 'a host, *.domain or *', {
    default: '',
    description: 'Pattern of the MX hosts this applies to.',
    example: '*.google.com',
  }),
  domain: optionalParsed(parseDomainPattern, 'a domain, *.domain or *', {
    default: '',
    description: 'Pattern of the recipient domains this applies to, instead of `mx`.',
  }),
  tls: choice(['opportunistic', 'require', 'verify'], {
    default: 'opportunistic',
    description: 'Required TLS, as for routes; if several sites or MTA-STS apply, the strictest wins.',
  }),
  connections: integer({
    min: 0,
    max: 10_000,
    default: 20,
    description: 'Maximum concurrent deliveries; 0 = use mta.connections_per_destination.',
  }),
  messages_per_minute: integer({
    min: 0,
    max: 1_000_000,
    default: 0,
    description: 'Messages per minute; 0 = no limit.',
  }),
})

/** RFC 5321 §4.5.3.2, except `connect`, `starttls` and `quit`, which it does not cover. */
const timeouts = table(
  {
    attempt: duration({
      default: '10m',
      min: '1m',
      max: '2h',
      description:
        'Total for one attempt across all hosts and addresses, until one has accepted sender and recipient. Each address gets an equal share of the remaining time for greeting and TLS.',
    }),
    connect: duration({
      default: '30s',
      min: '1s',
      max: '10m',
      // A host that has not answered five SYNs is down, and the next MX is waiting.
      description: 'For the TCP connection.',
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
      description: 'For sending each block of the message.',
    }),
    final_dot: duration({
      default: '10m',
      min: '1m',
      max: '1h',
      description:
        'For the reply to the final dot. Shorter values cause duplicates, since the server may have accepted the message.',
    }),
    quit: duration({
      default: '10s',
      min: '1s',
      max: '10m',
      // The message is settled by then; waiting for the reply only avoids an abrupt close.
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
    description: 'Local addresses its mail is sent from, in rotation.',
  }),
})

export const MTA_SECTION = table(
  {
    shared_address: optionalParsed(parseMailAddress, 'a mail address', {
      default: '',
      example: 'notify@mail.example.com',
      description: 'From address for mail from unverified domains; without it such mail is refused.',
    }),
    return_path_domain: parsedOrDerived(parseDomain, 'a domain name', {
      default: '',
      fromHostname: hostname => `bounce.${hostname}`,
      example: 'bounce.mail.example.com',
      description:
        'Domain of the envelope sender, which receives bounces. Empty: `bounce.` plus the hostname.',
    }),
    workers: integer({
      min: 0,
      max: 64,
      default: 0,
      description:
        'Maximum threads that build and deliver mail; 0 = one per core. Started as needed, except the first.',
    }),
    capture: flag({
      default: false,
      description: 'true stores outgoing mail in the local inbox instead of sending it.',
    }),
    capture_networks: list(parsed(parseNetwork, 'a network, e.g. 192.168.7.0/24', item), {
      default: [],
      example: ['127.0.0.0/8', '::1/128'],
      description:
        'Networks and addresses that may read the local inbox at /capture without a key, over a direct connection. Requests ' +
        'forwarded by a reverse proxy need an operator token.',
    }),
    port: integer({
      min: 1,
      max: 65_535,
      default: 25,
      description: 'Port of remote servers found by MX lookup.',
    }),
    source_addresses: list(parsed(parseIpAddress, 'an IP address', item), {
      default: [],
      example: ['192.0.2.25'],
      description: 'Local addresses to send from, in rotation; empty lets the system choose.',
    }),
    source_pools: list(sourcePool, {
      default: [],
      description: 'Workspaces that send from addresses other than `source_addresses`.',
    }),
    connections: integer({
      min: 1,
      max: 10_000,
      default: 500,
      description:
        'Maximum outgoing connections. Sites that have not answered recently share a quarter of them; the rest is reserved for responsive sites.',
    }),
    connections_per_destination: integer({
      min: 1,
      max: 1_000,
      default: 10,
      description: 'Maximum outgoing connections to one destination.',
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
      description: 'Whether to apply MTA-STS policies of recipient domains (RFC 8461).',
    }),
    allow_private: flag({
      default: false,
      description:
        'true allows mail routed by DNS, and MTA-STS policy requests, to reach private, link-local and loopback addresses: for networks with internal mail servers. Routes may use any address regardless.',
    }),
    tls_ca: text({
      default: '',
      example: '/var/lib/postroad/tls/private-ca.pem',
      description:
        'PEM file of additional certification authorities trusted for `tls = "verify"`, for mail servers with certificates of a private CA. ' +
        'Empty: only the default ones.',
    }),
    routes: list(route, {
      default: [],
      description:
        'Hosts for mail to certain domains, instead of their MX hosts. The first match wins; without a match, MX records are used.',
    }),
    sites: list(site, {
      default: [],
      description: 'Limits and TLS for certain destinations, by MX host or recipient domain.',
    }),
    retry: table(
      {
        first: duration({
          default: '5m',
          min: '1s',
          max: '1d',
          description: 'Delay after the first failure.',
        }),
        factor: number({ default: 1.5, min: 1, max: 10, description: 'Growth factor of the delay.' }),
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
          description: 'Age at which an undelivered message bounces.',
        }),
      },
      { description: 'Retries of deferred mail (RFC 5321 §4.5.4.1).' },
    ),
    timeouts,
  },
  { description: 'The outbound mail transfer agent.' },
)
