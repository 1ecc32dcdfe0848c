/**
 * Evaluates SPF as a receiver does (RFC 7208): whether a domain authorizes an address to send its mail.
 *
 * An explanation (`exp`) is checked for syntax but not fetched. Never throws: a DNS failure is `temperror`, a broken record `permerror`.
 */
import type { DnsAnswer, Resolver } from '../../world/dns/dns.js'
import { nibbles, reverseName } from '../../world/dns/reverse-name.js'
import { ipVersion, NetworkList } from '../../world/net/ip-address.js'
import {
  DOMAIN_SPEC_PARTS,
  MECHANISMS,
  readRecord,
  SpfError,
  spfRecords,
  type Directive,
  type SpfRecord,
} from './spf-record.js'

/** RFC 7208 §2.6. */
export const SPF_VERDICTS = ['pass', 'fail', 'softfail', 'neutral', 'none', 'temperror', 'permerror'] as const
export type SpfVerdict = (typeof SPF_VERDICTS)[number]

export interface SpfResult {
  readonly verdict: SpfVerdict
  /** The matching term as written, e.g. `-all`; absent if none matched. */
  readonly term?: string
  /** The domain of the deciding record; differs after `redirect`. */
  readonly domain: string
  /** Why there is no verdict on the address (`none`, `temperror`, `permerror`). */
  readonly reason?: string
  /** Terms that required a DNS lookup; more than 10 are a `permerror`. */
  readonly lookups: number
}

export interface SpfQuery {
  /** IP address of the client. */
  readonly address: string
  /** The domain of the envelope sender, or of EHLO. */
  readonly domain: string
  /** Envelope sender; `postmaster@` and the domain if not given (RFC 7208 §4.3). */
  readonly sender?: string
  /** EHLO argument. */
  readonly hello: string
}

/** RFC 7208 §4.6.4. */
const MAX_LOOKUPS = 10
const MAX_VOID_LOOKUPS = 2
/** Names of one `mx` (more are an error) and of one `ptr` (more are ignored) whose addresses are looked up. */
const MAX_NAMES = 10

export async function evaluateSpf(question: SpfQuery, resolver: Resolver): Promise<SpfResult> {
  const evaluation = new Evaluation(question, resolver)
  const domain = question.domain.toLowerCase()
  try {
    return { ...(await evaluation.checkHost(domain)), lookups: evaluation.lookups }
  } catch (thrown) {
    if (!(thrown instanceof SpfError)) throw thrown
    const { verdict, message: reason, term } = thrown
    const { lookups } = evaluation
    return {
      verdict,
      domain: thrown.domain ?? domain,
      reason,
      lookups,
      ...(term === undefined ? {} : { term }),
    }
  }
}

type Verdict = Omit<SpfResult, 'lookups'>

class Evaluation {
  lookups = 0
  private voidLookups = 0
  private readonly question: SpfQuery
  private readonly resolver: Resolver
  /** IPv4-mapped IPv6 addresses are reduced to IPv4. */
  private readonly address: string
  private readonly isIpv6: boolean

  constructor(question: SpfQuery, resolver: Resolver) {
    this.question = question
    this.resolver = resolver
    this.address = question.address.replace(/^::ffff:(?=\d+\.)/i, '')
    this.isIpv6 = ipVersion(this.address) === 6
  }

  /** RFC 7208 §4. */
  async checkHost(domain: string): Promise<Verdict> {
    if (!isLookedUp(domain)) return { verdict: 'none', domain, reason: `${domain} is not a full domain name` }
    const answer = await this.resolver.txt(domain)
    if (answer.kind === 'unavailable')
      throw new SpfError('temperror', `DNS did not answer: ${answer.reason}`, undefined, domain)
    const records = spfRecords(answer.kind === 'found' ? answer.records : [])
    const [text] = records
    if (text === undefined) return { verdict: 'none', domain, reason: `${domain} has no SPF record` }
    if (records.length > 1)
      throw new SpfError('permerror', `${domain} has ${records.length} SPF records`, undefined, domain)
    try {
      return await this.evaluate(readRecord(text), domain)
    } catch (thrown) {
      if (!(thrown instanceof SpfError) || thrown.domain !== undefined) throw thrown
      throw new SpfError(thrown.verdict, thrown.message, thrown.term, domain)
    }
  }

