/** Certificates from an ACME server: ordered, proved at our own listener, kept, renewed, and what is done where that fails. */
import { X509Certificate } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { AcmeFiles } from '../../src/certificates/acme/acme-files.js'
import { Challenges, CHALLENGE_LABEL } from '../../src/certificates/acme/challenges.js'
import { Renewal } from '../../src/certificates/acme/renewal.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { openHttpClient } from '../../src/world/net/fetch.js'
import { listenHttp } from '../../src/world/net/listen.js'
import { systemClock } from '../../src/world/time/clock.js'
import { openTlsCertificate } from '../../src/world/tls/tls-certificate.js'
import { acmeServer, type AcmeServerOptions } from '../support/acme-server.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const NAMES = ['mail.example.com', 'links.example.com']
const stopping = new AbortController().signal

async function office(t: Test, challenge: 'http' | 'dns' = 'http', more: Partial<AcmeServerOptions> = {}) {
  const clock = new FakeClock(Date.parse('2026-03-01T00:00:00Z'))
  const log = new FakeLog()
  const challenges = new Challenges()
  const listener = await listenHttp(
    { host: '127.0.0.1', port: 0 },
    challenges.before({
      handle: async (_, response) => void response.writeHead(404).end('not ours'),
      answerFault: () => ({ status: 400, headers: {}, body: '' }),
    }),
    { connections: 100, connectionsPerAddress: 100 },
    systemClock,
  )
  t.teardown(() => listener.close(0))
  const isUp = { value: true }
  const httpPort = () => (isUp.value ? listener.address.port : 9)
  const lookUp = async () => (await challenges.zone.find(CHALLENGE_LABEL))?.values ?? []
  const ca = await acmeServer(t, { httpPort, lookUp, now: () => clock.now(), ...more })
  const dataDir = t.testdir()
  const files = new AcmeFiles(dataDir, ca.directory)
  // Waiting for the server takes no time of ours, but of the clock's.
  const quick = Object.assign(Object.create(clock) as FakeClock, { sleep: (ms: number) => clock.advance(ms) })
  const start = async () => {
    const certificate = await openTlsCertificate({ cert: '', key: '', hostname: NAMES[0] ?? '' }, clock)
    const renewal = new Renewal({
      clock: quick,
      random: new SeededRandom(),
      log,
      http: openHttpClient(systemClock),
      files,
      challenges,
      certificate,
      directory: ca.directory,
      challenge,
      contact: 'admin@example.com',
      names: NAMES,
    })
    await renewal.open()
    return { certificate, renewal, run: () => renewal.run(stopping) }
  }
  const orders = () => ca.asked.filter(one => one === 'POST new-order').length
  return { clock, log, ca, files, isUp, challenges, start, orders, httpPort, ...(await start()) }
}

t.test(
  'a first certificate is ordered for all names, proved, kept for its owner alone, and shown',
  async t => {
    const { certificate, run, ca, files, orders, log, challenges } = await office(t)
    t.equal(certificate.isSelfSigned, true)
    await run()
    t.equal(certificate.isSelfSigned, false)
    t.ok(NAMES.every(name => certificate.isFor(name)))
    t.match(ca.contacts, [['mailto:admin@example.com']])
    t.equal(ca.proofs.length, 2)
    t.match(ca.proofs, [/^http-01 mail\.example\.com \S+\.\S+$/, /^http-01 links\.example\.com /])
    t.match(log.lines, [{ event: 'certificate obtained', fields: { names: NAMES.join(', ') } }])
    for (const file of readdirSync(files.folder))
      t.equal(statSync(join(files.folder, file)).mode & 0o777, 0o600, file)
    t.equal(certificate.pair().cert.match(/BEGIN CERTIFICATE/g)?.length, 2, 'with its chain')
    t.notMatch(JSON.stringify(log.lines), /PRIVATE KEY/)
    await run()
    t.equal(orders(), 1, 'and no other')
    t.same(await challenges.zone.find(CHALLENGE_LABEL), { ttl: 0, values: [] })
  },
)

