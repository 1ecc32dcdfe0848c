/** What starts runs and continues waiting ones: on both databases, with a manual clock. */
import t from 'tap'
import { changeMembers } from '../../src/audience/lists/lists.js'
import { changeContact } from '../../src/audience/contacts/contacts.js'
import { contactEvent } from '../../src/audience/contacts/contact-events.js'
import { insertSegment } from '../../src/audience/segments/segment-store.js'
import { changeAutomation } from '../../src/automations/flows/automations.js'
import { DateTrigger } from '../../src/automations/triggers/date-trigger.js'
import { SegmentTrigger } from '../../src/automations/triggers/segment-trigger.js'
import { appendEvents } from '../../src/events/store.js'
import { recordTransitions } from '../../src/messages/message-history.js'
import { openFlows, type Flows } from '../support/automations.js'
import { imported, partsOf } from '../support/imports.js'
import { eachDatabase } from '../support/db/database.js'

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000]
const never = new AbortController().signal

function visit(flows: Flows, kind: 'email.opened' | 'email.clicked', messageId: string, more: object = {}) {
  const payload = {
    to: 'ann@one.test',
    ip: '192.0.2.1',
    userAgent: 'x',
    isBot: false,
    url: 'https://a.test/',
    ...more,
  }
  return flows.database.write(tx =>
    appendEvents(tx, [
      { kind, workspaceId: 'w1', messageId, isSandbox: false, occurredAt: flows.clock.now(), payload },
    ]),
  )
}

eachDatabase(t, 'many contacts joining a list at once start one run each', async (t, database) => {
  const flows = await openFlows(database)
  const list = await flows.list('News')
  const flow = await flows.flow({ trigger: 'list_joined', config: { listId: list } })
  const other = await flows.flow({ trigger: 'list_left', config: { listId: list, frequency: 'every_time' } })
  const contacts = await flows.contacts(400)
  const ids = contacts.map(({ id }) => id)
  await changeMembers(flows.parts, flows.acting, list, ids, 'added')
  await flows.settle()
  const runs = await flows.runs(flow)
  t.equal(runs.length, 400)
  t.equal(new Set(runs.map(({ contactId }) => contactId)).size, 400)
  t.ok(runs.every(({ status }) => status === 'completed'))
  t.match(runs[0]?.triggerData, { list_id: list, list_name: 'News' })
  for (const change of ['removed', 'added', 'removed'] as const)
    await changeMembers(flows.parts, flows.acting, list, ids.slice(0, 10), change)
  await flows.settle()
  t.equal((await flows.runs(flow)).length, 400, 'once per contact')
  t.equal((await flows.runs(other)).length, 20, 'every time')
  t.equal((await flows.events('flow.triggered')).length, 420)
})

eachDatabase(t, 'each contact that an import creates or adds to a list starts a run', async (t, database) => {
  const flows = await openFlows(database)
  const list = await flows.list('News')
  const joined = await flows.flow({ trigger: 'list_joined', config: { listId: list } })
  const created = await flows.flow({ trigger: 'contact_created' })
  const tagged = await flows.flow({ trigger: 'tag_added', config: { tagName: 'VIP' } })
  const emails = Array.from({ length: 250 }, (_, at) => `new${at}@one.test,${at === 7 ? 'vip' : ''}`)
  const parts = { ...partsOf(database), ...flows.parts }
  await imported(parts, `email,tags\n${emails.join('\n')}\n`, { listId: list })
  await flows.settle()
  const runs = await flows.runs(joined)
  t.equal(new Set(runs.map(({ contactEmail }) => contactEmail)).size, 250)
  t.equal(runs.length, 250)
  t.match(runs[0]?.triggerData, { list_id: list, list_name: 'News' })
  t.equal((await flows.runs(created)).length, 250)
  t.same(
    (await flows.runs(tagged)).map(({ contactEmail }) => contactEmail),
    ['new7@one.test'],
  )
})

eachDatabase(
  t,
  'an automation that triggers itself is limited to a number of entries per hour',
  async (t, database) => {
    const flows = await openFlows(database)
    const tag = (action: string) => ({ step_type: 'tag' as const, config: { action, tagName: 'hot' } })
    const circle = await flows.flow({
      trigger: 'tag_added',
      config: { tagName: 'hot', frequency: 'every_time' },
      steps: [tag('remove'), tag('add')],
    })
    const ann = await flows.contact('ann')
    await flows.enter(circle, ann)
    await flows.settle()
    t.equal((await flows.runs(circle)).length, 100)
    t.match(
      flows.log.lines.filter(({ level }) => level === 'warn'),
      [{ event: 'automation entries limited', fields: { automationId: circle.id, contactId: ann.id } }],
    )
    t.match(await flows.enter(circle, ann), [{ refusal: 'too_often', runId: undefined }])
    flows.clock.skip(3_600_000)
    t.match(await flows.enter(circle, ann), [{ refusal: undefined }], 'in the next hour it may again')
  },
)

