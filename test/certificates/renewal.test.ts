/** Certificates from an ACME server: ordered, proved at our own listener, kept, renewed, and what is done where that fails. */
import { X509Certificate } from 'node:crypto'
import t, { type Test } from 'tap'
import { plainBox, secretBox } from '../../src/accounts/secret-box.js'
import {
  changeAcmeState,
  readAccountKey,
  readAcmeState,
  readCertificate,
  writeCertificate,
} from '../../src/certificates/acme/acme-store.js'
import { followStored } from '../../src/certificates/acme/follow-stored.js'
import { Challenges, CHALLENGE_LABEL } from '../../src/certificates/acme/challenges.js'
import { Renewal } from '../../src/certificates/acme/renewal.js'
import type { Database } from '../../src/db/database.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { openHttpClient } from '../../src/world/net/fetch.js'
import { listenHttp } from '../../src/world/net/listen.js'
import { systemClock } from '../../src/world/time/clock.js'
import { openTlsCertificate } from '../../src/world/tls/tls-certificate.js'
import { acmeServer, type AcmeServerOptions } from '../support/acme-server.js'
import { eachDatabase, sqliteDatabase } from '../support/db/database.js'
import { until } from '../support/until.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const NAMES = ['mail.example.com', 'links.example.com']

/** What a node answers at its HTTP listener. @returns its port */
async function listenFor(t: Test, challenges: Challenges): Promise<number> {
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
  return listener.address.port
}

interface Office extends AcmeServerOptions {
  readonly challenge: 'http' | 'dns'
  readonly database: Database
}

async function office(t: Test, { challenge = 'http', ...more }: Partial<Office> = {}) {
  const clock = new FakeClock(Date.parse('2026-03-01T00:00:00Z'))
  const log = new FakeLog()
  const database = more.database ?? (await sqliteDatabase(t))
  const challenges = new Challenges(database, clock)
  const port = await listenFor(t, challenges)
  const isUp = { value: true }
  const httpPort = () => (isUp.value ? port : 9)
  const lookUp = async () => (await challenges.zone.find(CHALLENGE_LABEL))?.values ?? []
  const ca = await acmeServer(t, { httpPort, lookUp, now: () => clock.now(), ...more })
  const names = { value: NAMES }
  const stopping = new AbortController()
  // Waiting for the server takes no time of ours, but of the clock's.
  const quick = Object.assign(Object.create(clock) as FakeClock, { sleep: (ms: number) => clock.advance(ms) })
  /** Another run of the server, or another node. */
  const start = async (seal = plainBox) => {
    const certificate = await openTlsCertificate({ cert: '', key: '', hostname: NAMES[0] ?? '' }, clock)
    const renewal = new Renewal({
      clock: quick,
      random: new SeededRandom(),
      log,
      http: openHttpClient(systemClock),
      database,
      seal,
      challenges: new Challenges(database, clock),
      certificate,
      directory: ca.directory,
      challenge,
      contact: 'admin@example.com',
      names: () => names.value,
      ownNames: NAMES,
    })
    await renewal.load()
    return { certificate, renewal, run: () => renewal.run(stopping.signal) }
  }
  const orders = () => ca.asked.filter(one => one === 'POST new-order').length
  const state = () => readAcmeState(database.reader, ca.directory)
  return {
    ...{ clock, log, ca, database, state, isUp, names, stopping, challenges, start, orders, httpPort },
    ...(await start()),
  }
}

