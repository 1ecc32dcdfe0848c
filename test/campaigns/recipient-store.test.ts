/** The rows of recipients, counts and links mean the same on both databases. */
import t from 'tap'
import { insertContacts } from '../../src/audience/contacts/contact-write-store.js'
import { contactsOf, findAudience } from '../../src/audience/audience-store.js'
import { addPairs, LIST_MEMBERS } from '../../src/audience/pair-store.js'
import { listMailability } from '../../src/audience/segments/audience-query-store.js'
import {
  cancelPending,
  countUntried,
  findRecipientsOf,
  insertRecipients,
  listSent,
  markHanded,
  markSkipped,
  nextPending,
  updateRecipients,
} from '../../src/campaigns/model/recipient-store.js'
import {
  changeCampaign,
  findCampaign,
  findCampaignBySeq,
  insertCampaign,
  listDue,
  nextDueAfter,
  noteSettled,
} from '../../src/campaigns/model/campaign-store.js'
import { countAudience, whoOf, findCampaignAudience } from '../../src/campaigns/model/campaign-audience.js'
import { fixSome } from '../../src/campaigns/expansion/fix-recipients.js'
import { PieceSize } from '../../src/db/piece-size.js'
import { insertList, findList, markListDeleted } from '../../src/audience/lists/list-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import {
  countClicks,
  ensureLinks,
  listLinks,
  listVariantLinks,
  MAX_LINKS,
  listRecipients,
  forgetRecipients,
} from '../../src/campaigns/results/result-store.js'
import { NOTHING_SAID } from '../../src/campaigns/model/campaigns.js'
import type { Database } from '../../src/db/database.js'
import { insertSuppression } from '../../src/deliverability/suppressions/suppression-store.js'
import { eachDatabase } from '../support/db/database.js'
import { walkPages } from '../support/walk-pages.js'

const T = 1_767_607_200_000
const WORKSPACE = 'w'
const page = { limit: 100, offset: 0 }

async function fill(database: Database, contacts: number) {
  return database.write(async ({ db }) => {
    const made = await insertContacts(
      db,
      WORKSPACE,
      Array.from({ length: contacts }, (_, at) => ({
        ...{ id: `c${at}`, email: `c${at}@x.example`, firstName: null, lastName: null, attributes: {} },
        ...{ subscribed: at !== 1, createdAt: T },
      })),
    )
    const fields = { name: 'January', subject: 'News', templateId: 't', ...NOTHING_SAID }
    const head = { id: 'campaign', workspaceId: WORKSPACE, isSandbox: false, createdAt: T, updatedAt: T }
    await insertCampaign(db, { ...fields, ...head })
    const campaign = await findCampaign(db, WORKSPACE, 'campaign')
    if (!campaign) throw new Error('no campaign')
    return { seqs: made.map(({ seq }) => seq), campaign, seq: campaign.seq }
  })
}

