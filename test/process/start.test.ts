/** Starting with a long queue: the server serves, and new mail does not wait behind the old. */
import t from 'tap'
import { join } from 'node:path'
import { uuidv7 } from '../../src/core/ids.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { insertContent, type MessageContent } from '../../src/messages/content-store.js'
import { insertMessages } from '../../src/messages/message-store.js'
import { insertQueueEntries } from '../../src/queue/queue-store.js'
import { systemClock } from '../../src/world/time/clock.js'
import { systemRandom } from '../../src/world/random.js'
import { often } from '../support/long.js'
import { initialise, routeTo, type Initialised } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'

const MESSAGES = often(20_000, 100_000)
const DOMAINS = 1_000
const PER_TRANSACTION = 10_000

/** Fills the queue with mail that is due in an hour. */
async function fillQueue({ dataDir, workspaceId }: Initialised): Promise<void> {
  const now = systemClock.now()
  const newId = () => uuidv7(now, systemRandom.bytes(10))
  const content: MessageContent = {
    id: newId(),
    workspaceId,
    from: { address: 'notify@mail.postroad.test' },
    subject: 'Old news',
    text: 'Old news.\n',
    signingDomainId: null,
    trackOpens: false,
    trackClicks: false,
    createdAt: now,
  }
  await using database = await openSqlite({ file: join(dataDir, 'postroad.db'), clock: systemClock })
  await database.write(tx => insertContent(tx.db, content))
  for (let start = 0; start < MESSAGES; start += PER_TRANSACTION) {
    const messages = Array.from({ length: PER_TRANSACTION }, (_, index) => ({
      id: newId(),
      recipient: `user${start + index}@d${(start + index) % DOMAINS}.test`,
      status: 'sent' as const,
      reason: null,
    }))
    const entries = messages.map(({ id, recipient }) => ({
      messageId: id,
      workspaceId,
      destination: recipient.slice(recipient.indexOf('@') + 1),
      priority: 0 as const,
      nextAttemptAt: now + 3_600_000,
      expiresAt: now + 3 * 86_400_000,
      enqueuedAt: now,
      contentId: content.id,
      recipient,
    }))
    await database.write(async tx => {
      await insertMessages(tx.db, content, false, messages)
      await insertQueueEntries(tx.db, entries)
    })
  }
}

t.test(`with ${MESSAGES} messages waiting the server starts, answers and delivers new mail`, async t => {
  const sink = await openSink(t)
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  await fillQueue(postroad)
  const server = await postroad.serve()
  t.match(await server.get('/health'), { status: 200 })
  const { body } = await server.send(postroad.key, {
    to: 'ann@d1.test',
    from_email: 'me@sender.test',
    subject: 'New',
    text: 'New.\n',
  })
  await server.messageOnce(postroad.key, String(body.data.results[0].message_id), 'delivered')
  t.equal(sink.accepted.length, 1, 'what is not due stays')
  const summary = await postroad.json<{ total: number }[]>('queue', 'summary', '--limit', '2000')
  t.equal(summary.length, DOMAINS)
  t.equal(
    summary.reduce((sum, { total }) => sum + total, 0),
    MESSAGES,
  )
  t.match(await server.end('SIGTERM'), { status: 0 })
})
