/** Addresses as text, and names of the system. */
import t from 'tap'
import { isLoopbackOrUnspecified } from '../../src/world/net/address-kind.js'
import { ipVersion, isSameAddress, parseAddressAndPort } from '../../src/world/net/ip-address.js'
import { systemLookup } from '../../src/world/dns/host-lookup.js'

t.test('localhost is known to the system', async t => {
  const answer = await systemLookup('localhost')
  t.equal(answer.kind, 'found')
  if (answer.kind === 'found') t.ok(answer.records.every(isLoopbackOrUnspecified))
})

t.test('server addresses are read with and without port', async t => {
  t.same(parseAddressAndPort('192.0.2.1', 53), { address: '192.0.2.1', port: 53 })
  t.same(parseAddressAndPort('192.0.2.1:5353', 53), { address: '192.0.2.1', port: 5353 })
  t.same(parseAddressAndPort('2001:db8::1', 53), { address: '2001:db8::1', port: 53 })
  t.same(parseAddressAndPort('[2001:db8::1]:5353', 53), { address: '2001:db8::1', port: 5353 })
  t.same(parseAddressAndPort('[2001:db8::1]', 53), { address: '2001:db8::1', port: 53 })
  for (const text of [
    '',
    'localhost',
    '192.0.2.1:',
    '192.0.2.1:0',
    '192.0.2.1:65536',
    '192.0.2.256',
    '[192.0.2.1',
  ])
    t.equal(parseAddressAndPort(text, 53), undefined, text)
})

t.test('the version of an address is 4 or 6, of other text 0', async t => {
  t.equal(ipVersion('192.0.2.1'), 4)
  t.equal(ipVersion('2001:db8::1'), 6)
  t.equal(ipVersion('example.com'), 0)
})

t.test('loopback and unspecified addresses are this machine in every spelling', async t => {
  for (const address of [
    '127.0.0.1',
    '127.255.0.3',
    '0.0.0.0',
    '::1',
    '0:0:0:0:0:0:0:1',
    '::',
    '::ffff:7f00:1',
  ])
    t.ok(isLoopbackOrUnspecified(address), address)
  for (const address of ['192.0.2.1', '10.0.0.1', '2001:db8::1', '::ffff:192.0.2.1', 'localhost'])
    t.notOk(isLoopbackOrUnspecified(address), address)
})

t.test('two spellings of one address are the same', async t => {
  t.ok(isSameAddress('2001:db8::1', '2001:0DB8:0:0:0:0:0:1'))
  t.ok(isSameAddress('192.0.2.1', '192.0.2.1'))
  t.notOk(isSameAddress('192.0.2.1', '192.0.2.2'))
  t.notOk(isSameAddress('2001:db8::1', '2001:db8::2'))
})
