/** Complete jobs: what is read once and kept, and for how long. */
import t from 'tap'
import { JobLoader } from '../../src/queue/claiming/job-loader.js'
import { findEntries } from '../../src/queue/queue-store.js'
import type { DkimKey } from '../../src/mail/dkim/dkim-sign.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { sqliteDatabase } from '../support/db/database.js'
import { enqueue, NOW } from '../support/mailroom.js'

const key = (selector: string): DkimKey => ({
  domain: 'example.com',
  selector,
  algorithm: 'rsa',
  privateKey: 'PEM',
})

t.test('a job contains everything delivery needs, and optional parts only if present', async t => {
  const database = await sqliteDatabase(t)
  await enqueue(database, [{ id: 'm1', to: 'ann@x.example' }], {
    signingDomainId: 'd1',
    from: { address: 'shop@example.com' },
    replyTo: { address: 'help@example.com' },
  })
  const loader = new JobLoader({
    reader: database.reader,
    clock: new FakeClock(),
    returnPath: (id, recipient) => `${id}/${recipient}`,
    readSigningKeys: async ids => new Map(ids.map(id => [id, [key(id)]])),
  })
  const entries = await findEntries(database.reader, ['m1'])
  t.same((await loader.load(entries.map(entry => ({ ...entry, attempts: 3 })))).jobs, [
    {
      messageId: 'm1',
      workspaceId: 'w1',
      envelopeSender: 'm1/ann@x.example',
      recipient: 'ann@x.example',
      attempt: 3,
      acceptedAt: NOW,
      content: {
        kind: 'composed',
        from: { address: 'shop@example.com' },
        replyTo: { address: 'help@example.com' },
        subject: 'Your order',
        html: '<p>Thanks</p>',
        text: 'Thanks',
      },
      signingKeys: [key('d1')],
      submission: { from: 'shop@example.com' },
      origin: { senderDomain: 'example.com' },
    },
  ])
  t.same((await loader.load([])).jobs, [])
  t.same((await loader.load(entries.map(entry => ({ ...entry, contentId: 'gone' })))).jobs, [])
})

t.test('keys are cached for seconds, so that a rotation takes effect', async t => {
  const database = await sqliteDatabase(t)
  await enqueue(database, [{ id: 'm1', to: 'ann@x.example' }], { signingDomainId: 'd1' })
  const clock = new FakeClock()
  let reads = 0
  const loader = new JobLoader({
    reader: database.reader,
    clock,
    returnPath: () => '',
    readSigningKeys: async () => new Map([['d1', [key(`s${(reads += 1)}`)]]]),
  })
  const entries = await findEntries(database.reader, ['m1'])
  const selector = async () => (await loader.load(entries)).jobs[0]?.signingKeys[0]?.selector
  t.equal(await selector(), 's1')
  t.equal(await selector(), 's1')
  await clock.advance(5_000)
  t.equal(await selector(), 's2')
})