eachDatabase(t, 'matching opens and clicks start runs, those of machines do not', async (t, database) => {
  const flows = await openFlows(database)
  const ann = await flows.contact('ann')
  const often = { frequency: 'every_time' }
  const templateId = await flows.template()
  const opened = await flows.flow({ trigger: 'email_opened', config: { ...often, templateId } })
  const clicked = await flows.flow({
    trigger: 'email_clicked',
    config: { ...often, url: 'https://a.test/' },
  })
  await visit(flows, 'email.opened', 'm1', { isBot: true, templateId })
  await visit(flows, 'email.opened', 'm1', { templateId: 'another' })
  await visit(flows, 'email.opened', 'm1', { templateId, contactId: ann.id })
  await visit(flows, 'email.clicked', 'm1', { url: 'https://b.test/' })
  await visit(flows, 'email.clicked', 'm1')
  await visit(flows, 'email.clicked', 'm1', { to: 'nobody@one.test' })
  await flows.settle()
  t.match(await flows.runs(opened), [{ contactId: ann.id, triggerData: { message_id: 'm1' } }])
  t.match(await flows.runs(clicked), [{ contactId: ann.id, triggerData: { url: 'https://a.test/' } }])
})

eachDatabase(
  t,
  'a run waits for its last message to be opened, even if it was opened before the wait',
  async (t, database) => {
    const flows = await openFlows(database)
    const ann = await flows.contact('ann')
    const mail = {
      step_type: 'email',
      config: { templateId: await flows.template(), subject: 'Hello' },
    } as const
    const wait = { step_type: 'wait_for_event', config: { eventType: 'email_opened' } } as const
    const flow = await flows.flow({ steps: [mail, wait] })
    await flows.enter(flow, ann)
    await flows.settle()
    const [run] = await flows.runs(flow)
    t.match(run, { wait: 'event', waitEvent: 'email_opened', waitMessage: run?.lastMessageId })
    await visit(flows, 'email.opened', 'another', { contactId: ann.id })
    await flows.settle()
    t.match((await flows.runs(flow))[0], { status: 'active' })
    await visit(flows, 'email.opened', String(run?.lastMessageId), { contactId: ann.id, isBot: true })
    await flows.settle()
    t.match((await flows.runs(flow))[0], { status: 'active' })
    await visit(flows, 'email.opened', String(run?.lastMessageId), { contactId: ann.id })
    await flows.settle()
    t.match((await flows.runs(flow))[0], { status: 'completed' })
    const later = await flows.flow({ steps: [mail, { step_type: 'delay' }, wait] })
    await flows.enter(later, ann)
    await flows.settle()
    const [second] = await flows.runs(later)
    await database.write(tx =>
      recordTransitions(tx, [
        {
          kind: 'opened',
          ...{ messageId: String(second?.lastMessageId), at: flows.clock.now() },
          facts: { ip: '192.0.2.1', userAgent: 'x', isBot: false },
        },
      ]),
    )
    await flows.pass(DAY)
    t.match((await flows.runs(later))[0], { status: 'completed' })
    t.match((await flows.recordsOf(second)).at(-1), { detail: { event: 'email_opened' } })
  },
)

eachDatabase(t, 'events before the activation or during a pause start no runs', async (t, database) => {
  const flows = await openFlows(database)
  await flows.contact('early')
  flows.clock.skip(1)
  const flow = await flows.flow({ trigger: 'contact_created' })
  flows.clock.skip(1)
  await flows.contact('ann')
  await flows.settle()
  await changeAutomation(flows.parts, flows.owner, flow.id, { status: 'paused' })
  await flows.contact('bob')
  await flows.settle()
  flows.clock.skip(1)
  await changeAutomation(flows.parts, flows.owner, flow.id, { status: 'active' })
  await flows.settle()
  t.same(
    (await flows.runs(flow)).map(({ contactEmail }) => contactEmail),
    ['ann@one.test'],
  )
})

