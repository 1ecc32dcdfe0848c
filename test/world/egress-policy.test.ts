/** Which addresses are public, and that nothing else is dialled because a stranger says so. */
import { createServer, type AddressInfo } from 'node:net'
import t from 'tap'
import { addressKind, type AddressKind } from '../../src/world/net/address-kind.js'
import { systemClock } from '../../src/world/time/clock.js'
import { openDialler } from '../../src/world/net/dial.js'
import { egressPolicyFor } from '../../src/world/net/egress-policy.js'

const kinds: Readonly<Record<AddressKind, readonly string[]>> = {
  public: [
    '1.1.1.1',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.0.9',
    '192.167.255.255',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
    '2606:4700::1111',
    '2a00:1450:4001::1a',
    '::ffff:1.1.1.1',
    '64:ff9b::101:101',
    '64:ff9b::1.1.1.1',
    '2002:101:101::1',
    '2001:0:4136:e378:8000:63bf:fefe:fefe',
    '2001:3::1',
  ],
  loopback: [
    '127.0.0.1',
    '127.255.255.255',
    '0.0.0.0',
    '0.1.2.3',
    '::',
    '::1',
    '0:0:0:0:0:0:0:1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:0:127.0.0.1',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
    '2001::80ff:fffe',
  ],
  private: [
    '10.0.0.0',
    '10.255.255.255',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.0.1',
    'fc00::1',
    'fd00:ec2::254',
    'fdff::',
    'fec0::1',
    '::ffff:10.0.0.1',
    '64:ff9b::a00:1',
    '64:ff9b:1::1',
    '2002:c0a8:101::1',
  ],
  'link-local': ['169.254.0.1', '169.254.169.254', 'fe80::1', 'fe80::1%eth0', 'febf::1', '::ffff:a9fe:a9fe'],
  'carrier NAT': ['100.64.0.0', '100.100.100.200', '100.127.255.255', '2002:6440:1::'],
  'cloud metadata': ['168.63.129.16', '192.0.0.192', '::ffff:168.63.129.16'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
  reserved: [
    '192.0.0.1',
    '192.88.99.1',
    '198.18.0.1',
    '198.19.255.255',
    '240.0.0.1',
    '255.255.255.255',
    '::10.0.0.1',
    '::1.1.1.1',
    '100::1',
    '2001:2::1',
    '2001:10::1',
    '2001:20::1',
    '4000::1',
    '5f00::1',
  ],
  invalid: ['', 'localhost', '127.1', '0x7f.0.0.1', '1.1.1.1 ', '1.1.1.256', '[::1]', '::1::', '2130706433'],
}

for (const [kind, addresses] of Object.entries(kinds))
  t.test(`addresses are found to be ${kind} in every spelling`, async t => {
    for (const address of addresses) t.equal(addressKind(address), kind, address || 'nothing')
  })

t.test('clients reach the public Internet only, the operator any host', async t => {
  const taken: string[] = []
  const server = createServer(socket => {
    taken.push(String(socket.remoteAddress))
    socket.destroy()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const target = { address: '127.0.0.1', port: (server.address() as AddressInfo).port, timeoutMs: 5_000 }
  const dialler = openDialler(systemClock)
  await t.rejects(dialler.connect(target), {
    code: 'EADDRNOTPUBLIC',
    message: 'the address is not allowed: it is not public',
    detail: 'the address 127.0.0.1 is not public (loopback)',
  })
  t.same(taken, [], 'nothing was dialled')
  for (const connected of [
    await dialler.connect({ ...target, namedBy: 'operator' }),
    await openDialler(systemClock, egressPolicyFor({ allowPrivate: true })).connect(target),
  ])
    connected.destroy()
  await t.rejects(
    openDialler(systemClock, egressPolicyFor({ allowPrivate: true })).connect({
      ...target,
      address: '224.0.0.1',
    }),
    {
      code: 'EADDRNOTPUBLIC',
    },
  )
})
