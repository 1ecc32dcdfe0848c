/** The declared zone keeps the rules that the real resolver keeps. */
import t from 'tap'
import { fakeDns } from '../../src/world/dns/fake-dns.js'

const resolver = fakeDns({
  'example.com': { MX: ['10 mx1.example.com', '20 mx2.example.com'], TXT: ['v=spf1 -all'] },
  'nomail.example': { MX: ['0 .'] },
  'www.example': { CNAME: 'host.example' },
  'host.example': { A: ['192.0.2.1'], AAAA: 'servfail' },
  'broken.example': 'servfail',
  'circle.example': { CNAME: 'circle.example' },
})

t.test('declared records are found, aliases followed', async t => {
  t.match(await resolver.mx('example.com'), {
    kind: 'found',
    records: [
      { exchange: 'mx1.example.com', preference: 10 },
      { exchange: 'mx2.example.com', preference: 20 },
    ],
  })
  t.match(await resolver.mx('nomail.example'), { records: [{ exchange: '', preference: 0 }] })
  t.match(await resolver.txt('example.com'), { records: ['v=spf1 -all'] })
  t.match(await resolver.ipv4('www.example'), { records: ['192.0.2.1'] })
  t.match(await resolver.cname('www.example'), { records: ['host.example'] })
})

t.test('undeclared records are missing, with the reason', async t => {
  t.match(await resolver.ipv4('gone.example'), { kind: 'missing', why: 'nxdomain' })
  t.match(await resolver.ipv4('example.com'), { kind: 'missing', why: 'nodata' })
  t.match(await resolver.cname('example.com'), { kind: 'missing', why: 'nodata' })
})

t.test('servfail, whole or for one type, and aliases in a circle are unavailable', async t => {
  t.match(await resolver.mx('broken.example'), { kind: 'unavailable' })
  t.match(await resolver.cname('broken.example'), { kind: 'unavailable' })
  t.match(await resolver.ipv6('www.example'), { kind: 'unavailable' })
  t.match(await resolver.ipv4('circle.example'), { kind: 'unavailable' })
})
