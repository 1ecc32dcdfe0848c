/** What `doctor` asks of the machine: of this one, and of one whose files are written here. */
import { createServer, type AddressInfo } from 'node:net'
import t from 'tap'
import { openMachine } from '../../src/world/machine.js'

const LISTENERS = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0019 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7001 1
   1: 190200C0:0019 0A0200C0:C350 01 00000000:00000000 00:00000000 00000000     0        0 7002 1
   2: 00000000:01BB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7003 1
`
const IPV6_LISTENERS = `  sl  local_address                         remote_address                        st
   0: 00000000000000000000000000000000:0019 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 7004 1
   1: B80D0120000000000000000025000000:0019 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 7005 1
`

t.test('a listener on a port is found with its address and program', async t => {
  const root = t.testdir({
    proc: {
      net: { tcp: LISTENERS, tcp6: IPV6_LISTENERS },
      123: { comm: 'master\n', fd: { 3: t.fixture('symlink', 'socket:[7001]') } },
      self: {},
    },
  })
  const machine = openMachine(root)
  t.same(await machine.portHolders(25), [
    { address: '127.0.0.1', process: { pid: 123, program: 'master' } },
    { address: '::' },
    { address: '2001:db8:0:0:0:0:0:25' },
  ])
  t.same(await machine.portHolders(587), [])
  t.equal(await openMachine(t.testdir({})).portHolders(25), undefined, 'there is no /proc')
})

t.test('of this machine, its own listeners are found', { skip: process.platform !== 'linux' }, async t => {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  t.match(await openMachine().portHolders(port), [{ address: '127.0.0.1', process: { pid: process.pid } }])
})

t.test('the address that the system sends from is found, and none without a route', async t => {
  const machine = openMachine()
  t.equal(await machine.sourceFor('127.0.0.1'), '127.0.0.1')
  t.equal(await machine.sourceFor('no address'), undefined)
})

t.test('accounts have their groups, and units their settings with those of drop-ins', async t => {
  const machine = openMachine(
    t.testdir({
      etc: {
        passwd: 'root:x:0:0::/root:/bin/sh\npostroad:x:990:991::/var/lib/postroad:/usr/sbin/nologin\n',
        group: 'root:x:0:\npostroad:x:991:\nssl-cert:x:110:www-data,postroad\n',
        systemd: {
          system: {
            'postroad.service.d': {
              'a.conf': '[Service]\nUser=mail\nReadWritePaths=/srv/a\n',
              'b.conf': '[Service]\nUser=postroad\nReadWritePaths=/srv/b\n[Install]\nUser=nobody\n',
            },
          },
        },
      },
      usr: {
        lib: {
          systemd: { system: { 'postroad.service': '[Unit]\nUser=x\n[Service]\nUser=y\nPrivateTmp=yes\n' } },
        },
      },
    }),
  )
  const postroad = { name: 'postroad', uid: 990, gid: 991, groups: [991, 110] }
  t.same(machine.account('postroad'), postroad)
  t.same(machine.account(990), postroad)
  t.equal(machine.account('nobody'), undefined)
  t.same(
    [...(machine.unitSettings('postroad.service') ?? [])],
    [
      ['User', 'postroad'],
      ['PrivateTmp', 'yes'],
      ['ReadWritePaths', '/srv/a /srv/b'],
    ],
  )
  t.equal(machine.unitSettings('other.service'), undefined)
})
