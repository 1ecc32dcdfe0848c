/**
 * The DNS records that a sending domain needs, and what was last found of each.
 *
 * Two DKIM CNAMEs point into the appliance's own zone, so that keys can be rotated without asking the domain's owner
 * again; where CNAMEs are not possible, a TXT with the key itself at the same name does as well. Two more, for Ed25519
 * (RFC 8463), are optional: without them mail is signed with RSA alone.
 */
import { dkimRecord } from '../../mail/dkim/dkim-record.js'
import { dkimName, type Domain, type Finding, type Selector } from './domain-store.js'

/** As the contract has them; not all are asked for today. */
export const RECORD_TYPES = ['CNAME', 'TXT', 'MX'] as const
export const RECORD_PURPOSES = ['dkim', 'verification', 'return_path', 'dmarc', 'spf'] as const

export interface DnsRecord {
  readonly type: (typeof RECORD_TYPES)[number]
  readonly name: string
  readonly value: string
  /** Seconds; what we suggest. */
  readonly ttl: number
  readonly purpose: (typeof RECORD_PURPOSES)[number]
  readonly status: Finding['status']
  /** What DNS held when last asked. */
  readonly found: readonly string[]
  /** Verification waits for it. */
  readonly required: boolean
  /** Of DKIM records: what the key there is for; see `Selector`. */
  readonly algorithm?: Selector['algorithm']
  readonly keyState?: Selector['state']
  /** Accepted in its place. */
  readonly alternative?: { readonly type: 'TXT'; readonly name: string; readonly value: string }
}

export const TTL_SECONDS = 3_600

/**
 * @param dkimZone the appliance's own zone, `dns.dkim_zone`
 * @param reportAddress for the DMARC record; needed only where its value is shown
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
 * The record that lets DMARC reports about one domain go to an address in another (RFC 7489 §7.1).
 *
 * It belongs in the zone of the report address, and is the same for every domain. Receivers do not ask for it if both names have the same
 * organizational domain; without the Public Suffix List only the plain case is recognised, and elsewhere the record does no harm.
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

/** Every verifier knows RSA (RFC 8301 §3.1); Ed25519 is an offer. */
export function isRequired({ algorithm }: Pick<Selector, 'algorithm'>): boolean {
  return algorithm === 'rsa'
}

export function dkimTarget({ name }: Pick<Selector, 'name'>, dkimZone: string): string {
  return `${name}.${dkimZone}`
}

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
