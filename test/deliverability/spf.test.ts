/** SPF per RFC 7208: each record with its result, compared with mailauth's. */
import { spf as mailauthSpf } from 'mailauth/lib/spf/index.js'
import t from 'tap'
import { evaluateSpf, type SpfVerdict } from '../../src/deliverability/domains/spf.js'
import { fakeDns, type FakeZone } from '../../src/world/dns/fake-dns.js'
import type { DnsAnswer, Resolver } from '../../src/world/dns/dns.js'

const IPV4 = '192.0.2.25'
const IPV6 = '2001:db8::25'

/** What terms refer to. */
const ZONE: FakeZone = {
  'host.test': { A: ['192.0.2.25'], AAAA: ['2001:db8::25'], MX: ['10 mx.host.test'] },
  'mx.host.test': { A: ['192.0.2.25'], AAAA: ['2001:db8::25'] },
  'other.test': { A: ['192.0.2.99'], AAAA: ['2001:db8::99'], MX: ['10 far.test', '20 mx.host.test'] },
  'far.test': { A: ['198.51.100.7'], AAAA: ['2001:db8:7::7'] },
  'many.test': { MX: Array.from({ length: 11 }, (_, n) => `${n} mx${n}.many.test`) },
  'broken.test': 'servfail',
  'nothing.test': { TXT: ['hello'] },
  'pass.test': { TXT: ['v=spf1 ip4:192.0.2.25 ip6:2001:db8::/32 -all'] },
  'fail.test': { TXT: ['v=spf1 -all'] },
  'soft.test': { TXT: ['v=spf1 ~all'] },
  'wrong.test': { TXT: ['v=spf1 ip4:192.0.2 -all'] },
  'loop.test': { TXT: ['v=spf1 include:loop.test -all'] },
  'twice.test': { TXT: ['v=spf1 -all', 'v=spf1 +all'] },
  '25.2.0.192.in-addr.arpa': { PTR: ['liar.test', 'out.host.test'] },
  'out.host.test': { A: ['192.0.2.25'] },
  'liar.test': { A: ['192.0.2.1'] },
  '192.0.2.25.yes.test': { A: ['127.0.0.2'] },
  'postmaster.sender.test.yes.test': { A: ['127.0.0.2'] },
  'test.sender.yes.test': { A: ['127.0.0.2'] },
  'host.example.yes.test': { A: ['127.0.0.2'] },
  'in-addr.yes.test': { A: ['127.0.0.2'] },
  'out.host.test.yes.test': { A: ['127.0.0.2'] },
}

interface Case {
  readonly record: string | readonly string[]
  readonly verdict: SpfVerdict
  /** 192.0.2.25 if not given. */
  readonly address?: string
  readonly term?: string
  /** How mailauth departs from the RFC. */
  readonly mailauthDiffers?: string
}

const includes = (count: number) => Array.from({ length: count }, () => 'include:fail.test').join(' ')

