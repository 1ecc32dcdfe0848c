/** The name server of the DKIM zone, asked over real sockets by somebody else's reader and writer of DNS. */
import { connect } from 'node:net'
import { once } from 'node:events'
import { encode } from 'dns-packet'
import t from 'tap'
import { openNameServer } from '../../src/nameserver/name-server.js'
import { listenDns } from '../../src/world/dns/listen-dns.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { ask, exchange, questionOf, valuesOf } from '../support/ask-name-server.js'

const ZONE = 'dkim.mail.example.com'
const RSA = `v=DKIM1; k=rsa; p=${'A'.repeat(392)}`
const clock = new FakeClock()
const names: Record<string, readonly string[]> = {
  pr1: [RSA],
  pre1: ['v=DKIM1; k=ed25519; p=11qYAYKxCrfVS'],
  empty: [],
  long: [RSA + RSA],
  many: Array.from({ length: 5 }, (_, index) => `${index}${RSA}`),
}
let isBroken = false
const handler = openNameServer({
  zone: ZONE,
  server: 'mail.example.com',
  clock,
  source: {
    find: async label => {
      if (isBroken) throw new Error('the database is away')
      const values = names[label]
      return values && { ttl: 3_600, values }
    },
  },
})
const listener = await listenDns({ host: '127.0.0.1', port: 0 }, handler, clock)
t.teardown(() => listener.close())
const { port } = listener.address

t.test('a key is found in one piece, whatever the case of the query', async t => {
  for (const transport of ['udp', 'tcp'] as const) {
    const name = 'pR1.dKiM.Mail.eXample.COM'
    const answer = await ask(port, { name, transport, payload: 1_232 })
    t.match(answer, {
      rcode: 'NOERROR',
      id: 4_711,
      flag_aa: true,
      flag_ra: false,
      flag_rd: true,
      flag_tc: false,
    })
    t.equal(answer.questions?.[0]?.name, name)
    t.match(answer.answers, [{ name, type: 'TXT', ttl: 3_600, class: 'IN' }])
    t.same(valuesOf(answer), [RSA])
    t.ok(answer.additionals?.some(one => one.type === 'OPT' && one.udpPayloadSize === 1_232))
  }
})

t.test('a client without EDNS gets 512 octets at most, and the rest over TCP', async t => {
  const small = await ask(port, { name: `pre1.${ZONE}` })
  t.match(small, { rcode: 'NOERROR', flag_tc: false, additionals: [] })
  const cut = await ask(port, { name: `long.${ZONE}` })
  t.match(cut, { flag_tc: true, answers: [], authorities: [] })
  t.ok(cut.octets <= 512)
  t.same(valuesOf(await ask(port, { name: `long.${ZONE}`, payload: 1_232 })), [RSA + RSA])
  t.same(valuesOf(await ask(port, { name: `long.${ZONE}`, transport: 'tcp' })), [RSA + RSA])
})

t.test('no answer over UDP is longer than 1232 octets, whatever the client takes', async t => {
  const cut = await ask(port, { name: `many.${ZONE}`, payload: 65_535 })
  t.match(cut, { flag_tc: true, answers: [] })
  t.equal(valuesOf(await ask(port, { name: `many.${ZONE}`, transport: 'tcp' })).length, 5)
})

t.test('unknown names and missing record types are distinguished', async t => {
  const noName = {
    rcode: 'NXDOMAIN',
    flag_aa: true,
    answers: [],
    authorities: [{ name: ZONE, type: 'SOA', ttl: 60 }],
  }
  t.match(await ask(port, { name: `none.${ZONE}` }), noName)
  t.match(await ask(port, { name: `below.pr1.${ZONE}` }), noName, 'nothing is below a name that ends')
  t.match(await ask(port, { name: `none.${ZONE}`, type: 'ANY' }), noName)
  const noRecord = { ...noName, rcode: 'NOERROR' }
  t.match(await ask(port, { name: `pr1.${ZONE}`, type: 'A' }), noRecord)
  t.match(await ask(port, { name: `pr1.${ZONE}`, type: 'MX' }), noRecord)
  t.match(await ask(port, { name: `empty.${ZONE}` }), noRecord)
  t.match(await ask(port, { name: ZONE, type: 'TXT' }), noRecord)
})

t.test('the top of the zone has its SOA and its name server', async t => {
  t.match(await ask(port, { name: ZONE, type: 'SOA' }), {
    flag_aa: true,
    answers: [
      { name: ZONE, data: { mname: 'mail.example.com', rname: 'postmaster.mail.example.com', minimum: 60 } },
    ],
  })
  t.match(await ask(port, { name: ZONE.toUpperCase(), type: 'NS' }), {
    answers: [{ name: ZONE.toUpperCase(), type: 'NS', data: 'mail.example.com' }],
  })
})

t.test('ANY is answered by one short record', async t => {
  for (const name of [ZONE, `pr1.${ZONE}`, `empty.${ZONE}`])
    t.match(await ask(port, { name, type: 'ANY' }), {
      answers: [{ type: 'HINFO', data: { cpu: 'RFC8482' } }],
    })
})