t.test('a first certificate is ordered for all names, proved, stored, and shown', async t => {
  const { certificate, run, ca, database, orders, log, challenges } = await office(t)
  t.equal(certificate.isSelfSigned, true)
  await run()
  t.equal(certificate.isSelfSigned, false)
  t.ok(NAMES.every(name => certificate.isFor(name)))
  t.match(ca.contacts, [['mailto:admin@example.com']])
  t.equal(ca.proofs.length, 2)
  t.match(ca.proofs, [/^http-01 mail\.example\.com \S+\.\S+$/, /^http-01 links\.example\.com /])
  t.match(log.lines, [{ event: 'certificate obtained', fields: { names: NAMES.join(', ') } }])
  t.same(await readCertificate(database.reader, ca.directory, plainBox), certificate.pair())
  t.equal(certificate.pair().cert.match(/BEGIN CERTIFICATE/g)?.length, 2, 'with its chain')
  t.notMatch(JSON.stringify(log.lines), /PRIVATE KEY/)
  await run()
  t.equal(orders(), 1, 'and no other')
  t.same(await challenges.zone.find(CHALLENGE_LABEL), { ttl: 0, values: [] })
})

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
  const { run, ca, certificate } = await office(t, { challenge: 'dns', httpPort: () => 9 })
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
    const { run, start, isUp, log, clock, orders, certificate, state, challenges } = await office(t)
    isUp.value = false
    await run()
    t.match(log.lines.at(-1), {
      level: 'error',
      event: 'certificate order failed',
      fields: { error: /the challenge for mail\.example\.com failed: unauthorized: the proof found for/ },
    })
    t.equal(certificate.isSelfSigned, true)
    t.match(await state(), { failures: 1, fault: /mail\.example\.com/ })
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
    t.match(await state(), { failures: 0, fault: null })
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
  const { run, ca, clock, certificate, database } = await office(t)
  await run()
  const keyOf = () => readAccountKey(database.reader, ca.directory, plainBox)
  const key = await keyOf()
  t.match(key, /BEGIN PRIVATE KEY/)
  ca.forgetsAccounts = true
  await clock.advance(61 * DAY)
  await run()
  t.equal(ca.issued.length, 2)
  t.equal(ca.contacts.length, 2)
  t.equal(await keyOf(), key)
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