const CASES: Readonly<Record<string, readonly Case[]>> = {
  'records are recognized by their version, and at most one is allowed': [
    { record: [], verdict: 'none' },
    { record: ['v=spf10 +all'], verdict: 'none' },
    { record: ['v=spf2.0/pra +all'], verdict: 'none' },
    { record: ['V=SPF1 +all'], verdict: 'pass', term: '+all' },
    { record: 'v=spf1', verdict: 'neutral' },
    { record: ['something else', 'v=spf1 -all'], verdict: 'fail' },
    { record: ['v=spf1 -all', 'v=spf1 +all'], verdict: 'permerror' },
  ],
  'the first matching term decides by its qualifier': [
    { record: 'v=spf1 all', verdict: 'pass', term: 'all' },
    { record: 'v=spf1 ~all', verdict: 'softfail', term: '~all' },
    { record: 'v=spf1 ?all -all', verdict: 'neutral', term: '?all' },
    { record: 'v=spf1 -ip4:192.0.2.25 +all', verdict: 'fail', term: '-ip4:192.0.2.25' },
    { record: 'v=spf1 ip4:198.51.100.1', verdict: 'neutral' },
  ],
  'networks match by family and prefix': [
    { record: 'v=spf1 ip4:192.0.2.0/24 -all', verdict: 'pass' },
    { record: 'v=spf1 ip4:192.0.2.0/28 -all', verdict: 'fail' },
    { record: 'v=spf1 ip4:1.2.3.4/0 -all', verdict: 'pass' },
    { record: 'v=spf1 ip6:::/0 -all', verdict: 'fail' },
    { record: 'v=spf1 ip6:2001:DB8::/32 -all', verdict: 'pass', address: IPV6 },
    { record: 'v=spf1 ip4:0.0.0.0/0 -all', verdict: 'fail', address: IPV6 },
    { record: 'v=spf1 ip4:192.0.2.25 -all', verdict: 'pass', address: '::ffff:192.0.2.25' },
  ],
  'a and mx look up addresses, with a prefix per family': [
    { record: 'v=spf1 a:host.test -all', verdict: 'pass', term: 'a:host.test' },
    { record: 'v=spf1 a:host.test -all', verdict: 'pass', address: IPV6 },
    { record: 'v=spf1 A:HOST.test -all', verdict: 'pass' },
    { record: 'v=spf1 a:other.test -all', verdict: 'fail' },
    { record: 'v=spf1 a:other.test/24 -all', verdict: 'pass' },
    { record: 'v=spf1 a:other.test/24 -all', verdict: 'fail', address: IPV6 },
    { record: 'v=spf1 a:other.test//64 -all', verdict: 'pass', address: IPV6 },
    { record: 'v=spf1 a:other.test/24//64 -all', verdict: 'pass', address: IPV6 },
    { record: 'v=spf1 mx:host.test -all', verdict: 'pass' },
    { record: 'v=spf1 mx:other.test -all', verdict: 'pass', address: IPV6 },
    { record: 'v=spf1 mx:many.test -all', verdict: 'permerror' },
    { record: 'v=spf1 a:host.test. -all', verdict: 'pass', mailauthDiffers: 'it takes no dot at the end' },
    { record: 'v=spf1 a -all', verdict: 'fail' },
  ],
  'include matches only on pass; redirect replaces the record': [
    { record: 'v=spf1 include:pass.test -all', verdict: 'pass', term: 'include:pass.test' },
    { record: 'v=spf1 include:fail.test ?all', verdict: 'neutral', term: '?all' },
    { record: 'v=spf1 include:soft.test -all', verdict: 'fail' },
    { record: 'v=spf1 -include:pass.test +all', verdict: 'fail', term: '-include:pass.test' },
    { record: 'v=spf1 include:nothing.test +all', verdict: 'permerror', term: 'include:nothing.test' },
    { record: 'v=spf1 include:wrong.test +all', verdict: 'permerror' },
    { record: 'v=spf1 include:twice.test +all', verdict: 'permerror' },
    { record: 'v=spf1 include:broken.test +all', verdict: 'temperror' },
    { record: 'v=spf1 redirect=soft.test', verdict: 'softfail', term: '~all' },
    { record: 'v=spf1 redirect=fail.test ip4:192.0.2.25', verdict: 'pass' },
    { record: 'v=spf1 redirect=fail.test ?all', verdict: 'neutral' },
    { record: 'v=spf1 redirect=nothing.test', verdict: 'permerror' },
  ],
  'ptr names count if they resolve back to the address': [
    { record: 'v=spf1 ptr:host.test -all', verdict: 'pass' },
    { record: 'v=spf1 ptr:liar.test -all', verdict: 'fail' },
    { record: 'v=spf1 ptr -all', verdict: 'fail' },
    { record: 'v=spf1 ptr:st.test -all', verdict: 'fail' },
  ],
  'macros are expanded, and exists looks up the result': [
    { record: 'v=spf1 exists:%{i}.yes.test -all', verdict: 'pass' },
    { record: 'v=spf1 exists:%{ir}.yes.test -all', verdict: 'fail' },
    { record: 'v=spf1 exists:%{l}.%{o}.yes.test -all', verdict: 'pass' },
    { record: 'v=spf1 exists:%{dr}.yes.test -all', verdict: 'pass' },
    { record: 'v=spf1 exists:%{h2}.yes.test -all', verdict: 'pass' },
    { record: 'v=spf1 exists:%{v}.yes.test -all', verdict: 'pass' },
    { record: 'v=spf1 exists:%{p}.yes.test -all', verdict: 'pass', mailauthDiffers: 'it does not expand p' },
    { record: 'v=spf1 include:%{d2}.nowhere.test -all', verdict: 'permerror' },
    {
      record: 'v=spf1 exists:%{c}.yes.test -all',
      verdict: 'permerror',
      mailauthDiffers: 'it does not tell explanations from names',
    },
    {
      record: 'v=spf1 exists:%{d0}.yes.test -all',
      verdict: 'permerror',
      mailauthDiffers: 'it takes no parts of a name',
    },
    { record: 'v=spf1 exists:%x.yes.test -all', verdict: 'permerror' },
    { record: 'v=spf1 exists:%{i}/24 -all', verdict: 'permerror' },
  ],
  'a syntax error anywhere invalidates the record': [
    { record: 'v=spf1 +all ipv4:192.0.2.25', verdict: 'permerror', term: 'ipv4:192.0.2.25' },
    {
      record: 'v=spf1 +all ip4:192.0.2.300',
      verdict: 'permerror',
      term: 'ip4:192.0.2.300',
      mailauthDiffers: 'it reads terms as it comes to them',
    },
    { record: 'v=spf1 ip4:192.0.2.25/33 +all', verdict: 'permerror' },
    { record: 'v=spf1 ip4:192.0.2.25/024 +all', verdict: 'permerror' },
    { record: 'v=spf1 ip4:192.0.2.25:25 +all', verdict: 'permerror' },
    {
      record: 'v=spf1 ip6:192.0.2.25 +all',
      verdict: 'permerror',
      mailauthDiffers: 'it takes addresses of either family',
    },
    { record: 'v=spf1 all:host.test', verdict: 'permerror' },
    { record: 'v=spf1 all/8', verdict: 'permerror' },
    { record: 'v=spf1 -all.', verdict: 'permerror' },
    { record: 'v=spf1 a: +all', verdict: 'permerror' },
    { record: 'v=spf1 a:museum +all', verdict: 'permerror' },
    { record: 'v=spf1 a:host.test/129 +all', verdict: 'permerror' },
    { record: 'v=spf1 a:192.0.2.25 +all', verdict: 'permerror' },
    { record: 'v=spf1 include +all', verdict: 'permerror' },
    { record: 'v=spf1 include: +all', verdict: 'permerror' },
    { record: 'v=spf1 exists +all', verdict: 'permerror' },
    { record: 'v=spf1 +all redirect=', verdict: 'permerror' },
    { record: 'v=spf1 redirect=soft.test redirect=fail.test', verdict: 'permerror' },
    {
      record: 'v=spf1 +all exp=a.test exp=b.test',
      verdict: 'permerror',
      mailauthDiffers: 'it does not count explanations',
    },
    { record: 'v=spf1 +all exp=', verdict: 'permerror' },
    { record: 'v=spf1 +all moo=%{x}', verdict: 'permerror' },
    { record: 'v=spf1 +all moo=cow%_', verdict: 'pass' },
    { record: 'v=spf1\t+all', verdict: 'none', mailauthDiffers: 'it takes a tab for a space' },
    { record: 'v=spf1 mx\ta +all', verdict: 'permerror' },
    { record: 'v=spf1 a:höst.test +all', verdict: 'permerror' },
  ],
  'at most ten terms may need DNS, with two void lookups': [
    { record: `v=spf1 ${includes(10)} +all`, verdict: 'pass' },
    { record: `v=spf1 ${includes(11)} +all`, verdict: 'permerror' },
    { record: `v=spf1 ip4:192.0.2.25 ${includes(11)} -all`, verdict: 'pass', term: 'ip4:192.0.2.25' },
    { record: `v=spf1 ${includes(10)} redirect=pass.test`, verdict: 'permerror' },
    { record: 'v=spf1 include:loop.test -all', verdict: 'permerror' },
    { record: 'v=spf1 a:no1.test a:no2.test +all', verdict: 'pass' },
    { record: 'v=spf1 a:no1.test exists:no2.test mx:no3.test +all', verdict: 'permerror' },
  ],
  'a DNS failure is a temperror': [
    { record: 'v=spf1 a:broken.test +all', verdict: 'temperror', term: 'a:broken.test' },
    { record: 'v=spf1 mx:broken.test +all', verdict: 'temperror' },
    { record: 'v=spf1 exists:broken.test +all', verdict: 'temperror' },
    { record: 'v=spf1 ip4:192.0.2.25 a:broken.test -all', verdict: 'pass' },
  ],
}