eachDatabase(
  t,
  'each recipient is enqueued once, in order, and marked with its message',
  async (t, database) => {
    const { seqs, seq } = await fill(database, 200)
    const { reader } = database
    await database.write(({ db }) => insertRecipients(db, seq, seqs))
    await t.rejects(
      database.write(({ db }) => insertRecipients(db, seq, seqs.slice(0, 1))),
      'no contact has a second row',
    )
    const first = await nextPending(reader, seq, 90)
    t.same(
      first.map(({ contact }) => contact),
      seqs.slice(0, 90),
    )
    t.same(first.slice(0, 2), [
      {
        contact: seqs[0],
        id: 'c0',
        email: 'c0@x.example',
        isDeleted: false,
        isSubscribed: true,
        isSuspended: false,
        isBounced: false,
      },
      {
        contact: seqs[1],
        id: 'c1',
        email: 'c1@x.example',
        isDeleted: false,
        isSubscribed: false,
        isSuspended: false,
        isBounced: false,
      },
    ])
    await database.write(async ({ db }) => {
      const mailed = seqs.slice(0, 90).filter((_, at) => at !== 1)
      await markHanded(
        db,
        seq,
        mailed.map(contact => [contact, `m${contact}`]),
      )
      await markSkipped(db, seq, [{ contact: seqs[1]!, reason: 'unsubscribed', messageId: null }])
    })
    t.equal((await nextPending(reader, seq, 1))[0]?.contact, seqs[90])
    const sent = await listSent(reader, seq, seqs[0]!, 2)
    t.match(sent, [{ contact: seqs[2], messageId: `m${seqs[2]}` }, { contact: seqs[3] }])
    const [one] = await findRecipientsOf(reader, [`m${seqs[2]}`, 'nobody'])
    t.match(one, { campaign: seq, contact: seqs[2], status: 'sent', reason: null, hasOpened: false })
    await database.write(({ db }) =>
      updateRecipients(db, [{ ...one!, status: 'clicked', hasOpened: true, hasClicked: true }]),
    )
    t.match(await findRecipientsOf(reader, [`m${seqs[2]}`]), [
      { status: 'clicked', reason: null, hasOpened: true, hasClicked: true },
    ])
    t.equal(await countUntried(reader, seq), 0, 'none of them is in the queue')
    t.match(await listRecipients(reader, seq, 200, 'skipped', page), {
      total: 1,
      items: [{ contactId: 'c1', email: 'c1@x.example', status: 'skipped', reason: 'unsubscribed' }],
    })
    t.match(await listRecipients(reader, seq, 200, undefined, { limit: 1, offset: 199 }), {
      total: 200,
      items: [{ contactId: 'c199', status: 'pending', messageId: null }],
    })
    t.equal(await database.write(({ db }) => cancelPending(db, seq, 100)), 100)
    t.equal(await database.write(({ db }) => cancelPending(db, seq, 100)), 10)
    t.same(await nextPending(reader, seq, 1), [])
  },
)

eachDatabase(
  t,
  'the contacts of a list or of conditions are returned with their result, by number',
  async (t, database) => {
    const { seqs } = await fill(database, 5)
    const { reader } = database
    await database.write(async ({ db }) => {
      await addPairs(db, LIST_MEMBERS, 7, seqs.slice(0, 4), T)
      const suppression = { workspaceId: WORKSPACE, sourceMessageId: null, createdAt: T }
      await insertSuppression(db, {
        ...suppression,
        email: 'c2@x.example',
        reason: 'manual',
        scope: 'marketing',
      })
    })
    const audience = await findAudience(reader, WORKSPACE)
    const context = { workspaceId: WORKSPACE, now: T }
    const all = contactsOf(audience!.number)
    t.same(await listMailability(reader, { list: 7 }, context, all), [
      { seq: seqs[0], mailability: 'mailable' },
      { seq: seqs[1], mailability: 'unsubscribed' },
      { seq: seqs[2], mailability: 'suppressed' },
      { seq: seqs[3], mailability: 'mailable' },
    ])
    t.same(await listMailability(reader, { list: 7 }, context, { first: seqs[3]!, last: seqs[4]! }), [
      { seq: seqs[3], mailability: 'mailable' },
    ])
    t.same(await listMailability(reader, { list: 7 }, { ...context, workspaceId: 'other' }, all), [])
  },
)

eachDatabase(
  t,
  'what is due comes in its order, counts add up, the last settled mail makes it due',
  async (t, database) => {
    const { seq } = await fill(database, 1)
    const { reader } = database
    const change = (to: Parameters<typeof changeCampaign>[2], counted = {}) =>
      database.write(({ db }) => changeCampaign(db, seq, to, counted))
    t.same(await listDue(reader, T, undefined, 10), [])
    await change({ nextAt: T + 5, status: 'sending', who: { list: 7 } }, { queued: 2, sends: 1 })
    await change({}, { queued: -1, done: 1, sends: 1 })
    t.match(await listDue(reader, T + 5, undefined, 10), [
      { seq, queued: 1, done: 1, sends: 2, who: { list: 7 } },
    ])
    t.same(await listDue(reader, T + 4, undefined, 10), [])
    t.same(await listDue(reader, T + 5, { nextAt: T + 5, seq }, 10), [])
    t.match(await listDue(reader, T + 5, { nextAt: T + 5, seq: seq - 1 }, 10), [{ seq }])
    t.equal(await nextDueAfter(reader, T), T + 5)
    t.equal(await nextDueAfter(reader, T + 5), undefined)
    await database.write(({ db }) => noteSettled(db, [seq]))
    t.equal((await findCampaignBySeq(reader, seq))?.nextAt, T + 5)
    await change({}, { queued: -1 })
    await database.write(({ db }) => noteSettled(db, [seq]))
    t.equal((await findCampaignBySeq(reader, seq))?.nextAt, 0)
  },
)