eachDatabase(t, 'entering a segment starts a run; being or staying in it does not', async (t, database) => {
  const flows = await openFlows(database)
  const segment = {
    ...{ id: flows.parts.newId(), workspaceId: 'w1', name: 'Pro', createdAt: 0, updatedAt: 0 },
    conditions: { match: 'all', rules: [{ field: 'plan', operator: 'equals', value: 'pro' }] },
  }
  await database.write(tx => insertSegment(tx.db, segment))
  const pro = { attributes: { plan: 'pro' } }
  const [ann, bob] = [await flows.contact('ann', pro), await flows.contact('bob')]
  const flow = await flows.flow({
    trigger: 'segment_entered',
    config: { segmentId: segment.id, frequency: 'every_time' },
  })
  const eve = await flows.contact('eve', pro)
  let trigger = new SegmentTrigger(flows.parts)
  const look = async () => {
    flows.clock.skip(6 * MINUTE)
    await trigger.run(never)
    await flows.settle()
    return (await flows.runs(flow)).map(({ contactEmail }) => contactEmail.split('@')[0])
  }
  const plan = (id: string, value: string) =>
    database.write(tx => changeContact(flows.parts, tx, flows.acting, id, { attributes: { plan: value } }))
  t.same(await look(), ['eve'], 'made since it is active')
  await plan(bob.id, 'pro')
  t.same(await look(), ['eve', 'bob'])
  trigger = new SegmentTrigger(flows.parts)
  t.same(await look(), ['eve', 'bob'], 'a restart forgets nobody')
  await plan(ann.id, 'free')
  await look()
  await plan(ann.id, 'pro')
  await plan(eve.id, 'free')
  t.same(await look(), ['eve', 'bob', 'ann'], 'left, and came again')
})

eachDatabase(
  t,
  'a date starts one run per contact at its time in the workspace’s zone, even after downtime',
  async (t, database) => {
    const flows = await openFlows(database, { timezone: 'Europe/Berlin' })
    const born = (name: string, birthday: string) => flows.contact(name, { attributes: { birthday } })
    await born('ann', '1990-01-06')
    await born('bob', '1990-01-07T23:30:00Z')
    await born('eve', '2030-01-06')
    await born('old', '1990-01-05')
    await born('odd', 'some day')
    const flow = await flows.flow({
      trigger: 'date',
      config: { field: 'birthday', time: '09:00', repeat: 'yearly' },
    })
    const once = await flows.flow({
      trigger: 'date',
      config: { field: 'attributes.birthday', offsetDays: -1 },
    })
    const look = async (ms: number) => {
      flows.clock.skip(ms)
      await new DateTrigger(flows.parts).run(never)
      await new DateTrigger(flows.parts).run(never)
      await flows.settle()
      return (await flows.runs(flow)).map(({ contactEmail }) => contactEmail.split('@')[0])
    }
    t.same(await look(0), [], 'the day has begun before it was active')
    t.same(await look(21 * HOUR + 59 * MINUTE), [])
    t.same(await look(MINUTE), ['ann'], '09:00 there is 08:00 in UTC')
    t.same(await look(2 * DAY), ['ann', 'bob'], 'the 8th there')
    t.same(await look(363 * DAY), ['ann', 'bob', 'old', 'ann'], 'two days are made up for')
    t.same(
      (await flows.runs(flow)).map(({ triggerData }) => triggerData['date']),
      ['2026-01-06', '2026-01-08', '2027-01-05', '2027-01-06'],
    )
    t.same(await flows.runs(once), [])
  },
)

eachDatabase(t, 'a yearly date works with timestamps and with 29 February', async (t, database) => {
  const flows = await openFlows(database)
  await flows.contact('ann', { attributes: { birthday: '2024-02-29' } })
  const config = { frequency: 'every_time', repeat: 'yearly', time: '00:00' }
  const birthdays = await flows.flow({ trigger: 'date', config: { ...config, field: 'birthday' } })
  const joined = await flows.flow({
    trigger: 'date',
    config: { ...config, field: 'created_at', offsetDays: 1 },
  })
  // Each with the two days before it; what lies between is made up for no more.
  for (const year of [2026, 2027, 2028])
    for (const day of ['01-06', '02-28', '02-27', '03-02'].sort()) {
      flows.clock.skip(Date.parse(`${year}-${day}`) + DAY - 1 - flows.clock.now())
      await new DateTrigger(flows.parts).run(never)
    }
  await flows.settle()
  const days = async (flow: typeof joined) =>
    (await flows.runs(flow)).map(({ triggerData }) => triggerData['date'])
  t.same(await days(birthdays), ['2026-02-28', '2027-02-28', '2028-02-29'])
  t.same(await days(joined), ['2026-01-05', '2027-01-05', '2028-01-05'])
})

eachDatabase(t, 'two events in one batch start one run with frequency once', async (t, database) => {
  const flows = await openFlows(database)
  const flow = await flows.flow({ trigger: 'contact_created' })
  const ann = await flows.contact('ann')
  await database.write(tx =>
    appendEvents(tx, [contactEvent('contact.created', flows.acting, ann, flows.clock.now())]),
  )
  await flows.settle()
  t.equal((await flows.runs(flow)).length, 1)
})
