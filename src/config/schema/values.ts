/**
 * Parsers for configuration values other than durations and sizes: listen addresses, networks, names.
 *
 * Pure; invalid text parses to `undefined`.
 * Standards: RFC 1123 §2.1 (host names), RFC 4632 §3.1 (CIDR prefixes), RFC 3986 §3.2.2 (IPv6 in brackets).
 */
import { serverUrls } from '../../core/postgres-urls.js'
import { trimEnd } from '../../core/trim.js'
import { addressDomain, readAddress, trimAddress } from '../../mail/address.js'
import { ipVersion, parseAddressAndPort } from '../../world/net/ip-address.js'

/** A listen address or a server. */
export interface HostAndPort {
  /** IP address without brackets, or a host name. */
  readonly host: string
  /** 0..65535; 0 lets the system choose, for listeners only. */
  readonly port: number
}

/** Database location: the file path for SQLite, the URL for PostgreSQL. */
export interface DatabaseUrl {
  readonly dialect: 'sqlite' | 'postgres'
  readonly location: string
}

const LABEL = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
const NAME = new RegExp(`^(?:${LABEL}\\.)*${LABEL}$`, 'i')

/** An IPv4 or IPv6 address, without brackets or zone. */
export function parseIpAddress(text: string): string | undefined {
  return ipVersion(text) === 0 || text.includes('%') ? undefined : text
}

function parseIpv6(text: string): string | undefined {
  return ipVersion(text) === 6 ? parseIpAddress(text) : undefined
}

/** A host or domain name in ASCII, returned in lower case; a numeric last label is refused as a mistyped address. */
export function parseDomain(text: string): string | undefined {
  const name = text.toLowerCase()
  if (name.length > 253 || !NAME.test(name) || /(?:^|\.)\d+$/.test(name)) return undefined
  return name
}

/** A name or an IP address. */
export function parseHost(text: string): string | undefined {
  return parseIpAddress(text) ?? parseDomain(text)
}

/** `example.com`, `*.example.com` (every name below it, not itself) or `*`. */
export function parseDomainPattern(text: string): string | undefined {
  if (text === '*') return text
  const name = parseDomain(text.startsWith('*.') ? text.slice(2) : text)
  return name === undefined ? undefined : text.toLowerCase()
}

/** `host:port`, IPv6 in brackets. The host is required: systems disagree on what an empty one means. */
export function parseHostAndPort(text: string): HostAndPort | undefined {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]+)):(\d{1,5})$/.exec(text)
  if (!match) return undefined
  const [, bracketed, plain, digits] = match
  const host = bracketed === undefined ? parseHost(plain ?? '') : parseIpv6(bracketed)
  const port = Number(digits)
  return host === undefined || port > 65_535 ? undefined : { host, port }
}

/** A name server: an IP address with an optional port (default 53). */
export function parseNameServer(text: string): HostAndPort | undefined {
  const server = parseAddressAndPort(text, 53)
  return server && { host: server.address, port: server.port }
}

/** A network in CIDR notation; a bare address is a network of one address. */
export function parseNetwork(text: string): string | undefined {
  const [address = '', prefix, ...rest] = text.split('/')
  if (parseIpAddress(address) === undefined || rest.length > 0) return undefined
  const longest = ipVersion(address) === 4 ? 32 : 128
  if (prefix === undefined) return `${address}/${longest}`
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= longest ? text : undefined
}

/** `sqlite:FILE` or `postgres://...`. */
export function parseDatabaseUrl(text: string): DatabaseUrl | undefined {
  if (parsePostgresUrl(text) !== undefined) return { dialect: 'postgres', location: text }
  const [, file] = /^sqlite:(?!\/\/)(.+)$/.exec(text) ?? []
  return file === undefined ? undefined : { dialect: 'sqlite', location: file }
}

/** `postgres://USER@HOST,HOST/DATABASE`; `?host=/run/postgresql` overrides the hosts, with the folder of a Unix socket for example. */
export function parsePostgresUrl(text: string): string | undefined {
  return serverUrls(text) === undefined ? undefined : text
}

/** An `http:` or `https:` URL without query or fragment, returned without trailing slash. */
export function parseWebUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  if (!/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '' || url.username !== '')
    return undefined
  return trimEnd(text, '/')
}

/** A plain mail address: `local@domain`. */
export function parseMailAddress(text: string): string | undefined {
  const trimmed = trimAddress(text)
  const read = readAddress(trimmed, { allowSingleLabel: true })
  if ('fault' in read || read.needsSmtpUtf8 || read.local.startsWith('"')) return undefined
  return parseDomain(addressDomain(trimmed)) === undefined ? undefined : trimmed
}
