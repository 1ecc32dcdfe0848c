/** The `[submission]`, `[inbound]` and `[tls]` sections of the configuration. See `schema.ts`. */
import {
  choice,
  duration,
  flag,
  integer,
  list,
  optionalParsed,
  parsed,
  parsedOrDerived,
  size,
  table,
  text,
} from './fields.js'
import { parseDomain, parseHostAndPort, parseMailAddress, parseNetwork, parseWebUrl } from './values.js'

const LISTEN = parsed(parseHostAndPort, 'host:port, e.g. 127.0.0.1:2525 or [::1]:2525', { description: '' })

const trustedNetwork = table({
  network: parsed(parseNetwork, 'a network, e.g. 192.168.7.0/24', {
    description: 'Network or address of the devices.',
    example: '192.168.7.0/24',
  }),
  key: text({
    description: 'Id of the API key whose permissions and limits apply to them.',
    example: 'key-id',
  }),
})

export function proxyProtocolFrom() {
  return list(parsed(parseNetwork, 'a network, e.g. 192.168.7.0/24', { description: '' }), {
    default: [],
    example: ['10.0.0.5/32'],
    description:
      'Load balancers that speak the PROXY protocol (version 1 or 2): each of their connections must begin with a header within 5 seconds, ahead of TLS, ' +
      'and limits, logins and logs then see the client it names. On connections from other addresses no header is accepted.',
  })
}

function sessions(all: number, perAddress: number) {
  return {
    sessions: integer({
      min: 1,
      max: 100_000,
      default: all,
      description:
        'Maximum concurrent sessions; further clients get a temporary error. When more than half are in use, silent clients are ' +
        'disconnected early and one address gets at most half of the rest.',
    }),
    sessions_per_address: integer({
      min: 1,
      max: 100_000,
      default: perAddress,
      description: 'Maximum concurrent sessions from one address (one /64 for IPv6).',
    }),
  }
}

export const SUBMISSION_SECTION = table(
  {
    listen: list(LISTEN, {
      default: ['[::]:587'],
      description:
        'Addresses for submission with STARTTLS. `[::]` listens on all addresses, IPv4 included; next to a `0.0.0.0` with the same port it is IPv6 only.',
    }),
    listen_tls: list(LISTEN, {
      default: ['[::]:465'],
      description: 'Addresses for submission over implicit TLS.',
    }),
    proxy_protocol_from: proxyProtocolFrom(),
    require_tls: flag({
      default: true,
      description: 'false allows passwords without TLS; use it only on loopback or a trusted LAN.',
    }),
    trusted_networks: list(trustedNetwork, {
      default: [],
      description: 'Devices that cannot authenticate (printers, old applications).',
    }),
    ...sessions(2_000, 200),
    max_recipients: integer({
      min: 100,
      max: 10_000,
      default: 1_000,
      description: 'Maximum recipients per message (RFC 5321 §4.5.3.1.8: at least 100).',
    }),
    login_failures: integer({
      min: 1,
      max: 1_000,
      default: 10,
      description:
        'Failed logins from one address with the same key prefix (14 characters) before that key is locked out for the address for `login_lockout`; ' +
        'after ten times as many from all addresses it is locked out everywhere. An address from which the key has logged in before is never locked out.',
    }),
    login_lockout: duration({
      default: '15m',
      min: '1s',
      max: '1d',
      description: 'Duration of a lockout, and the period over which failures are counted.',
    }),
  },
  { description: 'SMTP submission for applications (RFC 6409, RFC 8314).' },
)

