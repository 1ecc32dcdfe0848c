/** What an automation would do for a contact, which leaves no trace, and what runs leave in the counts of steps. */
import t from 'tap'
import { createAutomation } from '../../src/automations/flows/automations.js'
import { readNewSteps, type FirstStep } from '../../src/automations/flows/edit-steps.js'
import { findSteps } from '../../src/automations/flows/step-store.js'
import { describeDryStep } from '../../src/automations/runs/describe-dry-run.js'
import { dryRun, MAX_DRY_STEPS } from '../../src/automations/runs/dry-run.js'
import { countRunsAt, findPathCounts } from '../../src/automations/runs/step-count-store.js'
import type { Contact } from '../../src/audience/contacts/contact.js'
import type { Database } from '../../src/db/database.js'
import { openFlows, type Flows } from '../support/automations.js'
import { eachDatabase } from '../support/db/database.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** Of a draft. */
async function tried(
  flows: Flows,
  contact: Contact,
  steps: readonly FirstStep[],
  more: { readonly config?: object; readonly doEventsHappen?: boolean; readonly triggerData?: object } = {},
) {
  const { parts, owner } = flows
  const { automation } = await createAutomation(parts, owner, {
    ...{ name: 'x', triggerType: 'manual', triggerConfig: { ...more.config } },
    steps: readNewSteps(steps, parts.newId),
  })
  const stored = await findSteps(flows.database.reader, automation.seq)
  const result = await dryRun(parts, {
    ...{ automation, steps: stored, contact, triggerData: { ...more.triggerData } },
    doEventsHappen: more.doEventsHappen === true,
  })
  const texts = result.steps.map((one, at) => describeDryStep(result, one, result.steps[at - 1]))
  return { ...result, texts }
}

async function countAll(database: Database): Promise<number> {
  let rows = 0
  for (const table of [
    'messages',
    'automation_runs',
    'automation_entries',
    'events',
    'contact_tags',
    'tags',
  ] as const)
    rows += (await database.reader.selectFrom(table).selectAll().execute()).length
  return rows
}

eachDatabase(t, 'a dry run tells day by day what would happen, and why', async (t, database) => {
  const flows = await openFlows(database)
  const ann = await flows.contact('ann', { attributes: { plan: 'pro' } })
  const bob = await flows.contact('bob', { attributes: { plan: 'free' } })
  const templateId = await flows.template()
  const before = await countAll(database)
  const steps: FirstStep[] = [
    { step_type: 'tag', config: { tagName: 'seen' } },
    { step_type: 'delay', config: { duration: 2, unit: 'days' } },
    {
      step_type: 'condition',
      config: { field: 'plan', value: 'pro', trueBranchStepId: 'b', falseBranchStepId: 'end' },
    },
    { id: 'b', step_type: 'email', config: { templateId, subject: 'B' } },
    { step_type: 'webhook', config: { url: 'https://shop.test/secret?key=1' } },
  ]
  const forAnn = await tried(flows, ann, steps)
  t.same(forAnn.texts, [
    'day 1: adds the tag seen',
    'day 1: waits 2 days',
    'day 3: checks plan equals pro: yes',
    'day 3: sends the email “B” to ann@one.test, because plan = pro',
    'day 3: sends a POST request to shop.test',
  ])
  t.match(forAnn, { exitReason: 'end_of_flow', refusal: undefined, endsAt: forAnn.startedAt + 2 * DAY })
  const forBob = await tried(flows, bob, steps)
  t.same(forBob.texts.at(-1), 'day 3: checks plan equals pro: no')
  t.equal(forBob.exitReason, 'end_of_flow')
  t.equal(await countAll(database), before, 'nothing was sent, tagged, entered or recorded')
  t.same(flows.http.requests, [], 'nor any web server asked')
})

eachDatabase(t, 'conditions of a dry run see what its earlier steps would change', async (t, database) => {
  const flows = await openFlows(database)
  const ann = await flows.contact('ann')
  const { texts } = await tried(
    flows,
    ann,
    [
      { step_type: 'tag', config: { tagName: 'vip' } },
      {
        step_type: 'condition',
        config: { field: 'tags', operator: 'contains', value: 'vip', falseBranchStepId: 'end' },
      },
      { step_type: 'update_attribute', config: { attributeName: 'level', attributeValue: '{{score}}' } },
    ],
    { triggerData: { score: '7' } },
  )
  t.same(texts.slice(1), [
    'day 1: checks tags contains vip: yes',
    'day 1: sets level to 7, because tags contains vip',
  ])
})

