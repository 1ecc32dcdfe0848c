/** The runner of campaigns as a job: when it ends. */
import t from 'tap'
import type { CampaignParts } from '../../src/campaigns/model/campaign-parts.js'
import { CampaignRunner } from '../../src/campaigns/expansion/campaign-runner.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { sqliteDatabase } from '../support/db/database.js'
import { until } from '../support/turns.js'

t.test('a stop that comes while it looks for what is due ends it at once', async t => {
  const send = { database: await sqliteDatabase(t), clock: new FakeClock() }
  // Where no campaign is due it uses nothing else.
  const parts = { send, log: new FakeLog(), onEvents: () => {} } as unknown as CampaignParts
  const stopping = new AbortController()
  let isOver = false
  void new CampaignRunner(parts).run(stopping.signal).then(() => (isOver = true))
  stopping.abort()
  // The clock stands still: it waits for nothing that the clock would bring.
  await until('it ends', () => isOver)
  t.ok(isOver)
})
