/**
 * DNS records as lines of a zone file.
 *
 * Used by commands. Standards: RFC 1035 §5.1 (zone files), §3.3 (a character string has 255 octets at most; a record may have several,
 * which are read as one: RFC 7208 §3.3, RFC 6376 §3.6.2.2). Pure.
 */

import type { DnsRecord } from './dns-records.js'

const LONGEST_STRING = 255

/** @param ttl seconds @returns e.g. `sel._domainkey.example.com. 3600 IN TXT ( "v=DKIM1; ..." "..." )` */
export function zoneLine(
  { name, value }: { readonly name: string; readonly value: string },
  ttl: number,
): string {
  const strings = zoneStrings(value)
  const data = strings.includes('" "') ? `( ${strings} )` : strings
  return `${name}. ${ttl} IN TXT ${data}`
}

/**
 * All records of a sending domain, to include in its zone; the zone's SOA and NS are the owner's.
 *
 * A CNAME's alternative cannot stand beside it, so it is a comment.
 */
export function domainZone(domain: string, records: readonly DnsRecord[]): string {
  const lines = (record: DnsRecord) => [
    record.type === 'TXT'
      ? zoneLine(record, record.ttl)
      : `${record.name}. ${record.ttl} IN ${record.type} ${record.value}.`,
    ...(record.alternative
      ? [`; or, instead of this CNAME: ${zoneLine(record.alternative, record.ttl)}`]
      : []),
  ]
  return [
    `; Postroad records of ${domain}: include them in the zone of ${domain}.`,
    '; Required:',
    ...records.filter(({ required }) => required).flatMap(lines),
    '; Recommended (DMARC, and Ed25519 keys for a second DKIM signature):',
    ...records.filter(({ required }) => !required).flatMap(lines),
  ].join('\n')
}

/** In quotes, one after the other; a verifier joins them without anything between (RFC 6376 §3.6.2.2). */
export function zoneStrings(value: string): string {
  return inStrings(value).map(quoted).join(' ')
}

/** Octets, not characters; what we publish is ASCII. */
function inStrings(value: string): string[] {
  const octets = Buffer.from(value)
  return Array.from({ length: Math.ceil(octets.length / LONGEST_STRING) }, (_, index) =>
    octets.subarray(index * LONGEST_STRING, (index + 1) * LONGEST_STRING).toString('latin1'),
  )
}

/** A semicolon would begin a comment, were it not within quotes. */
function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&').replace(/[^\x20-\x7e]/g, octet => `\\${String(octet.charCodeAt(0)).padStart(3, '0')}`)}"`
}