eachDatabase(
  t,
  'clicks count by link and by recipient; beyond a thousand links they count together',
  async (t, database) => {
    const { seq } = await fill(database, 1)
    const { reader } = database
    const click = (contact: number, url: string) => ({ campaign: seq, contact, variant: null, url })
    await database.write(({ db }) =>
      countClicks(db, [click(1, 'a'), click(1, 'a'), click(2, 'a'), click(1, 'b')]),
    )
    await database.write(({ db }) => countClicks(db, [click(2, 'a'), click(3, 'a')]))
    t.match(await listLinks(reader, seq, page), {
      total: 2,
      items: [
        { url: 'a', clicks: 5, uniqueClicks: 3 },
        { url: 'b', clicks: 1, uniqueClicks: 1 },
      ],
    })
    const many = Array.from({ length: MAX_LINKS }, (_, at) => `https://x.example/${at}`)
    await database.write(({ db }) => ensureLinks(db, seq, new Set(many)))
    await database.write(({ db }) => countClicks(db, [click(9, 'new'), click(9, 'newer')]))
    const { items, total } = await listLinks(reader, seq, { limit: 3, offset: 0 })
    t.equal(total, MAX_LINKS + 1)
    t.match(items[1], { url: null, clicks: 2, uniqueClicks: 1 })
    const all = await listLinks(reader, seq, { limit: 2_000, offset: 0 })
    t.same(await walkPages(page => listLinks(reader, seq, page), 300), all.items, 'by cursor')
  },
)

eachDatabase(t, 'clicks of the sample of an A/B test count by variant as well', async (t, database) => {
  const { seq } = await fill(database, 1)
  const { reader } = database
  const click = (contact: number, variant: number | null, url: string) => ({
    ...{ campaign: seq, contact, variant, url },
  })
  const count = (clicks: ReturnType<typeof click>[]) => database.write(({ db }) => countClicks(db, clicks))
  await count([click(1, 0, 'a'), click(1, 0, 'a'), click(2, 1, 'a'), click(1, 0, 'b'), click(3, null, 'a')])
  await count([click(1, 0, 'a'), click(4, 0, 'a'), click(4, 0, 'b'), click(5, 1, 'c')])
  t.same(await listVariantLinks(reader, seq, 0), [
    { url: 'a', clicks: 4, uniqueClicks: 2 },
    { url: 'b', clicks: 2, uniqueClicks: 2 },
  ])
  t.same(await listVariantLinks(reader, seq, 1), [
    { url: 'a', clicks: 1, uniqueClicks: 1 },
    { url: 'c', clicks: 1, uniqueClicks: 1 },
  ])
  t.same(await listVariantLinks(reader, seq, 2), [])
  t.match((await listLinks(reader, seq, page)).items[0], { url: 'a', clicks: 6, uniqueClicks: 4 })
})

eachDatabase(t, 'of an old campaign the recipients are forgotten, and it stays', async (t, database) => {
  const { seq, seqs } = await fill(database, 10)
  await database.write(async ({ db }) => {
    await insertRecipients(db, seq, seqs)
    await countClicks(db, [{ campaign: seq, contact: seqs[0]!, variant: null, url: 'a' }])
    await changeCampaign(db, seq, { status: 'completed', finishedAt: T })
  })
  const forget = (before: number) => database.write(({ db }) => forgetRecipients(db, before, 4))
  t.equal(await forget(T), 0)
  const steps: number[] = []
  for (let done = await forget(T + 1); done > 0; done = await forget(T + 1)) steps.push(done)
  t.same(steps, [1, 4, 4, 2, 1])
  t.match(await listRecipients(database.reader, seq, 10, 'pending', page), { total: 0 })
  t.match(await findCampaignBySeq(database.reader, seq), { status: 'completed' })
})

