/** Which names the certificate of several nodes covers. */
import t from 'tap'
import { acmeNames } from '../../src/certificates/acme/names.js'

const own = { hostname: 'MX1.example.com', publicUrl: 'https://mail.example.com' }

t.test('one server: its own name and that of public_url', async t => {
  t.same(acmeNames(own), ['mx1.example.com', 'mail.example.com'])
  t.same(acmeNames({ ...own, publicUrl: 'https://mx1.example.com/' }), ['mx1.example.com'])
  t.same(acmeNames({ ...own, publicUrl: 'http://192.0.2.1:8025' }), ['mx1.example.com'])
  t.same(acmeNames(own, [{ name: 'mx1.example.com', roles: ['mta'] }]), [
    'mx1.example.com',
    'mail.example.com',
  ])
})

t.test('several nodes: the names of all that clients connect to, at whichever node the jobs run', async t => {
  const nodes = [
    { name: 'mx2.example.com', roles: ['inbound', 'mta'] },
    { name: 'mx1.example.com', roles: ['http', 'submission', 'inbound', 'mta', 'scheduler'] },
    { name: 'out.example.com', roles: ['mta', 'scheduler'] },
    { name: 'container', roles: ['http'] },
  ] as const
  const expected = ['mail.example.com', 'mx1.example.com', 'mx2.example.com']
  for (const hostname of ['mx1.example.com', 'mx2.example.com', 'out.example.com'])
    t.same(acmeNames({ ...own, hostname }, nodes).sort(), expected, hostname)
})
