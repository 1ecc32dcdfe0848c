/** Batches of submissions are stored and queued in the caller's transaction. */
import t from 'tap'
import { insertContacts } from '../../src/audience/contacts/contact-write-store.js'
import { uuidv7 } from '../../src/core/ids.js'
import type { Database } from '../../src/db/database.js'
import { insertSuppression } from '../../src/deliverability/suppressions/suppression-store.js'
import { SlidingWindow } from '../../src/http/sliding-window.js'
import { findContents } from '../../src/messages/content-store.js'
import { contentPruning } from '../../src/messages/prune-messages.js'
import { findMessagesOf } from '../../src/messages/message-store.js'
import type { Submission } from '../../src/msa/mail-submission.js'
import { submitAll, submitEach, type IntakeParts } from '../../src/msa/submit.js'
import { JobLoader } from '../../src/queue/claiming/job-loader.js'
import { findEntries } from '../../src/queue/queue-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { eachDatabase, sqliteDatabase } from '../support/db/database.js'
import { addWorkspace } from '../support/mailroom.js'

const clock = new FakeClock()
const random = new SeededRandom()
const newId = () => uuidv7(clock.now(), random.bytes(10))

function door(onEnqueued: IntakeParts['onEnqueued'] = () => {}): IntakeParts {
  return { newId, emailWindows: new SlidingWindow(clock), expireMs: 1, onEnqueued }
}

function submission(to: readonly string[], id = newId()): Submission {
  const content = {
    id,
    from: { address: 'me@sender.test' },
    subject: 'Hello',
    text: 'Hello.\n',
    signingDomainId: null,
    trackOpens: false,
    trackClicks: false,
  }
  return { content, to }
}