t.test('a stored certificate that cannot be used is no reason to fail', async t => {
  const { run, start, ca, database, orders, log } = await office(t)
  await run()
  const key = '-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n'
  await database.write(async tx => {
    await writeCertificate(tx.db, ca.directory, { cert: 'x', key }, 0, plainBox)
    await tx.db.updateTable('acme_accounts').set({ attempts: '{', suggested: '[]' }).execute()
  })
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

eachDatabase(
  t,
  'a challenge is answered by another node than the one that ordered, which then shows the certificate',
  async (t, database) => {
    for (const challenge of ['http', 'dns'] as const) {
      const others = new Challenges(database, { now: () => Date.parse('2026-03-01T00:00:00Z') })
      const port = await listenFor(t, others)
      const { run, start, ca, certificate, clock, log } = await office(t, {
        challenge,
        database,
        httpPort: () => port,
        lookUp: async () => (await others.zone.find(CHALLENGE_LABEL))?.values ?? [],
      })
      const other = await start()
      const stop = followStored({ ...other, clock, log, database })
      t.teardown(stop)
      await clock.advance(1_000)
      t.equal(other.certificate.isSelfSigned, true)
      await run()
      t.equal(certificate.isSelfSigned, false)
      await until('the other node to load it', async () => {
        await clock.advance(1_000)
        return log.lines.some(({ event }) => event === 'certificate reloaded')
      })
      t.same(other.certificate.pair(), certificate.pair())
      t.same(await database.reader.selectFrom('acme_challenges').selectAll().execute(), [])
      await other.run()
      t.equal(ca.issued.length, 1, 'it is not ordered again by whoever runs the jobs next')
    }
  },
)

t.test('a challenge is not answered with what was read before it was stored', async t => {
  const { challenges, httpPort } = await office(t)
  const path = (token: string) => `http://127.0.0.1:${httpPort()}/.well-known/acme-challenge/${token}`
  const ask = async (token: string) => (await fetch(path(token))).text()
  for (let number = 0; number < 10; number += 1) {
    const token = `token-of-sixteen-${number}`
    const before = [ask(token), ask(token)]
    await challenges.show({ token, kind: 'http', content: `proof ${number}` })
    t.equal(await ask(token), `proof ${number}`)
    await Promise.all(before)
    await challenges.withdraw([token])
    t.match(await ask(token), /no such challenge/)
  }
})

t.test('what an interrupted order left is neither served after an hour nor kept', async t => {
  const { challenges, clock, database } = await office(t)
  await challenges.show({ token: 'a-token-left-behind', kind: 'dns', content: 'old' })
  t.same((await challenges.zone.find(CHALLENGE_LABEL))?.values, ['old'])
  await clock.advance(HOUR + 1)
  t.same((await challenges.zone.find(CHALLENGE_LABEL))?.values, [])
  await challenges.show({ token: 'another-token-later', kind: 'dns', content: 'new' })
  t.match(await database.reader.selectFrom('acme_challenges').select('content').execute(), [
    { content: 'new' },
  ])
})

t.test('keys are sealed, and a seal with another key is no certificate', async t => {
  const { start, database, log } = await office(t)
  const box = secretBox(Buffer.alloc(32, 1), new SeededRandom())
  const { run } = await start(box)
  await run()
  const rows = [
    await database.reader.selectFrom('acme_accounts').selectAll().execute(),
    await database.reader.selectFrom('acme_certificates').selectAll().execute(),
  ]
  t.notMatch(JSON.stringify(rows), /PRIVATE KEY/)
  t.equal((await start(box)).certificate.isSelfSigned, false)
  const other = await start(secretBox(Buffer.alloc(32, 2), new SeededRandom()))
  t.equal(other.certificate.isSelfSigned, true)
  t.match(log.lines.at(-1), { event: 'stored certificate rejected', fields: { error: /secrets\.key/ } })
})

t.test('a certificate that could not be stored is used, and stored by the next run', async t => {
  const { run, start, certificate, database, log, orders } = await office(t)
  const write = database.write.bind(database)
  let isFull = false
  Object.assign(database, {
    write: (work: Parameters<Database['write']>[0]) =>
      write(async tx => {
        const result = await work(tx)
        const stored = await tx.db.selectFrom('acme_certificates').select('version').execute()
        if (isFull && stored.length > 0) throw new Error('the disk is full')
        return result
      }),
  })
  isFull = true
  await run()
  t.equal(certificate.isSelfSigned, false)
  t.ok(log.lines.some(({ event }) => event === 'certificate not stored'))
  t.equal((await start()).certificate.isSelfSigned, true)
  isFull = false
  await run()
  t.equal(orders(), 1)
  t.same((await start()).certificate.pair(), certificate.pair())
})

t.test('a node that stops during an order leaves it to the next, which need not wait', async t => {
  const { start, stopping, isUp, orders, state, run, ca } = await office(t)
  ca.delays = 1_000
  const other = await start()
  isUp.value = true
  const running = run()
  stopping.abort()
  await running
  t.match(await state(), { failures: 0, fault: null, nextAttemptAt: 0, isWanted: false })
  t.equal((await state()).attempts.length, 1, 'the attempt counts')
  ca.delays = 1
  await other.renewal.run(new AbortController().signal)
  t.equal(orders(), 2)
  t.equal(other.certificate.isSelfSigned, false)
})

t.test('an operator asks any node for a certificate, and the one that runs the jobs orders it', async t => {
  const { run, start, orders } = await office(t)
  await run()
  const other = await start()
  await other.renewal.want()
  await run()
  await run()
  t.equal(orders(), 2)
})

t.test('when a node joins, a certificate with its name is ordered', async t => {
  const { run, names, certificate, orders } = await office(t)
  await run()
  names.value = [...NAMES, 'mx2.example.com']
  await run()
  t.equal(certificate.isFor('mx2.example.com'), true)
  names.value = NAMES
  await run()
  t.equal(orders(), 2, 'one that leaves is no reason for another')
})

t.test('two nodes that both believe to run the jobs make no more attempts than one', async t => {
  const { run, start, isUp, orders, database, ca } = await office(t)
  isUp.value = false
  const other = await start()
  await run()
  await other.run()
  t.equal(orders(), 1)
  await database.write(tx => changeAcmeState(tx.db, ca.directory, { nextAttemptAt: 0 }))
  await other.run()
  await run()
  t.equal(orders(), 2)
})

t.test('a node whose name cannot be validated does not keep the others without a certificate', async t => {
  const { run, names, certificate, clock, ca, log } = await office(t, { unreachable: ['mx9.example.com'] })
  names.value = [...NAMES, 'mx9.example.com']
  await run()
  t.match(log.lines.at(-1), { event: 'certificate order failed', fields: { error: /mx9\.example\.com/ } })
  await clock.advance(30 * 60_000)
  await run()
  t.equal(certificate.isSelfSigned, true, 'it may be temporary')
  await clock.advance(2 * HOUR)
  await run()
  t.equal(certificate.isSelfSigned, false)
  t.same(ca.issued[0]?.names, NAMES)
  for (let hours = 0; hours < 24 * 59; hours += 4) {
    await clock.advance(4 * HOUR)
    await run()
  }
  t.equal(ca.issued.length, 1, 'one that is not old is not replaced by its like')
  const first = certificate.pair().cert
  for (let hours = 0; hours < 3 * 24; hours += 4) {
    await clock.advance(4 * HOUR)
    await run()
  }
  t.same(ca.issued[1]?.names, NAMES)
  t.not(certificate.pair().cert, first, 'it is renewed in time')
})
