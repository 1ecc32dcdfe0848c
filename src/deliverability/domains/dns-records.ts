/**
 * The DNS records of a sending domain with their last findings, and their lines in a zone file.
 *
 * Two DKIM CNAMEs point into the server's own zone, so that keys rotate without the domain's owner; a TXT record with the key at the same
 * name is accepted instead. Two more, for Ed25519 (RFC 8463), are optional: without them mail is signed with RSA alone. Zone files: RFC
 * 1035 §5.1; a TXT value is split into strings of at most 255 bytes, which are read as one (RFC 6376 §3.6.2.2).
 */
import { dkimRecord } from '../../mail/dkim/dkim-record.js'
import { dkimName, type Domain, type Finding, type Selector } from './domain-store.js'

/** The API's enums; not all values are used. */
export const RECORD_TYPES = ['CNAME', 'TXT', 'MX'] as const
export const RECORD_PURPOSES = ['dkim', 'verification', 'return_path', 'dmarc', 'spf'] as const

export interface DnsRecord {
  readonly type: (typeof RECORD_TYPES)[number]
  readonly name: string
  readonly value: string
  readonly ttl: number
  readonly purpose: (typeof RECORD_PURPOSES)[number]
  readonly status: Finding['status']
  readonly found: readonly string[]
  readonly required: boolean
  /** DKIM records only. */
  readonly algorithm?: Selector['algorithm']
  readonly keyState?: Selector['state']
  readonly alternative?: { readonly type: 'TXT'; readonly name: string; readonly value: string }
}

export const TTL_SECONDS = 3_600

/**
 * @param dkimZone `dns.dkim_zone`
 * @param reportAddress rua of the DMARC record
 */
export function dnsRecords(domain: Domain, dkimZone: string, reportAddress?: string): DnsRecord[] {
  const record = (fields: Omit<DnsRecord, 'ttl' | 'status' | 'found'>): DnsRecord => {
    const { status, found } = domain.findings[fields.name] ?? { status: 'pending', found: [] }
    return { ...fields, ttl: TTL_SECONDS, status, found }
  }
  return [
    record({
      type: 'TXT',
      name: verificationName(domain),
      value: verificationValue(domain),
      purpose: 'verification',
      required: true,
    }),
    ...domain.selectors.map(selector => {
      const name = dkimName(domain, selector)
      return record({
        type: 'CNAME',
        name,
        value: dkimTarget(selector, dkimZone),
        purpose: 'dkim',
        required: isRequired(selector),
        algorithm: selector.algorithm,
        keyState: selector.state,
        alternative: { type: 'TXT', name, value: dkimRecord(selector.algorithm, selector.publicKey) },
      })
    }),
    record({
      type: 'TXT',
      name: dmarcName(domain),
      value: `v=DMARC1; p=none${reportAddress === undefined ? '' : `; rua=mailto:${reportAddress}`}`,
      purpose: 'dmarc',
      required: false,
    }),
  ]
}

/**
 * The record that permits DMARC reports about one domain to go to an address in another (RFC 7489 §7.1).
 *
 * It belongs in the zone of the report address and is the same for every domain. Receivers skip it if both names share an organizational
 * domain; without the Public Suffix List only the plain case is recognized, and elsewhere the record is harmless.
 *
 * @returns undefined if the report address lies within the domain
 */
export function reportPermission(
  { domain }: Pick<Domain, 'domain'>,
  reportAddress: string,
): { readonly name: string; readonly value: string } | undefined {
  const host = reportAddress.slice(reportAddress.lastIndexOf('@') + 1)
  const isWithin = host === domain || host.endsWith(`.${domain}`)
  return isWithin ? undefined : { name: `*._report._dmarc.${host}`, value: 'v=DMARC1;' }
}

export function verificationName({ domain }: Domain): string {
  return `_postroad.${domain}`
}

export function verificationValue({ verificationToken }: Domain): string {
  return `postroad-verification=${verificationToken}`
}

export function dmarcName({ domain }: Domain): string {
  return `_dmarc.${domain}`
}

/** Every verifier supports RSA (RFC 8301 §3.1); Ed25519 is optional. */
export function isRequired({ algorithm }: Pick<Selector, 'algorithm'>): boolean {
  return algorithm === 'rsa'
}

export function dkimTarget({ name }: Pick<Selector, 'name'>, dkimZone: string): string {
  return `${name}.${dkimZone}`
}

const MAX_STRING_OCTETS = 255

/**
 * @param ttl seconds
 * @returns e.g. `sel._domainkey.example.com. 3600 IN TXT ( "v=DKIM1; ..." "..." )`
 */
export function zoneLine(
  { name, value }: { readonly name: string; readonly value: string },
  ttl: number,
): string {
  const strings = zoneStrings(value)
  const data = strings.includes('" "') ? `( ${strings} )` : strings
  return `${name}. ${ttl} IN TXT ${data}`
}

/**
 * All records of a sending domain, to include in a zone that has its own SOA and NS records. A CNAME's alternative is a comment, since both
 * cannot exist at one name.
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

/** Quoted strings, which a verifier joins without separators (RFC 6376 §3.6.2.2). */
export function zoneStrings(value: string): string {
  return inStrings(value).map(quoted).join(' ')
}

function inStrings(value: string): string[] {
  const octets = Buffer.from(value)
  return Array.from({ length: Math.ceil(octets.length / MAX_STRING_OCTETS) }, (_, index) =>
    octets.subarray(index * MAX_STRING_OCTETS, (index + 1) * MAX_STRING_OCTETS).toString('latin1'),
  )
}

/** Quoted, because a bare semicolon starts a comment. */
function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&').replace(/[^\x20-\x7e]/g, octet => `\\${String(octet.charCodeAt(0)).padStart(3, '0')}`)}"`
}
