/**
 * A resolver that answers from a zone declared in the test.
 *
 * ```ts
 * fakeDns({
 *   'example.com': { MX: ['10 mx1.example.com', '20 mx2.example.com'] },
 *   'mx1.example.com': { A: ['192.0.2.1'], AAAA: ['2001:db8::1'] },
 *   'nomail.example': { MX: ['0 .'] },
 *   'www.example': { CNAME: 'example.com' },
 *   'broken.example': 'servfail',
 *   'half.example': { A: ['192.0.2.9'], AAAA: 'servfail' },
 * })
 * ```
 * An undeclared name gives NXDOMAIN; a declared name without the requested type gives NODATA.
 */
import type { DnsAnswer, MxRecord, Resolver } from './dns.js'

export interface FakeRecords {
  /** `preference exchange`, as in a zone file. */
  readonly MX?: readonly string[] | 'servfail'
  readonly A?: readonly string[] | 'servfail'
  readonly AAAA?: readonly string[] | 'servfail'
  readonly TXT?: readonly string[] | 'servfail'
  readonly NS?: readonly string[] | 'servfail'
  readonly PTR?: readonly string[] | 'servfail'
  readonly CNAME?: string
}

export type FakeZone = Record<string, FakeRecords | 'servfail'>

export interface FakeResolver extends Resolver {
  /** Questions in order, e.g. `MX example.com`. */
  readonly asked: readonly string[]
}

const TTL_SECONDS = 300

/** @param zone read at each question, so a test may change it */
export function fakeDns(zone: FakeZone): FakeResolver {
  const asked: string[] = []

  function answer<T>(
    type: 'MX' | 'A' | 'AAAA' | 'TXT' | 'NS' | 'PTR',
    name: string,
    read: (text: string) => T,
  ): DnsAnswer<T> {
    asked.push(`${type} ${name}`)
    let declared = zone[name] ?? zone[name.toLowerCase()]
    for (let aliases = 0; typeof declared === 'object' && declared.CNAME !== undefined; aliases++) {
      if (aliases === 16) return { kind: 'unavailable', reason: `${name} ${type}: too many aliases` }
      declared = zone[declared.CNAME]
    }
    if (declared === undefined) return { kind: 'missing', why: 'nxdomain', ttlSeconds: TTL_SECONDS }
    const records = declared === 'servfail' ? declared : declared[type]
    if (records === 'servfail')
      return { kind: 'unavailable', reason: `${name} ${type}: server answered SERVFAIL` }
    if (records === undefined) return { kind: 'missing', why: 'nodata', ttlSeconds: TTL_SECONDS }
    return { kind: 'found', records: records.map(read), ttlSeconds: TTL_SECONDS }
  }

  return {
    asked,
    mx: async name => answer('MX', name, readMx),
    ipv4: async name => answer('A', name, text => text),
    ipv6: async name => answer('AAAA', name, text => text),
    txt: async name => answer('TXT', name, text => text),
    ns: async name => answer('NS', name, text => text),
    ptr: async name => answer('PTR', name, text => text),
    async cname(name) {
      asked.push(`CNAME ${name}`)
      const declared = zone[name]
      if (declared === undefined) return { kind: 'missing', why: 'nxdomain', ttlSeconds: TTL_SECONDS }
      if (declared === 'servfail')
        return { kind: 'unavailable', reason: `${name} CNAME: server answered SERVFAIL` }
      return declared.CNAME === undefined
        ? { kind: 'missing', why: 'nodata', ttlSeconds: TTL_SECONDS }
        : { kind: 'found', records: [declared.CNAME], ttlSeconds: TTL_SECONDS }
    },
  }
}

function readMx(text: string): MxRecord {
  const [preference, exchange = '.'] = text.split(/\s+/)
  return { preference: Number(preference), exchange: exchange.replace(/\.$/, '') }
}