t.test('after a restart the kept one is shown at once, without a word to the CA', async t => {
  const { run, start, ca, orders, certificate } = await office(t)
  await run()
  const before = certificate.pair().cert
  const asked = ca.asked.length
  const again = await start()
  t.equal(again.certificate.pair().cert, before)
  t.equal(ca.asked.length, asked)
  await again.run()
  t.equal(orders(), 1)
})

t.test('it is renewed at two thirds of its lifetime, in the name of the same account', async t => {
  const { run, clock, orders, ca, certificate } = await office(t)
  await run()
  const first = certificate.pair().cert
  await clock.advance(59 * DAY)
  await run()
  t.equal(orders(), 1)
  await clock.advance(1 * DAY)
  await run()
  t.equal(orders(), 2)
  t.not(certificate.pair().cert, first)
  t.ok(certificate.expiresAt > clock.now() + 89 * DAY)
  t.equal(ca.contacts.length, 1, 'one account')
})

t.test('proofs stand in our own zone where that is the way', async t => {
  const { run, ca, certificate } = await office(t, 'dns', { httpPort: () => 9 })
  await run()
  t.equal(certificate.isSelfSigned, false)
  t.match(ca.proofs, [/^dns-01 mail\.example\.com [\w-]{43}$/, /^dns-01 links\.example\.com /])
})

t.test('nonces that are refused are exchanged; where all are it ends', async t => {
  const { run, ca, certificate, clock, log } = await office(t)
  ca.badNonces = 3
  await run()
  t.equal(certificate.isSelfSigned, false)
  ca.badNonces = 1_000
  await clock.advance(61 * DAY)
  await run()
  t.match(log.lines.at(-1), { event: 'certificate order failed', fields: { error: /badNonce/ } })
  t.ok(1_000 - ca.badNonces < 10)
})

t.test(
  'a proof that is not found fails with the words of the CA, and is tried a few times a day',
  async t => {
    const { run, start, isUp, log, clock, orders, certificate, files, challenges } = await office(t)
    isUp.value = false
    await run()
    t.match(log.lines.at(-1), {
      level: 'error',
      event: 'certificate order failed',
      fields: { error: /the challenge for mail\.example\.com failed: unauthorized: the proof found for/ },
    })
    t.equal(certificate.isSelfSigned, true)
    t.match(await files.readState(), { failures: 1, fault: /mail\.example\.com/ })
    t.same(await challenges.zone.find(CHALLENGE_LABEL), { ttl: 0, values: [] })
    const times: number[] = []
    for (let minutes = 5; minutes < 24 * 60; minutes += 5) {
      const before = orders()
      await clock.advance(5 * 60_000)
      // A restart does not make it more.
      await (minutes % 60 === 0 ? (await start()).run() : run())
      if (orders() > before) times.push(minutes)
    }
    t.equal(orders(), 5)
    t.ok(
      times.every((at, index) => at > (times[index - 1] ?? 0) * 2),
      String(times),
    )
    isUp.value = true
    await clock.advance(DAY)
    await run()
    t.equal(certificate.isSelfSigned, false)
    t.match(await files.readState(), { failures: 0, fault: null })
  },
)

t.test('an operator who has fixed something need not wait, as far as the day goes', async t => {
  const { run, renewal, isUp, orders } = await office(t)
  isUp.value = false
  for (let times = 0; times < 8; times++) {
    await run()
    await renewal.hasten()
  }
  t.equal(orders(), 5)
})

t.test('a CA that asks for patience gets it', async t => {
  const { run, ca, clock, orders, log } = await office(t)
  ca.refuseOrders = {
    type: 'rateLimited',
    detail: 'too many certificates already issued',
    retryAfter: '172800',
  }
  await run()
  t.match(log.lines.at(-1), {
    fields: { error: /rateLimited: too many certificates/, nextAttemptAt: '2026-03-03T00:00:00.000Z' },
  })
  ca.refuseOrders = undefined
  await clock.advance(2 * DAY - 1)
  await run()
  t.equal(orders(), 1)
  await clock.advance(1)
  await run()
  t.equal(orders(), 2)
})

