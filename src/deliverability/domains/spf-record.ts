/** Parses SPF records (RFC 7208 §4.5, §4.6, §5, §6, §7.1, §12). A syntax error anywhere is an SpfError `permerror` that names the term. */
import { ipVersion } from '../../world/net/ip-address.js'

/** The SPF records of a domain: more than one is a `permerror` (RFC 7208 §4.5). */
export function spfRecords(texts: readonly string[]): string[] {
  return texts.filter(text => /^v=spf1(?: |$)/i.test(text))
}

export class SpfError extends Error {
  readonly verdict: 'temperror' | 'permerror'
  readonly term: string | undefined
  readonly domain: string | undefined

  constructor(verdict: 'temperror' | 'permerror', message: string, term?: string, domain?: string) {
    super(message)
    this.verdict = verdict
    this.term = term
    this.domain = domain
  }
}

export type Mechanism = 'all' | 'include' | 'a' | 'mx' | 'ptr' | 'ip4' | 'ip6' | 'exists'

export interface Directive {
  /** As written in the record. */
  readonly text: string
  readonly verdict: 'pass' | 'fail' | 'softfail' | 'neutral'
  readonly mechanism: Mechanism
  /** Domain, with macros; absent: the domain of the record. */
  readonly domainSpec?: string
  /** Of `ip4` and `ip6`. */
  readonly address?: string
  readonly prefix4: number
  readonly prefix6: number
}

export interface SpfRecord {
  readonly directives: readonly Directive[]
  readonly redirect?: { readonly text: string; readonly domainSpec: string }
}

const QUALIFIERS: Readonly<Record<string, Directive['verdict']>> = {
  '+': 'pass',
  '-': 'fail',
  '~': 'softfail',
  '?': 'neutral',
}

/** Arguments of a mechanism. `cidr`: a prefix for IPv4 and one for IPv6. */
export const MECHANISMS: Readonly<
  Record<
    Mechanism,
    { readonly domain: 'none' | 'optional' | 'required'; readonly cidr: boolean; readonly costs: boolean }
  >
> = {
  all: { domain: 'none', cidr: false, costs: false },
  include: { domain: 'required', cidr: false, costs: true },
  a: { domain: 'optional', cidr: true, costs: true },
  mx: { domain: 'optional', cidr: true, costs: true },
  ptr: { domain: 'optional', cidr: false, costs: true },
  ip4: { domain: 'none', cidr: false, costs: false },
  ip6: { domain: 'none', cidr: false, costs: false },
  exists: { domain: 'required', cidr: false, costs: true },
}

const MACRO = String.raw`%(?:%|_|-|\{[slodiphvSLODIPHV](?:0*[1-9]\d*)?r?[.\-+,/_=]*\})`
const LITERAL = String.raw`[\x21-\x24\x26-\x7e]`
const MACRO_STRING = new RegExp(`^(?:${LITERAL}|${MACRO})*$`, 'i')
/** The last label, with the dots at its ends. */
const TOP_LABEL = /^\.(?:\d*[a-z][a-z0-9]*|[a-z0-9]+(?:-+[a-z0-9]+)+)\.?$/i
/** Characters. No name is longer. */
const MAX_DOMAIN_SPEC = 512
const MODIFIER = /^([a-z][a-z0-9\-_.]*)=(.*)$/is
/** Macros, and the characters between them. */
export const DOMAIN_SPEC_PARTS = new RegExp(`${MACRO}|[^]`, 'gi')
const PREFIX = /^(?:0|[1-9]\d{0,2})$/

function isDomainSpec(text: string): boolean {
  if (text.length > MAX_DOMAIN_SPEC || !MACRO_STRING.test(text)) return false
  const endsInMacro = (text.match(DOMAIN_SPEC_PARTS)?.at(-1) ?? '').length > 1
  return endsInMacro || TOP_LABEL.test(text.slice(text.lastIndexOf('.', text.length - 2)))
}

/** @throws SpfError permerror */
export function readRecord(text: string): SpfRecord {
  const directives: Directive[] = []
  let redirect: SpfRecord['redirect']
  let hasExplanation = false
  for (const term of text.slice('v=spf1'.length).split(' ').filter(Boolean)) {
    const modifier = MODIFIER.exec(term)
    if (!modifier) {
      directives.push(readDirective(term))
      continue
    }
    const [, name = '', value = ''] = modifier
    switch (name.toLowerCase()) {
      case 'redirect':
        if (redirect) throw faulty(term, 'more than one redirect')
        if (!isDomainSpec(value)) throw faulty(term)
        redirect = { text: term, domainSpec: value }
        break
      case 'exp':
        if (hasExplanation) throw faulty(term, 'more than one exp')
        if (!isDomainSpec(value)) throw faulty(term)
        hasExplanation = true
        break
      default:
        if (!MACRO_STRING.test(value)) throw faulty(term)
    }
  }
  return { directives, ...(redirect ? { redirect } : {}) }
}

function readDirective(text: string): Directive {
  const [before = '', qualifier = '', name = ''] = /^([+\-~?]?)([a-z0-9]+)/i.exec(text) ?? []
  const rest = text.slice(before.length)
  const mechanism = name.toLowerCase()
  const verdict = QUALIFIERS[qualifier || '+']
  if (!isMechanism(mechanism) || verdict === undefined) throw faulty(text, 'unknown mechanism')
  const base = { text, verdict, mechanism, prefix4: 32, prefix6: 128 }
  if (mechanism === 'ip4' || mechanism === 'ip6') return { ...base, ...readNetwork(text, mechanism, rest) }
  const { domain, cidr } = MECHANISMS[mechanism]
  const [, spec = '', four, six] = cidr
    ? (/^(.*?)(?:\/(\d+))?(?:\/\/(\d+))?$/s.exec(rest) ?? [])
    : [rest, rest]
  if (spec !== '' && (domain === 'none' || !spec.startsWith(':') || !isDomainSpec(spec.slice(1))))
    throw faulty(text)
  if (spec === '' && domain === 'required') throw faulty(text, 'missing domain')
  return {
    ...base,
    prefix4: readPrefix(text, four, 32),
    prefix6: readPrefix(text, six, 128),
    ...(spec === '' ? {} : { domainSpec: spec.slice(1) }),
  }
}

function isMechanism(name: string): name is Mechanism {
  return Object.hasOwn(MECHANISMS, name)
}

function readNetwork(
  text: string,
  mechanism: 'ip4' | 'ip6',
  rest: string,
): Pick<Directive, 'address' | 'prefix4' | 'prefix6'> {
  const [address = '', prefix, ...more] = rest.slice(1).split('/')
  const version = mechanism === 'ip4' ? 4 : 6
  if (!rest.startsWith(':') || ipVersion(address) !== version || address.includes('%') || more.length > 0)
    throw faulty(text, `not an IPv${version} network`)
  const bits = readPrefix(text, prefix, version === 4 ? 32 : 128)
  return { address, prefix4: bits, prefix6: bits }
}

function readPrefix(text: string, digits: string | undefined, longest: number): number {
  if (digits === undefined) return longest
  if (!PREFIX.test(digits) || Number(digits) > longest)
    throw faulty(text, `/${digits} is not a prefix length`)
  return Number(digits)
}

function faulty(term: string, what = 'syntax error'): SpfError {
  return new SpfError('permerror', `${what} in "${term}"`, term)
}