const zoneOf = ({ record }: Case): FakeZone => {
  const texts = typeof record === 'string' ? [record] : record
  return { ...ZONE, 'sender.test': texts.length === 0 ? {} : { TXT: texts } }
}

for (const [rule, cases] of Object.entries(CASES))
  t.test(rule, async t => {
    for (const one of cases) {
      const { address = IPV4, verdict, term } = one
      const question = { address, domain: 'sender.test', hello: 'mail.host.example' }
      const result = await evaluateSpf(question, fakeDns(zoneOf(one)))
      const about = `${String(one.record)} from ${address}: ${result.reason ?? result.term ?? ''}`
      t.equal(result.verdict, verdict, about)
      if (term !== undefined) t.equal(result.term, term, about)
      if (['none', 'temperror', 'permerror'].includes(verdict)) t.ok(result.reason, about)
    }
  })

t.test('mailauth gives the same results', async t => {
  for (const one of Object.values(CASES).flat()) {
    const { address = IPV4, verdict, mailauthDiffers } = one
    const dns = fakeDns(zoneOf(one))
    const { status } = await mailauthSpf({
      ip: address,
      sender: 'postmaster@sender.test',
      helo: 'mail.host.example',
      mta: 'receiver.test',
      resolver: (name, type) => asNodeDns(dns, name, type),
    })
    if (mailauthDiffers === undefined)
      t.equal(status.result, verdict, `${String(one.record)} from ${address}`)
  }
})

/** As `dns.promises.resolve` answers. */
async function asNodeDns(dns: Resolver, name: string, type: string): Promise<never> {
  const answer = await ask(dns, name, type)
  if (answer.kind === 'found')
    return (type === 'TXT' ? answer.records.map(text => [text]) : [...answer.records]) as never
  const code =
    answer.kind === 'unavailable' ? 'ETIMEOUT' : answer.why === 'nxdomain' ? 'ENOTFOUND' : 'ENODATA'
  throw Object.assign(new Error(`${type} ${name}`), { code })
}

function ask(dns: Resolver, name: string, type: string): Promise<DnsAnswer<unknown>> {
  switch (type) {
    case 'A':
      return dns.ipv4(name)
    case 'AAAA':
      return dns.ipv6(name)
    case 'MX':
      return dns.mx(name)
    case 'PTR':
      return dns.ptr(name)
    default:
      return dns.txt(name)
  }
}