eachDatabase(
  t,
  'a campaign whose list is deleted before all of its members were found fails, and mails none of them',
  async (t, database) => {
    const { seqs, seq } = await fill(database, 5)
    const clock = new FakeClock()
    await database.write(async ({ db }) => {
      await insertList(db, {
        ...{ id: 'list', workspaceId: WORKSPACE, name: 'News', description: null, type: 'static' },
        ...{ conditions: null, isPublic: false, doubleOptIn: false, createdAt: T, updatedAt: T },
      })
      const list = (await findList(db, WORKSPACE, 'list'))?.seq ?? 0
      await addPairs(db, LIST_MEMBERS, list, seqs, T)
      const [fixedBefore = 0, fixedThrough = 0] = [seqs[0], seqs.at(-1)]
      const sent = { status: 'sending', requestedAt: T, nextAt: T } as const
      await changeCampaign(db, seq, { ...sent, who: { list }, fixedBefore, fixedThrough })
    })
    const campaign = async () => {
      const found = await findCampaignBySeq(database.reader, seq)
      if (!found) throw new Error('no campaign')
      return found
    }
    const size = new PieceSize(clock, 2, 2)
    // Meanwhile, between two pieces.
    const fixing = fixSome({ database, clock }, await campaign(), size)
    await database.write(async ({ db }) => {
      const list = await findList(db, WORKSPACE, 'list')
      await markListDeleted(db, list?.seq ?? 0, T)
    })
    await fixing
    const after = await campaign()
    t.match(after, { status: 'failed', fixedAt: clock.now(), error: /list was deleted/ })
    t.equal(after.recipients, after.pending, 'its recipients are those who were found')
    const takenOff = await database.write(({ db }) => cancelPending(db, seq, 100))
    t.equal(takenOff, after.pending, 'who was found is taken off')
  },
)

eachDatabase(
  t,
  'recipients who have not opened, or not clicked, are found for a resend',
  async (t, database) => {
    const { seqs, seq } = await fill(database, 6)
    const states = ['delivered', 'delivered', 'opened', 'clicked', 'bounced', 'sent'] as const
    await database.write(async ({ db }) => {
      await insertRecipients(db, seq, seqs)
      await updateRecipients(
        db,
        seqs.map((contact, at) => ({
          ...{ campaign: seq, contact, status: states[at] ?? 'sent', reason: null, messageId: null },
          ...{ hasOpened: false, hasClicked: false, variant: null },
        })),
      )
      const resend = { ...NOTHING_SAID, name: 'R', subject: 'x', templateId: 't', resendOf: 'campaign' }
      const head = { workspaceId: WORKSPACE, isSandbox: false, createdAt: T, updatedAt: T }
      await insertCampaign(db, { ...resend, ...head, id: 'r1', resendTo: 'not_opened' })
      await insertCampaign(db, { ...resend, ...head, id: 'r2', resendTo: 'not_clicked' })
    })
    const db = database.reader
    const range = { first: seqs[0] ?? 0, last: seqs.at(-1) ?? 0 }
    await database.write(({ db }) =>
      insertSuppression(db, {
        ...{ workspaceId: WORKSPACE, email: 'c0@x.example', reason: 'manual', scope: 'marketing' },
        ...{ sourceMessageId: null, createdAt: T },
      }),
    )
    for (const [id, expected] of [
      ['r1', [0, 1]],
      ['r2', [0, 1, 2]],
    ] as const) {
      const campaign = await findCampaign(db, WORKSPACE, id)
      const who = await findCampaignAudience(db, campaign!)
      t.same(who, { recipientsOf: seq, who: campaign!.resendTo })
      const meant = await listMailability(db, whoOf(who), { workspaceId: WORKSPACE, now: T }, range)
      t.same(
        meant.map(one => seqs.indexOf(one.seq)),
        expected,
      )
      t.equal(meant[1]?.mailability, 'unsubscribed', 'as contacts are now')
      const counted = await countAudience(database, new FakeClock(), WORKSPACE, who)
      t.same(counted, { mailable: expected.length - 2, unsubscribed: 1, bounced: 0, suppressed: 1 })
    }
    await database.write(async ({ db }) => {
      await changeCampaign(db, seq, { finishedAt: T - 1 })
      while ((await forgetRecipients(db, T, 100)) > 0);
    })
    await t.rejects(findCampaignAudience(db, (await findCampaign(db, WORKSPACE, 'r1'))!), {
      code: 'not_found',
    })
  },
)
