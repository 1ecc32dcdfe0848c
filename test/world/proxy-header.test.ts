/** PROXY protocol headers of both versions: whom they name, where they end, and what is refused. */
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { LOCAL_HEADER, readProxyHeader } from '../../src/world/net/proxy-header.js'
import { binaryHeader, headerOf, LOCAL } from '../support/proxy-headers.js'

const NEXT = Buffer.from('EHLO client.example\r\n')

const read = (octets: Buffer | string) => readProxyHeader(Buffer.from(octets as string, 'latin1'))
const line = (text: string) => read(`${text}\r\n`)
const faultOf = (octets: Buffer | string) => {
  const result = read(octets)
  return result.kind === 'fault' ? result.fault : result
}

/** A client, or why there is none. */
function clientOf(octets: Buffer | string) {
  const result = read(octets)
  return result.kind === 'header' ? result.client : result
}

t.test('version 2 names clients of IPv4 and IPv6', async t => {
  t.same(clientOf(headerOf('192.0.2.7', 40_000)), { address: '192.0.2.7', port: 40_000 })
  t.same(clientOf(headerOf('2001:db8:0:0:0:0:0:7', 65_535)), { address: '2001:db8::7', port: 65_535 })
})

t.test('an IPv4 address inside IPv6 is an IPv4 address', async t => {
  t.match(clientOf(headerOf('0:0:0:0:0:ffff:c000:0207', 1)), { address: '192.0.2.7' })
  t.match(clientOf('PROXY TCP6 ::ffff:192.0.2.7 ::1 1 2\r\n'), { address: '192.0.2.7' })
  t.match(clientOf('PROXY TCP6 ::FFFF:c000:207 ::1 1 2\r\n'), { address: '192.0.2.7' })
})

t.test('version 1 names clients of IPv4 and IPv6', async t => {
  t.same(clientOf('PROXY TCP4 192.0.2.7 198.51.100.1 40000 25\r\n'), { address: '192.0.2.7', port: 40_000 })
  t.same(clientOf('PROXY TCP6 2001:DB8:0::7 2001:db8::1 0 25\r\n'), { address: '2001:db8::7', port: 0 })
})

t.test('a header ends where it says, whatever follows', async t => {
  const extensions = Buffer.from('0400030000002000050100000000', 'hex')
  for (const header of [
    headerOf('192.0.2.7', 1),
    headerOf('2001:db8:0:0:0:0:0:7', 1, extensions),
    LOCAL,
    binaryHeader({ command: 0x20, kind: 0xff, extensions }),
    binaryHeader({ kind: 0, extensions }),
    Buffer.from('PROXY TCP4 192.0.2.7 198.51.100.1 40000 25\r\n'),
    Buffer.from('PROXY UNKNOWN\r\n'),
  ]) {
    t.match(readProxyHeader(Buffer.concat([header, NEXT])), { kind: 'header', length: header.length })
    for (let length = 0; length < header.length; length += 1)
      t.same(readProxyHeader(header.subarray(0, length)), { kind: 'incomplete' })
  }
})

t.test('who is not named keeps the address of the connection', async t => {
  t.same(clientOf(LOCAL), undefined, 'a health check')
  t.same(LOCAL_HEADER, LOCAL)
  t.same(clientOf(binaryHeader({ ...TCP4, command: 0x20 })), undefined, 'LOCAL with an address')
  t.same(clientOf(binaryHeader({ kind: 0 })), undefined, 'UNSPEC')
  t.same(clientOf(binaryHeader({ ...TCP4, kind: 0x10 })), undefined, 'an unspecified protocol')
  t.same(clientOf(binaryHeader({ ...TCP4, kind: 0x12 })), undefined, 'UDP')
  t.same(clientOf(binaryHeader({ kind: 0x31, block: Buffer.alloc(216) })), undefined, 'a Unix socket')
  t.same(clientOf('PROXY UNKNOWN ff::1 ::1 anything\r\n'), undefined)
})

const TCP4 = { block: Buffer.from('c0000207c63364019c400019', 'hex') }

t.test('anything else than a header is refused at its first octet that differs', async t => {
  for (const other of [
    'E',
    'EHLO client.example\r\n',
    'GET / HTTP/1.1\r\n',
    '\r\n\r\n\0\r\nQUIX',
    '\x16\x03\x01',
    'PROXY\t',
    'proxy TCP4',
  ])
    t.equal(faultOf(other), 'missing', JSON.stringify(other))
})