async function countQueued(database: Database): Promise<number> {
  const { total } = await database.reader
    .selectFrom('queue')
    .select(({ fn }) => fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  return total
}

const readers = (from: number, count: number) =>
  Array.from({ length: count }, (_, at) => `reader${from + at}@one.test`)

const BATCHES: readonly (readonly [string, readonly Submission[]])[] = [
  ['a thousand submissions', readers(0, 1_000).map(to => submission([to]))],
  ['one submission to a thousand', [submission(readers(0, 1_000))]],
]

for (const [what, submissions] of BATCHES)
  t.test(`other work continues while ${what} are stored, and sees all of them or none`, async t => {
    const database = await sqliteDatabase(t)
    const workspace = await addWorkspace(database)
    const enqueued: string[] = []
    const parts = door(lane => enqueued.push(lane))
    const seen: number[] = []
    const storing = { isDone: false }
    const looking = (async () => {
      while (!storing.isDone) {
        seen.push(await countQueued(database))
        await new Promise(resolve => setImmediate(resolve))
      }
    })()
    await database.write(tx =>
      submitAll(tx, parts, { workspace, isSandbox: false, submissions }, clock.now()),
    )
    storing.isDone = true
    await looking
    t.ok(seen.length > 10, `others had ${seen.length} turns`)
    t.same(
      seen.filter(total => total !== 0 && total !== 1_000),
      [],
    )
    t.equal(await countQueued(database), 1_000)
    t.same([...new Set(enqueued)].length, 1)
  })

eachDatabase(
  t,
  'a content is stored once, and gets further recipients in later transactions',
  async (t, database) => {
    const workspace = await addWorkspace(database)
    const id = newId()
    for (const from of [0, 100, 200]) {
      const one = { ...submission(readers(from, 100), id), isContentStored: from > 0 }
      await database.write(tx =>
        submitAll(tx, door(), { workspace, isSandbox: false, submissions: [one] }, clock.now()),
      )
    }
    const contents = await database.reader.selectFrom('message_contents').select('id').execute()
    t.same(contents, [{ id }])
    const messages = await findMessagesOf(database.reader, id)
    t.same(messages.map(({ recipient }) => recipient).sort(), readers(0, 300).sort())
    const ids = messages.map(message => message.id)
    t.equal((await findEntries(database.reader, ids)).filter(({ contentId }) => contentId === id).length, 300)
  },
)

eachDatabase(
  t,
  'content for many recipients is stored once; individual values reach their jobs',
  async (t, database) => {
    const workspace = await addWorkspace(database)
    const contact = {
      id: newId(),
      email: 'reader1@one.test',
      firstName: 'Ann',
      lastName: null,
      attributes: { plan: 'gold' },
      subscribed: true,
      createdAt: clock.now(),
    }
    await database.write(({ db }) => insertContacts(db, workspace.id, [contact]))
    const to = readers(0, 100)
    const brand = { companyName: '', companyAddress: '', attribution: false, timezone: 'UTC' }
    const id = newId()
    for (const isContentStored of [false, true]) {
      const half = isContentStored ? to.slice(50) : to.slice(0, 50)
      const whole = submission(half, id)
      const one: Submission = {
        ...whole,
        content: {
          ...whole.content,
          text: '{{n}}',
          merging: { brand, hasFooter: true, data: { shared: 1 } },
        },
        data: new Map(half.map(address => [address, { n: to.indexOf(address) }])),
        isContentStored,
      }
      const batch = { workspace, isSandbox: false, submissions: [one] }
      await database.write(tx => submitEach(tx, door(), batch, clock.now()))
    }
    const messages = await findMessagesOf(database.reader, id)
    const loader = new JobLoader({
      reader: database.reader,
      clock,
      returnPath: () => '',
      readSigningKeys: async () => new Map(),
    })
    const entries = await findEntries(
      database.reader,
      messages.map(message => message.id),
    )
    const { jobs } = await loader.load(entries)
    t.equal(jobs.length, 100)
    t.equal(new Set(jobs.map(({ content }) => content)).size, 1, 'all share one content')
    t.match(jobs[0]?.content, { text: '{{n}}', merging: { hasFooter: true, data: { shared: 1 } } })
    for (const { recipient, mergeValues } of jobs) t.same(mergeValues?.data, { n: to.indexOf(recipient) })
    const { firstName, lastName, attributes, email } = contact
    t.same(
      jobs.filter(({ mergeValues }) => mergeValues?.contact).map(({ mergeValues }) => mergeValues?.contact),
      [{ email, firstName, lastName, attributes }],
    )
    t.equal(messages.find(({ recipient }) => recipient === email)?.contactId, contact.id)
    await database.write(({ db }) => db.deleteFrom('queue').execute())
    const write = <T>(work: Parameters<typeof database.write<T>>[0]) => database.write(work)
    const prune = contentPruning(database.reader, clock, clock.now() + 1)
    for (let step = await prune(100, write); step.hasMore; step = await prune(100, write));
    const kept = await database.reader.selectFrom('messages').select('merge_data').distinct().execute()
    t.same(kept, [{ merge_data: null }], 'retention takes what they were filled from along')
    const [emptied] = await findContents(database.reader, [id])
    t.notOk(emptied?.merging)
  },
)

eachDatabase(
  t,
  'of a batch with marketing and other mail, an unsubscribe stops the marketing alone',
  async (t, database) => {
    const workspace = await addWorkspace(database)
    const one = submission(['ann@one.test'])
    const other = submission(['ann@one.test'])
    const marketing: Submission = { ...one, content: { ...one.content, campaignId: 'spring' } }
    const [first, second] = await database.write(async tx => {
      await insertSuppression(tx.db, {
        workspaceId: workspace.id,
        email: 'ann@one.test',
        reason: 'unsubscribe',
        scope: 'marketing',
        sourceMessageId: null,
        createdAt: clock.now(),
      })
      const batch = { workspace, isSandbox: false, submissions: [marketing, other] }
      return submitAll(tx, door(), batch, clock.now())
    })
    t.match([first, second], [[{ skip: 'suppressed' }], [{ skip: null }]])
  },
)

t.test('what the limit of the workspace refuses is refused whole', async t => {
  const database = await sqliteDatabase(t)
  const workspace = await addWorkspace(database, 'w1', { hourlyLimit: 2 })
  const submissions = readers(0, 3).map(to => submission([to]))
  const batch = { workspace, isSandbox: false, submissions }
  await t.rejects(
    database.write(tx => submitAll(tx, door(), batch, clock.now())),
    { code: 'limit_reached' },
  )
  t.equal(await countQueued(database), 0)
  const two = { ...batch, submissions: submissions.slice(1) }
  await database.write(tx => submitAll(tx, door(), two, clock.now()))
  t.equal(await countQueued(database), 2, 'and had used nothing up')
})