eachDatabase(t, 'awaited events all happen in a dry run, or time out', async (t, database) => {
  const flows = await openFlows(database)
  const ann = await flows.contact('ann')
  const steps: FirstStep[] = [
    {
      step_type: 'wait_for_event',
      config: { eventType: 'purchase', timeoutDays: 3, timeoutAction: 'branch', timeoutBranch: 'late' },
    },
    { step_type: 'tag', config: { tagName: 'bought', nextStepId: 'end' } },
    { id: 'late', step_type: 'tag', config: { tagName: 'late' } },
  ]
  t.same((await tried(flows, ann, steps, { doEventsHappen: true })).texts, [
    'day 1: waits at most 3 days for purchase',
    'day 1: adds the tag bought, because purchase happened',
  ])
  t.same(
    (await tried(flows, ann, steps)).texts.at(-1),
    'day 4: adds the tag late, because purchase did not happen',
  )
})

eachDatabase(
  t,
  'a dry run says why a contact would not enter, and where a step would fail',
  async (t, database) => {
    const flows = await openFlows(database)
    const ann = await flows.contact('ann')
    const conditions = { match: 'all', rules: [{ field: 'plan', operator: 'equals', value: 'pro' }] }
    const result = await tried(flows, ann, [{ step_type: 'email', config: { subject: 'Hi' } }], {
      config: { conditions },
    })
    t.match(result, { refusal: 'conditions', exitReason: 'step_failed' })
    t.match(result.texts, [/^day 1: the email fails: /])
    const left = await flows.contact('left', { subscribed: false })
    const templateId = await flows.template()
    const skipped = await tried(flows, left, [{ step_type: 'email', config: { subject: 'Hi', templateId } }])
    t.same(skipped.texts, ['day 1: the email is skipped: unsubscribed'])
  },
)

eachDatabase(t, 'a dry run through an endless loop stops', async (t, database) => {
  const flows = await openFlows(database)
  const ann = await flows.contact('ann')
  const { steps, exitReason } = await tried(flows, ann, [
    { id: 'a', step_type: 'delay', config: { nextStepId: 'a' } },
  ])
  t.equal(steps.length, MAX_DRY_STEPS)
  t.equal(exitReason, 'step_limit')
})

eachDatabase(
  t,
  'steps count the runs at them and on each path, and the log says why a branch was taken',
  async (t, database) => {
    const flows = await openFlows(database)
    const automation = await flows.flow({
      steps: [
        {
          step_type: 'condition',
          config: {
            field: 'attributes.address.city',
            value: 'Bonn',
            trueBranchStepId: 'yes',
            falseBranchStepId: 'end',
          },
        },
        { id: 'yes', step_type: 'tag', config: { tagName: 'near' } },
        { step_type: 'delay', config: { duration: 1, unit: 'days' } },
      ],
    })
    const near = await flows.contact('near', { attributes: { address: { city: 'Bonn' } } })
    const far = await flows.contact('far')
    await flows.enter(automation, near)
    await flows.enter(automation, far)
    await flows.settle()
    const [condition, tag, delay] = (await findSteps(database.reader, automation.seq)).map(({ seq }) => seq)
    const all = [condition ?? 0, tag ?? 0, delay ?? 0]
    t.same([...(await countRunsAt(database.reader, all))], [[delay, 1]])
    await flows.pass(DAY)
    const counts = await findPathCounts(database.reader, all)
    t.same(
      all.map(seq => counts.get(seq)),
      [{ yes: 1, no: 1 }, { next: 1 }, { next: 1 }],
    )
    const [nearRun, farRun] = await flows.runs(automation)
    const about = { field: 'attributes.address.city', operator: 'equals', value: 'Bonn' }
    t.match((await flows.recordsOf(nearRun))[0]?.detail, { ...about, result: true, actual: 'Bonn' })
    t.match((await flows.recordsOf(farRun))[0]?.detail, { ...about, result: false, actual: null })
    t.equal(nearRun?.flowVersion, 1)
  },
)

eachDatabase(t, 'a step continues with the step it names, or ends the run', async (t, database) => {
  const flows = await openFlows(database)
  const automation = await flows.flow({
    steps: [
      { step_type: 'tag', config: { tagName: 'one', nextStepId: 'three' } },
      { step_type: 'tag', config: { tagName: 'two' } },
      { id: 'three', step_type: 'tag', config: { tagName: 'three', nextStepId: 'end' } },
      { step_type: 'tag', config: { tagName: 'four' } },
    ],
  })
  await flows.enter(automation, await flows.contact('ann'))
  await flows.settle()
  const [run] = await flows.runs(automation)
  t.equal(run?.exitReason, 'end_of_flow')
  t.same(
    (await flows.recordsOf(run)).map(({ detail }) => detail),
    [{ add: 'one' }, { add: 'three' }],
  )
})
