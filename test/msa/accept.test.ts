/** Letters are stored and queued in the transaction of whoever decided about them. */
import t from 'tap'
import { uuidv7 } from '../../src/core/ids.js'
import { acceptLetters, type AcceptParts } from '../../src/msa/accept.js'
import type { Letter } from '../../src/msa/letter.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { sqliteDatabase } from '../support/db/database.js'
import { addWorkspace } from '../support/mailroom.js'

const clock = new FakeClock()
const random = new SeededRandom()
const newId = () => uuidv7(clock.now(), random.bytes(10))

function letterTo(workspaceId: string, address: string): Letter {
  const content = {
    id: newId(),
    workspaceId,
    from: { address: 'me@sender.test' },
    subject: 'Hello',
    text: 'Hello.\n',
    signingDomainId: null,
    trackOpens: false,
    trackClicks: false,
    createdAt: clock.now(),
  }
  const recipient = { asked: address, address, destination: 'one.test', skip: null }
  return { content, submitted: [{ ...recipient, messageId: newId() }], dueAt: clock.now() }
}

t.test('others have their turn while a thousand letters are stored, and see all of them or none', async t => {
  const database = await sqliteDatabase(t)
  const workspace = await addWorkspace(database)
  const letters = Array.from({ length: 1_000 }, (_, at) => letterTo(workspace.id, `reader${at}@one.test`))
  const enqueued: string[] = []
  const parts: AcceptParts = { newId, expireMs: 1, onEnqueued: lane => enqueued.push(lane) }
  const count = async () => {
    const { total } = await database.reader
      .selectFrom('queue')
      .select(({ fn }) => fn.countAll<number>().as('total'))
      .executeTakeFirstOrThrow()
    return total
  }
  const seen: number[] = []
  const storing = { isDone: false }
  const looking = (async () => {
    while (!storing.isDone) {
      seen.push(await count())
      await new Promise(resolve => setImmediate(resolve))
    }
  })()
  await database.write(tx => acceptLetters(tx, parts, letters, false, clock.now()))
  storing.isDone = true
  await looking
  t.ok(seen.length > 10, `others had ${seen.length} turns`)
  t.same(
    seen.filter(total => total !== 0 && total !== 1_000),
    [],
  )
  t.equal(await count(), 1_000)
  t.same([...new Set(enqueued)].length, 1)
})
