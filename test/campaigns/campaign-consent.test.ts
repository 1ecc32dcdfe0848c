/** Consent to a campaign's mail counts until the last moment: while it waits for its turn, and in the queue. */
import t, { type Test } from 'tap'
import { createContact } from '../../src/audience/contacts/contacts.js'
import { insertMessages } from '../../src/messages/message-store.js'
import { insertContent } from '../../src/messages/content-store.js'
import { findWithdrawnConsent } from '../../src/audience/contacts/consent-store.js'
import { uuidv7 } from '../../src/core/ids.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { eachDatabase } from '../support/db/database.js'
import { addWorkspace, CONTENT } from '../support/mailroom.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'
import { addresses, openCampaigns } from './open-campaigns.js'

interface Row {
  readonly email: string | null
  readonly status: string
  readonly reason: string | null
}

/** What became of each recipient, by the local part of its address; c2 is the deleted one. */
async function outcomes(id: string, get: (path: string) => Promise<{ body: unknown }>) {
  const { data } = (await get(`/campaigns/${id}/recipients?limit=100`)).body as { data: Row[] }
  return Object.fromEntries(
    data.map(({ email, status, reason }) => [
      email?.split('@')[0] ?? 'c2',
      reason === null ? status : `${status}: ${reason}`,
    ]),
  )
}

/** c0 stays; c1 unsubscribes, c2 is deleted, and c3 leaves the list. */
async function takeBack(t: Test, postroad: Awaited<ReturnType<typeof openCampaigns>>, campaign: string) {
  const { get, patch, remove } = postroad
  const { data } = (await get(`/campaigns/${campaign}`)).body as { data: { list_id: string } }
  const idOf = async (name: string) => {
    const found = (await get(`/contacts?email=${name}@x.test`)).body as { data: { id: string }[] }
    return found.data[0]?.id ?? ''
  }
  t.match(await patch(`/contacts/${await idOf('c1')}`, { subscribed: false }), { status: 200 })
  t.match(await remove(`/contacts/${await idOf('c2')}`), { status: 200 })
  t.match(await remove(`/lists/${data.list_id}/members`, { contact_ids: [await idOf('c3')] }), {
    status: 200,
  })
}

const EXPECTED = {
  c0: 'delivered',
  c1: 'skipped: unsubscribed',
  c3: 'skipped: left_list',
}

// proves: decisions: Added after a day's work > Consent lasts until delivery Before
t.test('who takes back the consent while the mail is queued does not get it', async t => {
  const sink = await openSink(t)
  const postroad = await openCampaigns(t, {
    env: { POSTROAD_MTA_CAPTURE: 'false' },
    toml: `[[mta.routes]]\ndomain = "*"\nhost = "127.0.0.1"\nport = ${sink.port}\ntls = "none"`,
  })
  const { draft, sendIt, campaignOnce, clock, get, one } = postroad
  sink.atRcpt = 'defer'
  const id = await draft(addresses(4))
  await sendIt(id)
  await until('all to be deferred', () => one('select count(*) from attempts') === 4)
  await takeBack(t, postroad, id)
  sink.atRcpt = 'accept'
  for (let minute = 0; minute < 10; minute += 1) await clock.advance(60_000)
  const { progress } = await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
  t.match(progress, { done: 1, skipped: 3, queued: 0 })
  t.same(
    sink.accepted.flatMap(({ recipients }) => recipients),
    ['c0@x.test'],
  )
  t.match(await outcomes(id, get), EXPECTED)
})

t.test('who takes back the consent while the campaign waits does not get it', async t => {
  const postroad = await openCampaigns(t)
  const { draft, sendIt, clock, get, one } = postroad
  const id = await draft(addresses(4), { rate_per_hour: 60 })
  await sendIt(id)
  await until('the first', () => one('select count(*) from messages') === 1)
  await takeBack(t, postroad, id)
  await until('the end', async () => {
    await clock.advance(10_000)
    return one('select status from campaigns') === 'completed'
  })
  t.match(await outcomes(id, get), EXPECTED)
})

eachDatabase(t, "an automation's mail asks for its contact", async (t: Test, database) => {
  const clock = new FakeClock()
  let ids = 0
  const newId = () => uuidv7(clock.now(), Buffer.alloc(10, ++ids))
  await addWorkspace(database)
  const acting = { workspaceId: 'w1', isSandbox: false, source: 'api' } as const
  const contact = await database.write(tx =>
    createContact({ clock, newId, onEvents: () => {} }, tx, acting, { email: 'ann@x.test' }),
  )
  const content = { ...CONTENT, automationId: 'a1' }
  await database.write(async tx => {
    await insertContent(tx.db, content)
    await insertMessages(tx.db, content, false, [
      { id: 'm1', recipient: 'ann@x.test', status: 'sent', reason: null, contactId: contact.id },
      { id: 'm2', recipient: 'bob@x.test', status: 'sent', reason: null },
    ])
  })
  const asked = async () => [...(await findWithdrawnConsent(database.reader, ['m1', 'm2']))]
  t.same(await asked(), [])
  await database.write(tx =>
    tx.db.updateTable('contacts').set({ subscribed: 0 }).where('id', '=', contact.id).execute(),
  )
  t.same(await asked(), [['m1', 'unsubscribed']], 'who is no contact has nothing to take back')
  await database.write(tx =>
    tx.db.updateTable('contacts').set({ deleted_at: clock.now() }).where('id', '=', contact.id).execute(),
  )
  t.same(await asked(), [['m1', 'deleted']])
})
