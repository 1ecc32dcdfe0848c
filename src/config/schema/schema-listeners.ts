/**
 * The `[submission]`, `[inbound]` and `[tls]` sections of the configuration: the SMTP listeners.
 *
 * Part of `schema.ts`, which says how such a section is written.
 */
import { choice, duration, flag, integer, list, optionalParsed, parsed, size, table, text } from './fields.js'
import { parseHostAndPort, parseMailAddress, parseNetwork, parseWebUrl } from './values.js'

const LISTEN = parsed(parseHostAndPort, 'host:port, e.g. 127.0.0.1:2525 or [::1]:2525', { description: '' })

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

function sessions(all: number, perAddress: number) {
  return {
    sessions: integer({
      min: 1,
      max: 100_000,
      default: all,
      description:
        'Sessions at a time in all; who comes then is told to come back later. Where more than half are taken, silent clients are ' +
        'sent away early, and one address gets no more than half of what is left.',
    }),
    sessions_per_address: integer({
      min: 1,
      max: 100_000,
      default: perAddress,
      description: 'Sessions at a time from one address (one /64 of IPv6).',
    }),
  }
}

export const SUBMISSION_SECTION = table(
  {
    listen: list(LISTEN, {
      default: ['[::]:587'],
      description:
        'Addresses for submission with STARTTLS. `[::]` is every address, of IPv4 too; beside a `0.0.0.0` of the same port it is IPv6 alone.',
    }),
    listen_tls: list(LISTEN, {
      default: ['[::]:465'],
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
    ...sessions(2_000, 200),
    max_recipients: integer({
      min: 100,
      max: 10_000,
      default: 1_000,
      description: 'Recipients of one message at most (RFC 5321 §4.5.3.1.8: at least 100).',
    }),
    login_failures: integer({
      min: 1,
      max: 1_000,
      default: 10,
      description:
        'Failed logins with the same start of a key (14 characters) from one address after which that key is refused there for `login_lockout`; ' +
        'after ten times as many from all addresses it is refused everywhere. A key that has logged in from an address is never refused there.',
    }),
    login_lockout: duration({
      default: '15m',
      min: '1s',
      max: '1d',
      description:
        'How long logins are refused after too many failures; also the period over which failures are counted.',
    }),
  },
  { description: 'SMTP submission for applications (RFC 6409, RFC 8314).' },
)

export const INBOUND_SECTION = table(
  {
    listen: list(LISTEN, { default: ['[::]:25'], description: 'Addresses to listen on, as for submission.' }),
    keep: duration({
      default: '7d',
      min: '0',
      max: '365d',
      description: 'How long mail that came in is kept readable after it was processed.',
    }),
    keep_size: size({
      default: '1GB',
      min: '10MB',
      max: '1000GB',
      description:
        'Room for mail that came in. Near it the oldest that was processed goes before its time, mail without a signed return ' +
        'path first; when it is full, such mail is told to come later.',
    }),
    forward_to: optionalParsed(parseMailAddress, 'a mail address', {
      default: '',
      example: 'admin@example.com',
      description:
        'Where mail to postmaster@ and abuse@ goes. Empty: it is kept for `keep` and not forwarded.',
    }),
    message_size: size({
      default: '10MB',
      min: '64KB',
      max: '1GB',
      description:
        'Largest message taken; returned mail is seldom more than a few KB. Clients that may relay (`relay_trusted`) have `limits.message_size`.',
    }),
    unsigned_message_size: size({
      default: '2MB',
      min: '64KB',
      max: '1GB',
      description:
        'The same for mail to an address that anybody may write to: postmaster@, abuse@, fbl@, dmarc@, tlsrpt@. It is ' +
        '"unsigned", and held to the limits below; mail to the signed return path of a message is not.',
    }),
    unsigned_per_minute: integer({
      min: 0,
      max: 100_000,
      default: 60,
      description:
        'Unsigned mails per minute from one address (one /64 of IPv6), more are refused with 421; 0 = no limit.',
    }),
    unsigned_size_per_hour: size({
      default: '50MB',
      min: '0',
      max: '1000GB',
      description:
        'Octets of unsigned mail per hour from one address, more are refused with 452; 0 = no limit.',
    }),
    unsigned_size_per_hour_in_all: size({
      default: '500MB',
      min: '0',
      max: '1000GB',
      description: 'The same from all addresses together.',
    }),
    greeting_delay: duration({
      default: '1s',
      min: '0',
      max: '1m',
      description: 'Wait before the greeting; who speaks first (RFC 5321 §4.3.1 forbids it) is refused.',
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
        'true lets `submission.trusted_networks` send through this listener too, with the key of their network, to any recipient: for ' +
        'printers that know only port 25. Nobody else can, and no password is taken here.',
    }),
    ...sessions(500, 50),
    max_recipients: integer({
      min: 100,
      max: 10_000,
      default: 100,
      description: 'Recipients of one message at most.',
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
        'PEM file, chain included. Empty, and without `acme`: a self-signed one is made at start. Files are read again when they change.',
    }),
    key: text({
      default: '',
      example: '/var/lib/postroad/tls/privkey.pem',
      description: 'PEM file of its private key.',
    }),
    acme: flag({
      default: false,
      description:
        "true has a CA (Let's Encrypt, or another that speaks ACME) make the certificate for `hostname` and the name of `public_url`, and renew it. " +
        'docs/tls.md says what has to be reachable for that.',
    }),
    acme_terms_agreed: flag({
      default: false,
      description:
        'true says that you have read and agree to the terms of that CA. Without it none is asked.',
    }),
    acme_contact: optionalParsed(parseMailAddress, 'a mail address', {
      default: '',
      example: 'admin@example.com',
      description: 'Whom the CA may write to.',
    }),
    acme_directory: parsed(parseWebUrl, 'an https URL', {
      default: 'https://acme-v02.api.letsencrypt.org/directory',
      example: 'https://acme-staging-v02.api.letsencrypt.org/directory',
      description:
        'Directory of the CA. For trials take its staging one, whose certificates nobody trusts and whose limits are wide.',
    }),
    acme_challenge: choice(['http', 'dns'], {
      default: 'http',
      description:
        'How names are proved: `http` answers at port 80 of each name, by `http.redirect_listen` or what else of ours is there; `dns` answers in ' +
        '`dns.dkim_zone` (needs `dns.listen`), where `_acme-challenge` of each name has to lead by a CNAME.',
    }),
    acme_ca: text({
      default: '',
      example: '/var/lib/postroad/tls/internal-ca.pem',
      description:
        "PEM file of the authority that the CA's own server is certified by, where it is a private one.",
    }),
  },
  { description: 'The certificate for SMTP and, where wanted, HTTPS.' },
)
