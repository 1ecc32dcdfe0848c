/** DMARC: records read, organizational domains found in DNS, and domains aligned with them. */
import t from 'tap'
import { isAligned, policyOf, readDmarcRecord, walkDmarc } from '../../src/deliverability/domains/dmarc.js'
import { fakeDns, type FakeZone } from '../../src/world/dns/fake-dns.js'

t.test('a record is read as receivers read it', async t => {
  t.match(readDmarcRecord('v=DMARC1; p=reject; sp=quarantine; adkim=s'), {
    ...{ policy: 'reject', subdomainPolicy: 'quarantine', dkim: 'strict', spf: 'relaxed' },
  })
  t.match(readDmarcRecord('v=DMARC1;P=Reject;p=none'), { policy: 'reject', subdomainPolicy: 'reject' })
  t.match(readDmarcRecord('v=DMARC1; p=monitor; rua=mailto:a@b.test'), { policy: 'none' })
  for (const text of ['v=DMARC1; p=monitor', 'v=DMARC1', 'v=DMARC12; p=none', 'v=spf1 -all', ''])
    t.equal(readDmarcRecord(text), undefined, text)
})

const ZONE: FakeZone = {
  '_dmarc.shop.test': { TXT: ['v=DMARC1; p=reject; sp=none'] },
  '_dmarc.news.shop.test': { TXT: ['v=DMARC1; p=quarantine'] },
  '_dmarc.co.uk.test': { TXT: ['v=DMARC1; p=none; psd=y'] },
  '_dmarc.twice.test': { TXT: ['v=DMARC1; p=none', 'v=DMARC1; p=reject'] },
  '_dmarc.broken.test': 'servfail',
}

t.test('the nearest record decides, and the highest one names the organization', async t => {
  const walk = (name: string) => walkDmarc(name, fakeDns(ZONE))
  const summary = async (name: string) => {
    const found = await walk(name)
    return [found.found?.domain, policyOf(found), found.organizationalDomain]
  }
  t.same(await summary('SHOP.test'), ['shop.test', 'reject', 'shop.test'])
  t.same(await summary('mail.shop.test'), ['shop.test', 'none', 'shop.test'], 'of a subdomain')
  t.same(await summary('news.shop.test'), ['news.shop.test', 'quarantine', 'shop.test'])
  t.same(await summary('ann.co.uk.test'), ['co.uk.test', 'none', 'ann.co.uk.test'], 'below a public suffix')
  t.same(await summary('a.bob.co.uk.test'), ['co.uk.test', 'none', 'bob.co.uk.test'])
  t.same(await summary('twice.test'), [undefined, undefined, 'twice.test'], 'two records count as none')
  t.equal((await walk('broken.test')).isUncertain, true)
})

t.test('a long name costs eight questions at most, and no top-level domain is asked', async t => {
  const dns = fakeDns({})
  await walkDmarc('a.b.c.d.e.f.g.h.i.j.shop.test', dns)
  t.equal(dns.asked.length, 7)
  t.equal(dns.asked[0], 'TXT _dmarc.a.b.c.d.e.f.g.h.i.j.shop.test')
  t.equal(dns.asked.at(-1), 'TXT _dmarc.shop.test')
})

t.test('relaxed alignment takes domains of one organization, strict only the same', async t => {
  const dns = fakeDns(ZONE)
  const aligned = async (from: string, proven: string, mode: 'relaxed' | 'strict') =>
    isAligned(await walkDmarc(from, dns), proven, mode, dns)
  t.equal(await aligned('shop.test', 'SHOP.test', 'strict'), true)
  t.equal(await aligned('shop.test', 'news.shop.test', 'strict'), false)
  t.equal(await aligned('shop.test', 'news.shop.test', 'relaxed'), true)
  t.equal(await aligned('news.shop.test', 'mail.shop.test', 'relaxed'), true)
  t.equal(await aligned('shop.test', 'notshop.test', 'relaxed'), false)
  t.equal(await aligned('ann.co.uk.test', 'bob.co.uk.test', 'relaxed'), false, 'neighbours below a suffix')
  t.equal(await aligned('plain.test', 'mail.plain.test', 'relaxed'), true, 'without any record')
  t.equal(await aligned('one.plain.test', 'two.plain.test', 'relaxed'), false)
})