t.test(
  'version 2: unknown versions, commands and families, and short address blocks, are refused',
  async t => {
    for (const command of [0x11, 0x22, 0x2f, 0x31, 0x00])
      t.equal(faultOf(binaryHeader({ ...TCP4, command })), 'malformed', `command ${command.toString(16)}`)
    for (const kind of [0x41, 0xf1, 0x13, 0x1f])
      t.equal(faultOf(binaryHeader({ ...TCP4, kind })), 'malformed', `kind ${kind.toString(16)}`)
    t.equal(faultOf(binaryHeader({ block: Buffer.alloc(11) })), 'malformed')
    t.equal(faultOf(binaryHeader({ kind: 0x21, block: Buffer.alloc(35) })), 'malformed')
    t.equal(faultOf(binaryHeader({ kind: 0x31, block: Buffer.alloc(215) })), 'malformed')
  },
)

t.test('version 2: a header of more than 4 KB is refused before it has arrived', async t => {
  t.equal(faultOf(binaryHeader({ ...TCP4, length: 4_097 })), 'too-long')
  t.match(read(binaryHeader({ ...TCP4, extensions: Buffer.alloc(4_096 - 12) })), { kind: 'header' })
})

t.test('version 1: lines that do not match exactly are refused', async t => {
  for (const text of [
    'PROXY ',
    'PROXY TCP4',
    'PROXY TCP4 192.0.2.7 198.51.100.1 40000',
    'PROXY TCP4 192.0.2.7 198.51.100.1 40000 25 ',
    'PROXY TCP4 192.0.2.7  198.51.100.1 40000 25',
    'PROXY TCP4 192.0.2.300 198.51.100.1 40000 25',
    'PROXY TCP4 192.0.2.07 198.51.100.1 40000 25',
    'PROXY TCP4 2001:db8::7 198.51.100.1 40000 25',
    'PROXY TCP6 192.0.2.7 ::1 40000 25',
    'PROXY TCP6 fe80::1%eth0 ::1 40000 25',
    'PROXY TCP6 ::1 nowhere 40000 25',
    'PROXY TCP4 192.0.2.7 198.51.100.1 65536 25',
    'PROXY TCP4 192.0.2.7 198.51.100.1 1 99999',
    'PROXY TCP4 192.0.2.7 198.51.100.1 01 25',
    'PROXY TCP4 192.0.2.7 198.51.100.1 -1 25',
    'PROXY UDP4 192.0.2.7 198.51.100.1 1 25',
  ])
    t.same(line(text), { kind: 'fault', fault: 'malformed' }, text)
  t.equal(faultOf('PROXY TCP4 192.0.2.7 198.51.100.1 1 25\n'), 'malformed', 'a bare LF')
  t.match(read(`PROXY UNKNOWN ${'x'.repeat(91)}\r\n`), { kind: 'header', length: 107 })
  t.equal(faultOf(`PROXY UNKNOWN ${'x'.repeat(92)}\r\n`), 'too-long')
  t.same(read(`PROXY UNKNOWN ${'x'.repeat(92)}`), { kind: 'incomplete' })
})

t.test('random octets never throw, and a prefix never contradicts the whole', async t => {
  const next = numbers(20_260_105)
  const seeds = [headerOf('192.0.2.7', 1), headerOf('2001:db8:0:0:0:0:0:7', 1), LOCAL, LINE_4, LINE_6]
  let headers = 0
  for (let round = 0; round < 20_000; round += 1) {
    const octets = Buffer.concat([seeds[next(seeds.length)] ?? LOCAL, Buffer.alloc(next(40))])
    const changes = next(4)
    for (let change = 0; change < changes; change += 1) octets[next(octets.length)] = next(256)
    const whole = readProxyHeader(octets)
    if (whole.kind === 'header') headers += 1
    const part = readProxyHeader(octets.subarray(0, next(octets.length + 1)))
    if (part.kind !== 'incomplete' && !isDeepStrictEqual(part, whole))
      t.same(part, whole, octets.toString('hex'))
    if (whole.kind === 'header' && whole.length > octets.length) t.fail(octets.toString('hex'))
    const noise = Buffer.from(Array.from({ length: next(64) }, () => next(256)))
    readProxyHeader(noise)
  }
  t.ok(headers > 1_000, `${headers} headers`)
})

const LINE_4 = Buffer.from('PROXY TCP4 192.0.2.7 198.51.100.1 40000 25\r\n')
const LINE_6 = Buffer.from('PROXY TCP6 2001:db8::7 2001:db8::1 40000 25\r\n')

/** The same numbers in each run. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