t.test('while renewing fails the former one stays in use', async t => {
  const { run, ca, clock, certificate, log } = await office(t)
  await run()
  const first = certificate.pair().cert
  await clock.advance(70 * DAY)
  ca.certifies = ['other.example.com']
  await run()
  t.match(log.lines.at(-1), { fields: { error: /not for mail\.example\.com/ } })
  ca.certifies = undefined
  ca.speaksHtml = true
  await clock.advance(DAY)
  await run()
  t.match(log.lines.at(-1), { fields: { error: /is not an ACME server/ } })
  t.equal(certificate.pair().cert, first)
  ca.speaksHtml = false
  await clock.advance(DAY)
  await run()
  t.not(certificate.pair().cert, first)
})

t.test('an account that the CA has forgotten is made again, with the same key', async t => {
  const { run, ca, clock, certificate, files } = await office(t)
  await run()
  const key = readFileSync(join(files.folder, 'account-key.pem'), 'utf8')
  ca.forgetsAccounts = true
  await clock.advance(61 * DAY)
  await run()
  t.equal(ca.issued.length, 2)
  t.equal(ca.contacts.length, 2)
  t.equal(readFileSync(join(files.folder, 'account-key.pem'), 'utf8'), key)
  t.ok(certificate.expiresAt > clock.now() + 89 * DAY)
})

t.test('where the CA suggests an earlier time, it is renewed then, and says what it replaces', async t => {
  const { run, ca, clock, orders } = await office(t)
  ca.renewalWindow = { start: clock.now() + 80 * DAY, end: clock.now() + 82 * DAY }
  await run()
  const [first] = ca.issued
  await run()
  t.ok(ca.asked.includes('GET renewal-info'))
  const asked = ca.asked.length
  await clock.advance(5 * HOUR)
  await run()
  t.equal(ca.asked.length, asked, 'it is not asked again for hours')
  // As a CA does that has to revoke.
  ca.renewalWindow = { start: clock.now() - DAY, end: clock.now() - HOUR }
  await clock.advance(2 * HOUR)
  await run()
  t.equal(orders(), 2)
  const [authority, serial] = String(ca.issued[1]?.replaces).split('.')
  t.equal(authority?.length, 27, 'the key identifier of the CA')
  t.equal(
    Buffer.from(serial ?? '', 'base64url')
      .toString('hex')
      .toUpperCase(),
    new X509Certificate(first?.pem ?? '').serialNumber,
  )
})

t.test('files that were spoilt are no reason to fail', async t => {
  const { run, start, files, orders, log } = await office(t)
  await run()
  writeFileSync(join(files.folder, 'state.json'), '{"account": 7')
  writeFileSync(
    join(files.folder, 'certificate.pem'),
    '-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n',
  )
  const again = await start()
  t.match(log.lines.at(-1), { event: 'stored certificate rejected' })
  await again.run()
  t.equal(again.certificate.isSelfSigned, false)
  t.equal(orders(), 2)
})

t.test('only proofs are served below their path', async t => {
  const { httpPort } = await office(t)
  const base = `http://127.0.0.1:${httpPort()}`
  const status = async (path: string, method = 'GET') => (await fetch(base + path, { method })).status
  t.equal(await status('/.well-known/acme-challenge/'), 404)
  t.equal(await status('/.well-known/acme-challenge/../../etc/passwd'), 404)
  t.equal(await status('/.well-known/acme-challenge/__proto__'), 404)
  t.equal(await status('/.well-known/acme-challenge/x', 'POST'), 405)
})

t.test('an operator orders a new certificate before one is due, and each request orders one', async t => {
  const { run, renewal, orders } = await office(t)
  await run()
  t.equal(orders(), 1)
  await run()
  t.equal(orders(), 1, 'none is due')
  await renewal.want()
  await run()
  t.equal(orders(), 2)
  await run()
  t.equal(orders(), 2)
})
