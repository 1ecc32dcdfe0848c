/** Requests to URLs of strangers: every notation, rebinding, redirects, ports, credentials, and connections that are kept. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import t, { type Test } from 'tap'
import { openHostLookup } from '../../src/world/dns/host-lookup.js'
import { fakeDns } from '../../src/world/dns/fake-dns.js'
import { openHttpClient, type HttpRequest } from '../../src/world/net/fetch.js'
import {
  findEgressFault,
  findTargetFault,
  egressPolicyAllowing,
  PUBLIC_ONLY,
} from '../../src/world/net/egress-policy.js'
import { systemClock } from '../../src/world/time/clock.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { until } from '../support/until.js'

async function serve(t: Test, listener: RequestListener) {
  const sockets = new Set<Socket>()
  const server = createServer(listener)
  server.on('connection', socket => sockets.add(socket))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, sockets, server }
}

function post(url: string): HttpRequest {
  return { method: 'POST', url, body: '{}', timeoutMs: 5_000, maxBytes: 100 }
}

const LOCAL = egressPolicyAllowing(['127.0.0.0/8'])

t.test('the operator’s list opens networks, and nothing else does', async t => {
  const egress = egressPolicyAllowing(['10.1.0.0/16', '127.0.0.1/32', 'fd00::/8', '224.0.0.0/4'])
  for (const address of ['10.1.2.3', '127.0.0.1', '::ffff:10.1.2.3', 'fd00::1', '1.1.1.1', '2606:4700::1111'])
    t.equal(egress.refusal(address), undefined, address)
  for (const address of [
    ...[
      '10.2.0.1',
      '127.0.0.2',
      '::1',
      '169.254.169.254',
      '100.64.0.1',
      '168.63.129.16',
      'fc00::1',
      '0.0.0.0',
    ],
    // It carries an address of the list; where it leads is another network's matter.
    ...['64:ff9b::a01:203', '2002:a01:203::1', '64:ff9b:1::a01:203', '::10.1.2.3', '224.0.0.1', 'nonsense'],
  ])
    t.ok(egress.refusal(address), address)
})

const NOTATIONS = [
  ...[
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0x7f.0.0.1',
    '0177.0.0.1',
    '017700000001',
    '127.0.0.1.',
  ],
  ...[
    '①②⑦.⓪.⓪.①',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:0:0:1]',
    '[::]',
    '0',
    '0.0.0.0',
  ],
  ...[
    '[64:ff9b::127.0.0.1]',
    '[2002:7f00:1::]',
    '[2001::80ff:fffe]',
    '[::127.0.0.1]',
    'localhost',
    'LOCALHOST',
  ],
  ...['localhost.', 'a.localhost', '169.254.169.254', '[fe80::1]', '[fd00:ec2::254]', '100.100.100.200'],
  ...['192.168.0.1', '10.0.0.1', '3232235521'],
]

t.test('a non-public address is refused in every notation', async t => {
  const { port, sockets } = await serve(t, (_request, response) => response.end('secret'))
  const client = openHttpClient(systemClock, {
    lookUp: openHostLookup(fakeDns({}), async () => found('10.0.0.1')),
  })
  for (const host of NOTATIONS) {
    const url = `http://${host}:${port}/`
    t.match(findEgressFault(url, PUBLIC_ONLY), /points to an address that is not public/, url)
    await t.rejects(client.request(post(url)), { code: 'EADDRNOTPUBLIC' }, url)
  }
  await t.rejects(client.request(post(`http://named-by-the-system:${port}/`)), { code: 'EADDRNOTPUBLIC' })
  t.equal(sockets.size, 0, 'nothing was dialled')
})

t.test('a name is checked at every lookup, so DNS rebinding fails', async t => {
  const { port, sockets } = await serve(t, (_request, response) => response.end('secret'))
  let asked = 0
  const answers = [['127.0.0.1'], ['127.0.0.2', '10.0.0.1'], ['10.0.0.1']]
  const lookUp = async () => answers[asked++] ?? []
  // Stands for the public address: nothing public is there to be called.
  const client = openHttpClient(systemClock, { egress: egressPolicyAllowing(['127.0.0.1/32']), lookUp })
  const url = `http://rebinding.example:${port}/`
  t.equal((await client.request(post(url))).body.toString(), 'secret')
  await t.rejects(client.request(post(url)), {
    code: 'EADDRNOTPUBLIC',
    message: /^[^0-9]*$/,
    detail: /127\.0\.0\.2|10\.0\.0\.1/,
  })
  await t.rejects(client.request(post(url)), { code: 'EADDRNOTPUBLIC' })
  t.equal(sockets.size, 1)
  t.equal(asked, 3, 'what was looked up is what is called: once for each connection')
})

t.test('of several addresses only allowed ones are dialled', async t => {
  const { port } = await serve(t, (request, response) => response.end(request.socket.localAddress))
  const lookUp = async () => ['10.255.255.1', '127.0.0.1']
  const client = openHttpClient(systemClock, { egress: egressPolicyAllowing(['127.0.0.1/32']), lookUp })
  t.equal((await client.request(post(`http://both.example:${port}/`))).body.toString(), '127.0.0.1')
})

t.test('a redirect to a private address is an answer, and is not followed', async t => {
  const paths: string[] = []
  const { port } = await serve(t, (request, response) => {
    paths.push(request.url ?? '')
    response.writeHead(307, { Location: `http://127.0.0.1:${port}/inside` }).end()
  })
  const client = openHttpClient(systemClock, { egress: LOCAL, keepsConnections: true })
  t.teardown(() => client.close())
  t.match(await client.request(post(`http://127.0.0.1:${port}/`)), { status: 307 })
  t.same(paths, ['/'])
})

t.test('credentials, other schemes and ports of other protocols are refused', async t => {
  const client = openHttpClient(systemClock, { egress: LOCAL })
  for (const [url, fault] of [
    ['http://user@hooks.example/', /user name or password/],
    ['http://:secret@hooks.example/', /user name or password/],
    ['http://hooks.example:25/', /port 25, which belongs to another protocol/],
    ['https://hooks.example:22/', /belongs to another protocol/],
    ['http://hooks.example:0/', /belongs to another protocol/],
  ] as const) {
    t.match(findTargetFault(url), fault, url)
    await t.rejects(client.request(post(url)), { code: 'EURLREFUSED' }, url)
  }
  for (const url of [
    'ftp://hooks.example/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'hooks.example',
    '',
    '//x',
  ])
    t.ok(findTargetFault(url), url)
  for (const url of ['http://hooks.example', 'https://hooks.example:8443/a?b#c', 'http://hooks.example:80/'])
    t.equal(findTargetFault(url), undefined, url)
})

t.test('a connection is used again, within bounds of idleness and age', async t => {
  const { port, sockets } = await serve(t, (_request, response) => response.end('x'))
  const clock = new FakeClock()
  const client = openHttpClient(clock, { egress: LOCAL, keepsConnections: true })
  t.teardown(() => client.close())
  const ask = () => client.request(post(`http://127.0.0.1:${port}/`))
  for (let count = 0; count < 5; count += 1) await ask()
  const young = [...sockets]
  t.ok(young.length <= 2)
  await clock.advance(61_000)
  await ask()
  await ask()
  t.ok(sockets.size > young.length && sockets.size <= young.length + 2, 'a minute old')
  await Promise.all(Array.from({ length: 100 }, ask))
  const open = () => [...sockets].filter(socket => !socket.destroyed).length
  await until('few of one host lie idle', () => open() <= 64)
  // The operator's own call comes upon none of these.
  const before = sockets.size
  await client.request({ ...post(`http://127.0.0.1:${port}/`), namedBy: 'operator' })
  t.equal(sockets.size, before + 1)
})

t.test('a pooled connection closed by the server is replaced without an error', async t => {
  const { port, sockets } = await serve(t, (_request, response) => response.end('x'))
  const client = openHttpClient(systemClock, { egress: LOCAL, keepsConnections: true })
  t.teardown(() => client.close())
  const ask = () => client.request(post(`http://127.0.0.1:${port}/`))
  await ask()
  for (const socket of sockets) socket.resetAndDestroy()
  t.match(await ask(), { status: 200 })
})

t.test('names are looked up in DNS, then by the system; what DNS cannot tell is no address', async t => {
  const lookUp = openHostLookup(
    fakeDns({
      'both.example': { A: ['192.0.2.1'], AAAA: ['2001:db8::1'] },
      'down.example': 'servfail',
    }),
    async name => (name === 'printer' || name === 'lan.example' ? found('10.0.0.9') : missing),
  )
  t.same(await lookUp('both.example'), ['192.0.2.1', '2001:db8::1'])
  t.same(await lookUp('printer'), ['10.0.0.9'])
  t.same(await lookUp('lan.example'), ['10.0.0.9'])
  t.same(await lookUp('localhost'), ['127.0.0.1', '::1'])
  await t.rejects(lookUp('gone.example'), { code: 'ENOTFOUND' })
  await t.rejects(lookUp('down.example'), { code: 'EAI_AGAIN' })
})

const missing = { kind: 'missing', why: 'nxdomain', ttlSeconds: 0 } as const

function found(address: string) {
  return { kind: 'found', records: [address], ttlSeconds: 0 } as const
}