  private async evaluate({ directives, redirect }: SpfRecord, domain: string): Promise<Verdict> {
    for (const directive of directives) {
      if (MECHANISMS[directive.mechanism].costs) this.countLookup(directive.text)
      if (await this.matches(directive, domain))
        return { verdict: directive.verdict, term: directive.text, domain }
    }
    if (!redirect) return { verdict: 'neutral', domain, reason: 'no term of the record matches' }
    this.countLookup(redirect.text)
    const target = await this.expand(redirect.domainSpec, domain)
    const result = await this.checkHost(target)
    if (result.verdict === 'none')
      throw new SpfError('permerror', `${redirect.text}: ${target} has no SPF record`, redirect.text)
    return result
  }

  private async matches(directive: Directive, domain: string): Promise<boolean> {
    const { mechanism, address = '', domainSpec: spec } = directive
    switch (mechanism) {
      case 'all':
        return true
      case 'ip4':
      case 'ip6':
        return this.isWithin(directive, [address])
      case 'include':
        return this.includes(directive, await this.expand(spec ?? '', domain))
      case 'a':
        return this.isWithin(directive, await this.addressesOf(directive, await this.target(spec, domain)))
      case 'mx':
        return this.matchesExchange(directive, await this.target(spec, domain))
      case 'ptr': {
        const target = (await this.target(spec, domain)).toLowerCase()
        return (await this.validatedNames()).some(name => isWithinDomain(name, target))
      }
      case 'exists': {
        const name = await this.expand(spec ?? '', domain)
        return isLookedUp(name) && this.known(directive, await this.resolver.ipv4(name)).length > 0
      }
    }
  }

  private target(spec: string | undefined, domain: string): Promise<string> | string {
    return spec === undefined ? domain : this.expand(spec, domain)
  }

  /** RFC 7208 §5.2. */
  private async includes({ text }: Directive, target: string): Promise<boolean> {
    const { verdict } = await this.checkHost(target)
    if (verdict === 'none') throw new SpfError('permerror', `${text}: ${target} has no SPF record`, text)
    return verdict === 'pass'
  }

  private async addressesOf(directive: Directive, name: string): Promise<readonly string[]> {
    if (!isLookedUp(name)) return []
    return this.known(directive, await (this.isIpv6 ? this.resolver.ipv6(name) : this.resolver.ipv4(name)))
  }

  /** RFC 7208 §5.4. */
  private async matchesExchange(directive: Directive, name: string): Promise<boolean> {
    const records = isLookedUp(name) ? this.known(directive, await this.resolver.mx(name)) : []
    if (records.length > MAX_NAMES)
      throw new SpfError('permerror', `${name} has more than ${MAX_NAMES} MX records`, directive.text)
    const exchanges = [...records].sort((one, other) => one.preference - other.preference)
    for (const { exchange } of exchanges)
      if (this.isWithin(directive, await this.addressesOf(directive, exchange))) return true
    return false
  }

  /** RFC 7208 §5.5: names of the address that resolve back to it. A lookup without an answer counts as absent. */
  private async validatedNames(): Promise<string[]> {
    const answer = await this.resolver.ptr(reverseName(this.address) ?? '')
    this.countVoid(answer, this.address)
    const names = answer.kind === 'found' ? answer.records.slice(0, MAX_NAMES) : []
    const validated: string[] = []
    for (const name of names) {
      const found = await (this.isIpv6 ? this.resolver.ipv6(name) : this.resolver.ipv4(name))
      if (found.kind === 'found' && this.isWithin({ prefix4: 32, prefix6: 128 }, found.records))
        validated.push(name.toLowerCase())
    }
    return validated
  }