t.test('queries outside the zone are refused and reveal nothing', async t => {
  const refused = { rcode: 'REFUSED', flag_aa: false, answers: [], authorities: [] }
  t.match(await ask(port, { name: 'example.com', type: 'A' }), refused)
  t.match(await ask(port, { name: 'mail.example.com', type: 'A' }), refused)
  t.match(await ask(port, { name: `x${ZONE}` }), refused)
  t.match(await ask(port, { name: '.', type: 'NS' }), refused)
  t.match(await ask(port, { name: 'version.bind', class: 'CH' }), refused)
  t.match(await ask(port, { name: ZONE, type: 'AXFR', transport: 'tcp' }), refused)
})

t.test('a future EDNS version, another opcode and several questions get the proper error codes', async t => {
  t.match(await ask(port, { name: `pr1.${ZONE}`, payload: 1_232, ednsVersion: 1 }), {
    answers: [],
    additionals: [{ type: 'OPT', extendedRcode: 1 }],
  })
  const question = encode(questionOf({ name: `pr1.${ZONE}` }))
  const notify = Buffer.from(question)
  notify.writeUInt16BE(0x2000, 2)
  t.equal((await exchange(port, notify, 'udp')).readUInt16BE(2) & 0x780f, 0x2004)
  const two = Buffer.from(question)
  two.writeUInt16BE(2, 4)
  t.equal((await exchange(port, two, 'udp')).readUInt16BE(2) & 0xf, 1)
})

t.test('if the database fails, the client gets SERVFAIL', async t => {
  isBroken = true
  t.match(await ask(port, { name: `pr1.${ZONE}` }), { rcode: 'SERVFAIL', answers: [] })
  isBroken = false
})

t.test('several questions on one connection are answered in turn; one that is idle is closed', async t => {
  const socket = connect(port, '127.0.0.1')
  const message = encode(questionOf({ name: `pre1.${ZONE}` }))
  const framed = Buffer.concat([Buffer.from([0, message.length]), message])
  socket.write(Buffer.concat([framed, framed, framed.subarray(0, 9)]))
  let received = Buffer.alloc(0)
  const messages = () => {
    let count = 0
    for (let at = 0; at + 2 <= received.length; at += 2 + received.readUInt16BE(at)) count += 1
    return count
  }
  while (messages() < 2) received = Buffer.concat([received, ...((await once(socket, 'data')) as [Buffer])])
  const closed = once(socket, 'close')
  socket.resume()
  await clock.advance(10_000)
  await closed
  t.equal(messages(), 2)
})

t.test('a network that asks too often is sent to TCP or not answered at all, others are', async t => {
  const flood = new FakeClock()
  const guarded = openNameServer({
    zone: ZONE,
    server: 'mail.example.com',
    clock: flood,
    source: { find: async () => undefined },
  })
  const message = encode(questionOf({ name: `x.${ZONE}` }))
  const from = (address: string, transport: 'udp' | 'tcp' = 'udp') =>
    guarded.answer(message, { address, transport })
  for (let count = 0; count < 200; count++) await from(`192.0.2.${count}`)
  const more = await Promise.all(Array.from({ length: 10 }, () => from('192.0.2.77')))
  t.equal(more.filter(answer => answer === undefined).length, 5)
  t.ok(more.every(answer => answer === undefined || (answer.readUInt16BE(2) & 0x0200) !== 0))
  t.ok(((await from('192.0.3.1'))?.readUInt16BE(2) ?? 0x200) & 3, 'the network beside it is answered')
  t.ok(await from('192.0.2.77', 'tcp'))
  await flood.advance(1_000)
  const later = await from('192.0.2.77')
  t.equal((later?.readUInt16BE(2) ?? 0x0200) & 0x0200, 0, 'a second later it is answered again')
})

t.test('no octets make it fail, and none make it say more than it was asked', async t => {
  const random = new SeededRandom(7)
  const question = encode(questionOf({ name: `pr1.${ZONE}`, payload: 1_232 }))
  const sender = { address: '192.0.2.1', transport: 'tcp' } as const
  let answers = 0
  for (let round = 0; round < 20_000; round++) {
    const message = Buffer.from(question.subarray(0, Math.floor(random.fraction() * (question.length + 1))))
    const whole = round % 2 === 0 ? Buffer.concat([message, question.subarray(message.length)]) : message
    for (let changes = Math.floor(random.fraction() * 6); changes > 0 && whole.length > 0; changes--)
      whole[Math.floor(random.fraction() * whole.length)] = Math.floor(random.fraction() * 256)
    const answer = await handler.answer(whole, sender)
    if (!answer) continue
    answers += 1
    if (answer.length > 700 || answer.readUInt16BE(0) !== whole.readUInt16BE(0) || (answer[2] ?? 0) < 0x80)
      t.fail(`${whole.toString('hex')} -> ${answer.toString('hex')}`)
  }
  t.ok(answers > 5_000)
})

t.test('0.0.0.0 and [::] of one port both answer', async t => {
  const ipv4 = await listenDns({ host: '0.0.0.0', port: 0 }, handler, clock)
  t.teardown(() => ipv4.close())
  const ipv6 = await listenDns({ host: '::', port: ipv4.address.port, isIpv6Only: true }, handler, clock)
  t.teardown(() => ipv6.close())
  t.same(valuesOf(await ask(ipv4.address.port, { name: `pr1.${ZONE}`, payload: 1_232 })), [RSA])
})