export const INBOUND_SECTION = table(
  {
    listen: list(LISTEN, { default: ['[::]:25'], description: 'Addresses to listen on, as for submission.' }),
    proxy_protocol_from: proxyProtocolFrom(),
    node_names: list(parsed(parseDomain, 'a host name', { description: '' }), {
      default: [],
      example: ['mx1.example.com', 'mx2.example.com'],
      description:
        'Hostnames of all nodes, where a load balancer may lead to any of them: each then receives mail to postmaster@, abuse@, fbl@, dmarc@ and tlsrpt@ ' +
        'the hostname of another.',
    }),
    report_domain: parsedOrDerived(parseDomain, 'a domain name', {
      default: '',
      fromHostname: hostname => hostname,
      example: 'mail.example.com',
      description:
        'Domain of the address that DMARC records name for reports: dmarc@ it. It must be the same on every node, and lead to all of them. ' +
        'Empty: the hostname. A former one is still accepted.',
    }),
    keep: duration({
      default: '7d',
      min: '0',
      max: '365d',
      description: 'How long received mail is kept after it was processed.',
    }),
    keep_size: size({
      default: '1GB',
      min: '10MB',
      max: '1000GB',
      description:
        'Maximum space for received mail. Near the limit the oldest processed mail is deleted early, starting with mail without a signed ' +
        'return path; at the limit such mail is deferred.',
    }),
    forward_to: optionalParsed(parseMailAddress, 'a mail address', {
      default: '',
      example: 'admin@example.com',
      description:
        'Where to forward mail to postmaster@ and abuse@. Empty: it is kept for `keep` and not forwarded.',
    }),
    message_size: size({
      default: '10MB',
      min: '64KB',
      max: '1GB',
      description:
        'Largest message accepted; bounces are rarely larger than a few KB. For clients that may relay (`relay_trusted`), `limits.message_size` applies.',
    }),
    unsigned_message_size: size({
      default: '2MB',
      min: '64KB',
      max: '1GB',
      description:
        'Largest message accepted for addresses anybody may write to: postmaster@, abuse@, fbl@, dmarc@, tlsrpt@. Such mail is ' +
        '"unsigned" and subject to the limits below; mail to the signed return path of a message is not.',
    }),
    unsigned_per_minute: integer({
      min: 0,
      max: 100_000,
      default: 60,
      description:
        'Unsigned messages per minute from one address (one /64 for IPv6); more are refused with 421. 0 = no limit.',
    }),
    unsigned_size_per_hour: size({
      default: '50MB',
      min: '0',
      max: '1000GB',
      description:
        'Bytes of unsigned mail per hour from one address; more are refused with 452. 0 = no limit.',
    }),
    unsigned_size_per_hour_in_all: size({
      default: '500MB',
      min: '0',
      max: '1000GB',
      description:
        'Bytes of unsigned mail per hour from all addresses; more are refused with 452. A tenth is kept for networks (IPv4 /24, IPv6 /48) that have sent less than 1 MB. 0 = no limit.',
    }),
    greeting_delay: duration({
      default: '1s',
      min: '0',
      max: '1m',
      description:
        'Delay before the greeting; clients that talk before it (a violation of RFC 5321 §4.3.1) are refused.',
    }),
    connections_per_minute: integer({
      min: 0,
      max: 100_000,
      default: 300,
      description: 'Connections per minute from one address; 0 = no limit.',
    }),
    relay_trusted: flag({
      default: false,
      description:
        'true lets `submission.trusted_networks` send to any recipient through this listener too, using the key of their network: for ' +
        'printers that only support port 25. All other clients stay barred from relaying, and passwords are not accepted here.',
    }),
    ...sessions(500, 50),
    max_recipients: integer({
      min: 100,
      max: 10_000,
      default: 100,
      description: 'Maximum recipients per message.',
    }),
  },
  { description: 'The SMTP listener for bounces, feedback reports and unsubscribe mail.' },
)

export const TLS_SECTION = table(
  {
    cert: text({
      default: '',
      example: '/var/lib/postroad/tls/fullchain.pem',
      description:
        'PEM file with the certificate chain. If empty and `acme` is off, a self-signed certificate is created at start. Changed files are reloaded.',
    }),
    key: text({
      default: '',
      example: '/var/lib/postroad/tls/privkey.pem',
      description: 'PEM file with its private key.',
    }),
    acme: flag({
      default: false,
      description:
        "true obtains and renews a certificate for `hostname` and the host of `public_url` from an ACME CA (Let's Encrypt by default), one for all nodes that share the database. " +
        'docs/tls.md lists what must be reachable.',
    }),
    acme_terms_agreed: flag({
      default: false,
      description: "true confirms that you agree to the CA's terms of service. Required for `acme`.",
    }),
    acme_contact: optionalParsed(parseMailAddress, 'a mail address', {
      default: '',
      example: 'admin@example.com',
      description: 'Contact address given to the CA.',
    }),
    acme_directory: parsed(parseWebUrl, 'an https URL', {
      default: 'https://acme-v02.api.letsencrypt.org/directory',
      example: 'https://acme-staging-v02.api.letsencrypt.org/directory',
      description:
        'ACME directory URL of the CA. For tests use its staging directory: generous limits, untrusted certificates.',
    }),
    acme_challenge: choice(['http', 'dns'], {
      default: 'http',
      description:
        'How names are validated: `http` answers on port 80 of each name, through `http.redirect_listen` or another HTTP listener there; `dns` answers in ' +
        '`dns.dkim_zone` (needs `dns.listen`), to which a CNAME at `_acme-challenge` of each name must point.',
    }),
    acme_ca: text({
      default: '',
      example: '/var/lib/postroad/tls/internal-ca.pem',
      description:
        "PEM file of the CA certificate that signs the ACME server's own certificate, if it is a private one.",
    }),
  },
  { description: 'The certificate for SMTP and HTTPS.' },
)