  private isWithin(
    { prefix4, prefix6 }: Pick<Directive, 'prefix4' | 'prefix6'>,
    found: readonly string[],
  ): boolean {
    const prefix = this.isIpv6 ? prefix6 : prefix4
    const ofFamily = found.filter(one => ipVersion(one) === (this.isIpv6 ? 6 : 4))
    return new NetworkList(ofFamily.map(one => `${one}/${prefix}`)).contains(this.address)
  }

  private countLookup(term: string): void {
    this.lookups += 1
    if (this.lookups > MAX_LOOKUPS)
      throw new SpfError('permerror', `more than ${MAX_LOOKUPS} DNS lookups, at "${term}"`, term)
  }

  private known<T>({ text }: Directive, answer: DnsAnswer<T>): readonly T[] {
    if (answer.kind === 'unavailable')
      throw new SpfError('temperror', `DNS did not answer: ${answer.reason}`, text)
    this.countVoid(answer, text)
    return answer.kind === 'found' ? answer.records : []
  }

  private countVoid(answer: DnsAnswer<unknown>, term: string): void {
    if (answer.kind !== 'missing') return
    this.voidLookups += 1
    if (this.voidLookups > MAX_VOID_LOOKUPS)
      throw new SpfError('permerror', `more than ${MAX_VOID_LOOKUPS} void lookups, at "${term}"`, term)
  }

  /** RFC 7208 §7. */
  private async expand(spec: string, domain: string): Promise<string> {
    let expanded = ''
    for (const part of spec.match(DOMAIN_SPEC_PARTS) ?? []) {
      const [, letter, digits = '', reverse, delimiters = ''] =
        /^%\{([a-z])(\d*)(r?)([.\-+,/_=]*)\}$/i.exec(part) ?? []
      if (letter === undefined) expanded += { '%%': '%', '%_': ' ', '%-': '%20' }[part] ?? part
      else {
        const value = transform(
          await this.macro(letter.toLowerCase(), domain),
          digits,
          reverse !== '',
          delimiters,
        )
        expanded += letter === letter.toUpperCase() ? encodeUrl(value) : value
      }
    }
    return shortened(expanded.replace(/\.$/, ''))
  }

  private async macro(letter: string, domain: string): Promise<string> {
    const sender = this.question.sender ?? `postmaster@${this.question.domain}`
    const at = sender.lastIndexOf('@')
    const local = sender.slice(0, Math.max(0, at)) || 'postmaster'
    switch (letter) {
      case 's':
        return `${local}@${sender.slice(at + 1)}`
      case 'l':
        return local
      case 'o':
        return sender.slice(at + 1)
      case 'd':
        return domain
      case 'i':
        return this.isIpv6 ? nibbles(this.address).join('.') : this.address
      case 'p': {
        const names = await this.validatedNames()
        return (
          names.find(name => name === domain) ??
          names.find(name => isWithinDomain(name, domain)) ??
          names[0] ??
          'unknown'
        )
      }
      case 'v':
        return this.isIpv6 ? 'ip6' : 'in-addr'
      default:
        return this.question.hello
    }
  }
}

/** Whether the name is valid in DNS and has more than one label. */
function isLookedUp(name: string): boolean {
  const labels = name.split('.')
  return (
    name.length <= 253 && labels.length > 1 && labels.every(label => label.length > 0 && label.length <= 63)
  )
}

function isWithinDomain(name: string, domain: string): boolean {
  return name === domain || name.endsWith(`.${domain}`)
}

function transform(value: string, digits: string, isReversed: boolean, delimiters: string): string {
  if (digits === '' && !isReversed && delimiters === '') return value
  const separator = new RegExp(`[${(delimiters || '.').replaceAll('-', '\\-')}]`)
  const parts = value.split(separator)
  if (isReversed) parts.reverse()
  return parts.slice(digits === '' ? 0 : -Number(digits)).join('.')
}

/** RFC 7208 §7.3: drops labels from the left until the name fits. */
function shortened(name: string): string {
  return name.length <= 253 ? name : shortened(name.slice(name.indexOf('.') + 1 || name.length))
}

function encodeUrl(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    one => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
