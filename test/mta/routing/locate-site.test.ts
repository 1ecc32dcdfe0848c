import t from 'tap'
import { openSiteLocator, type LocatorParts } from '../../../src/mta/routing/locate-site.js'
import { fakeDns } from '../../../src/world/dns/fake-dns.js'

const mx = (...hosts: string[]) => ({
  MX: hosts.map((host, index) => `${index * 10} ${host}`),
})

function locator(parts: Partial<LocatorParts> = {}) {
  return openSiteLocator({
    resolver: fakeDns({
      'gmail.com': mx('gmail-smtp-in.l.google.com', 'alt1.gmail-smtp-in.l.google.com'),
      'startup.example': mx('aspmx.l.google.com', 'alt1.aspmx.l.google.com'),
      'contoso.example': mx('contoso-example.mail.protection.outlook.com'),
      'fabrikam.example': mx('fabrikam-example.mail.protection.outlook.com'),
      'shop.example': mx('mx2.hoster.example', 'mx1.hoster.example'),
      'blog.example': mx('mx1.hoster.example', 'mx2.hoster.example'),
      'half.example': mx('mx1.hoster.example'),
      'mixed.example': mx('aspmx.l.google.com', 'mx.own.example'),
      'silent.example': 'servfail',
    }),
    routes: [],
    sites: [],
    connectionsPerSite: 10,
    ...parts,
  })
}

const nameOf = async (domain: string, parts?: Partial<LocatorParts>) => (await locator(parts)(domain)).name

t.test('domains with the same MX hosts are one site, whatever the order of preference', async t => {
  t.equal(await nameOf('shop.example'), await nameOf('blog.example'))
  t.not(await nameOf('shop.example'), await nameOf('half.example'))
})

t.test("a provider's domains share one site despite different host names", async t => {
  t.equal(await nameOf('gmail.com'), '*.google.com')
  t.equal(await nameOf('startup.example'), '*.google.com')
  t.equal(await nameOf('contoso.example'), await nameOf('fabrikam.example'))
  t.not(await nameOf('mixed.example'), '*.google.com', 'a different host among them makes it a separate site')
})

t.test('a domain that DNS cannot resolve is its own site', async t => {
  t.equal(await nameOf('silent.example'), 'silent.example')
  t.equal(await nameOf('nowhere.example'), 'nowhere.example')
})

t.test('a static route is a separate site and needs no DNS', async t => {
  const routes = [{ domain: '*.example', host: '10.0.0.5', port: 25, tls: 'none' as const }]
  t.equal(await nameOf('shop.example', { routes }), '10.0.0.5:25')
  t.equal(await nameOf('silent.example', { routes }), '10.0.0.5:25')
})

t.test('the first matching rule by MX host or domain sets the limits', async t => {
  const sites = [
    { mx: '*.google.com', domain: undefined, connections: 20, messagesPerMinute: 600 },
    { mx: undefined, domain: 'shop.example', connections: 1, messagesPerMinute: 0 },
    { mx: '*.hoster.example', domain: undefined, connections: 0, messagesPerMinute: 30 },
  ]
  t.match(await locator({ sites })('gmail.com'), { connections: 20, messagesPerMinute: 600 })
  t.match(await locator({ sites })('shop.example'), { connections: 1, messagesPerMinute: 0 })
  t.match(await locator({ sites })('half.example'), { connections: 10, messagesPerMinute: 30 })
  t.equal(
    await nameOf('half.example', { sites }),
    await nameOf('blog.example', { sites }),
    'one site by the rule s pattern',
  )
  t.not(
    await nameOf('shop.example', { sites }),
    await nameOf('blog.example', { sites }),
    'its own rule, its own site',
  )
})
