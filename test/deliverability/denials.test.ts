/** Domains that DNS says do not exist: when to believe it, on both databases. */
import t from 'tap'
import { uuidv7 } from '../../src/core/ids.js'
import type { Database } from '../../src/db/database.js'
import { followSuppressions } from '../../src/audience/contacts/follow-suppressions.js'
import { bounceConsumer } from '../../src/deliverability/bounces/bounce-consumer.js'
import { deleteDenialsBefore } from '../../src/deliverability/bounces/domain-denial-store.js'
import { confirmDenials } from '../../src/deliverability/bounces/confirm-denials.js'
import { listSuppressions } from '../../src/deliverability/suppressions/suppression-store.js'
import type { EmailBounced } from '../../src/events/event.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { fakeDns, type FakeZone } from '../../src/world/dns/fake-dns.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { eachDatabase } from '../support/db/database.js'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

function open(database: Database) {
  const clock = new FakeClock()
  const zone: FakeZone = {}
  let ids = 0
  const newId = () => uuidv7(clock.now(), Buffer.alloc(10, ++ids))
  const consumer = bounceConsumer(followSuppressions())
  const stopping = new AbortController()
  const parts = {
    database,
    clock,
    log: new FakeLog(),
    freshResolver: () => fakeDns(zone),
    suppressedContacts: followSuppressions(),
  }
  return {
    clock,
    zone,
    stopping,
    /** Mail to these bounces, for DNS has no such domain. */
    deny: async (to: readonly string[], more: Partial<EmailBounced['payload']> = {}, workspaceId = 'w1') => {
      const events = to.map((address, index) => ({
        kind: 'email.bounced' as const,
        seq: index + 1,
        workspaceId,
        messageId: newId(),
        isSandbox: false,
        occurredAt: clock.now(),
        payload: {
          to: address,
          bounceType: 'permanent' as const,
          cause: 'recipient' as const,
          scope: 'domain' as const,
          subtype: 'bad_destination',
          smtpStatus: '5.1.2',
          diagnosticCode: '',
          ...more,
        },
      }))
      await database.write(tx => consumer.react(tx, events))
    },
    pass: async (ms: number) => {
      clock.jump(ms)
      await confirmDenials(parts, stopping.signal)
    },
    suppressed: async (workspaceId = 'w1') => {
      const page = { limit: 100, offset: 0 }
      return (await listSuppressions(database.reader, workspaceId, page)).map(({ email }) => email).sort()
    },
  }
}

eachDatabase(
  t,
  'one denial of a domain suppresses nobody; a second one a day later suppresses every recipient that bounced',
  async (t, database) => {
    const { deny, pass, suppressed } = open(database)
    await deny(['ann@gone.example', 'bob@gone.example'])
    await deny(['eve@gone.example'], {}, 'w2')
    await pass(15 * MINUTE_MS)
    await deny(['ann@gone.example'])
    await pass(23 * 60 * MINUTE_MS)
    t.same(await suppressed(), [], 'within a day it is the same denial')
    await pass(60 * MINUTE_MS)
    await deny(['ann@Gone.example'])
    t.same(await suppressed(), [], 'what happens around it is not known yet')
    await pass(15 * MINUTE_MS)
    t.same(await suppressed(), ['ann@gone.example', 'bob@gone.example'])
    t.same(await suppressed('w2'), ['eve@gone.example'])
  },
)

eachDatabase(
  t,
  'many domains denied at once indicate a resolver failure, on the first day and later',
  async (t, database) => {
    const { deny, pass, suppressed } = open(database)
    const all = Array.from({ length: 12 }, (_, n) => `ann@d${n}.example`)
    await deny(all)
    await pass(DAY_MS)
    await deny(all.slice(0, 3))
    await pass(DAY_MS)
    t.same(await suppressed(), [], 'the first denials count for nothing')
    await deny(all.slice(0, 9))
    await pass(4 * MINUTE_MS)
    await deny(all.slice(9))
    await pass(DAY_MS)
    t.same(await suppressed(), [], 'nor do those of a later such minute confirm anything')
    await deny(all.slice(0, 2))
    await pass(15 * MINUTE_MS)
    t.same(await suppressed(), ['ann@d0.example', 'ann@d1.example'])
  },
)

eachDatabase(t, 'a denial that DNS revokes or cannot confirm does not count', async (t, database) => {
  const { deny, pass, suppressed, zone } = open(database)
  const all = ['a@back.example', 'a@silent.example', 'a@no-mx.example', 'a@hosts.example', 'a@gone.example']
  const play = async () => {
    await deny(all)
    await pass(DAY_MS)
  }
  zone['back.example'] = { MX: ['10 mx.back.example'] }
  zone['mx.back.example'] = { A: ['192.0.2.1'] }
  zone['silent.example'] = 'servfail'
  // Neither MX nor address, and an MX without any: as good as none.
  zone['no-mx.example'] = { TXT: ['x'] }
  zone['hosts.example'] = { MX: ['10 mx.gone.example'] }
  await play()
  await play()
  t.same(await suppressed(), ['a@gone.example', 'a@hosts.example', 'a@no-mx.example'])
})

eachDatabase(t, 'a denial by a remote server needs the same time, and no DNS', async (t, database) => {
  const { deny, pass, suppressed, zone } = open(database)
  zone['x.example'] = { A: ['192.0.2.1'] }
  await deny(['ann@x.example'], { remoteMta: 'mx.x.example' })
  await pass(DAY_MS)
  t.same(await suppressed(), [])
  await deny(['ann@x.example'], { remoteMta: 'mx.x.example' })
  await pass(DAY_MS)
  t.same(await suppressed(), ['ann@x.example'])
})

eachDatabase(
  t,
  'denials not judged before a shutdown are judged after the restart; old ones are deleted',
  async (t, database) => {
    const { deny, pass, stopping, clock } = open(database)
    await deny(['ann@gone.example'])
    stopping.abort()
    await pass(DAY_MS)
    const rows = () => database.reader.selectFrom('domain_denials').select('verdict').execute()
    t.same(await rows(), [{ verdict: null }])
    await database.write(tx => deleteDenialsBefore(tx.db, clock.now(), 10))
    t.same(await rows(), [])
  },
)
