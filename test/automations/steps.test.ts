/** What each type of step does, and how it fails: on both databases, by a clock that the test turns. */
import t from 'tap'
import { findContact, removeContacts } from '../../src/audience/contacts/contacts.js'
import { changeAutomation, deleteAutomation } from '../../src/automations/flows/automations.js'
import { addStep, changeSteps, removeStep } from '../../src/automations/flows/edit-steps.js'
import { findSteps } from '../../src/automations/flows/step-store.js'
import { enter } from '../../src/automations/runs/enter.js'
import { insertSuppression } from '../../src/deliverability/suppressions/suppression-store.js'
import { appendEvents } from '../../src/events/store.js'
import { AppError } from '../../src/core/errors.js'
import type { Database } from '../../src/db/database.js'
import { openFlows } from '../support/automations.js'
import { eachDatabase } from '../support/db/database.js'

/** The methods of a database are not its own properties. */
function withMethods(database: Database): Database {
  return {
    dialect: database.dialect,
    reader: database.reader,
    slowReader: database.slowReader,
    exportReader: database.exportReader,
    storage: database.storage,
    write: (work, options) => database.write(work, options),
    changes: database.changes,
    isTransient: error => database.isTransient(error),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000]

eachDatabase(
  t,
  'steps change lists, tags and attributes, and are skipped if nothing changes',
  async (t, database) => {
    const flows = await openFlows(database)
    const list = await flows.list('News')
    const ann = await flows.contact('ann')
    const steps = [
      { step_type: 'add_to_list', config: { listId: list } },
      { step_type: 'add_to_list', config: { listId: list } },
      { step_type: 'tag', config: { tagName: 'New' } },
      { step_type: 'tag', config: { tagName: 'new' } },
      { step_type: 'update_attribute', config: { attributeName: 'plan', attributeValue: 'pro' } },
      { step_type: 'update_attribute', config: { attributeName: 'first_name', attributeValue: 'Ann' } },
      { step_type: 'remove_from_list', config: { listId: list } },
      { step_type: 'tag', config: { action: 'remove', tagName: 'NEW' } },
      { step_type: 'tag', config: { action: 'remove', tagName: 'never' } },
    ] as const
    const flow = await flows.flow({ steps })
    await flows.enter(flow, ann)
    await flows.settle()
    const [run] = await flows.runs(flow)
    t.match(run, { status: 'completed', exitReason: 'end_of_flow', stepsDone: 9, dueAt: null })
    t.same(await flows.trace(run), [
      'add_to_list completed',
      'add_to_list skipped',
      'tag completed',
      'tag skipped',
      'update_attribute completed',
      'update_attribute completed',
      'remove_from_list completed',
      'tag completed',
      'tag skipped',
    ])
    t.match(await findContact(database.reader, 'w1', { id: ann.id }), {
      firstName: 'Ann',
      attributes: { plan: 'pro' },
    })
    const told = await flows.events('list.member_added', 'tag.added', 'flow.triggered', 'flow.completed')
    t.match(
      told.map(({ kind, payload }) => [kind, 'source' in payload ? payload.source : undefined]),
      [
        ['flow.triggered'],
        ['list.member_added', 'automation'],
        ['tag.added', 'automation'],
        ['flow.completed'],
      ],
    )
    t.match(told.at(-1)?.payload, {
      automationId: flow.id,
      runId: run?.id,
      contactId: ann.id,
      triggerType: 'api',
      exitReason: 'end_of_flow',
    })
    t.match((await flows.database.reader.selectFrom('automations').selectAll().execute())[0], {
      runs_active: 0,
      runs_completed: 1,
    })
  },
)

eachDatabase(
  t,
  'an email step stores its content once, merges it per run and names its automation',
  async (t, database) => {
    const flows = await openFlows(database)
    const templateId = await flows.template('<html><body class="x"><p>Hi {{plan}}</p></body></html>')
    const config = { templateId, subject: 'Hello {{first_name}}', previewText: 'For <you>, {{first_name}}' }
    const flow = await flows.flow({
      steps: [{ step_type: 'email', config }],
      config: { frequency: 'every_time' },
    })
    const contacts = [await flows.contact('ann'), await flows.contact('bob')]
    for (const contact of contacts) await flows.enter(flow, contact, { plan: 'pro' })
    await flows.settle()
    const messages = await database.reader.selectFrom('messages').selectAll().orderBy('recipient').execute()
    t.match(
      messages.map(({ recipient, status, merge_data: data }) => [recipient, status, data]),
      [
        ['ann@one.test', 'sent', '{"plan":"pro"}'],
        ['bob@one.test', 'sent', '{"plan":"pro"}'],
      ],
    )
    const contents = await database.reader.selectFrom('message_contents').selectAll().execute()
    t.equal(contents.length, 1)
    t.match(contents[0], {
      automation_id: flow.id,
      template_id: templateId,
      is_marketing: 1,
      subject: 'Hello {{first_name}}',
    })
    t.match(
      contents[0]?.html,
      /<body class="x"><div style="display:none[^>]*>For &lt;you&gt;, \{\{first_name\}\}<\/div><p>/,
    )
    const [run] = await flows.runs(flow)
    t.match(await flows.recordsOf(run), [{ outcome: 'completed', detail: { message_id: messages[0]?.id } }])
    await flows.pass(2 * HOUR)
    await flows.enter(flow, contacts[0]!)
    await flows.settle()
    t.equal(
      (await database.reader.selectFrom('message_contents').select('id').execute()).length,
      2,
      'stored again',
    )
  },
)

eachDatabase(t, 'an unsubscribed contact gets no email, and the run continues', async (t, database) => {
  const flows = await openFlows(database)
  const mail = {
    step_type: 'email',
    config: { templateId: await flows.template(), subject: 'Hello' },
  } as const
  const tag = { step_type: 'tag', config: { tagName: 'x' } } as const
  const flow = await flows.flow({ steps: [mail, tag] })
  const [ann, bob] = [await flows.contact('ann', { subscribed: false }), await flows.contact('bob')]
  await database.write(tx =>
    insertSuppression(tx.db, {
      ...{ workspaceId: 'w1', email: 'bob@one.test', reason: 'unsubscribe', scope: 'marketing' },
      ...{ sourceMessageId: null, createdAt: flows.clock.now() },
    }),
  )
  for (const contact of [ann, bob]) await flows.enter(flow, contact)
  await flows.settle()
  const runs = await flows.runs(flow)
  for (const run of runs) t.same(await flows.trace(run), ['email skipped', 'tag completed'])
  t.match((await flows.recordsOf(runs[0]))[0]?.detail, { reason: 'unsubscribed' })
  t.match((await flows.recordsOf(runs[1]))[0]?.detail, { reason: 'suppressed' })
  t.same(await database.reader.selectFrom('queue').select('message_id').execute(), [])
})

eachDatabase(
  t,
  'the runs of a deleted contact are cancelled by the event, or by the next step at the latest',
  async (t, database) => {
    const flows = await openFlows(database)
    const flow = await flows.flow({
      steps: [{ step_type: 'delay' }, { step_type: 'tag', config: { tagName: 'x' } }],
    })
    const [ann, bob] = [await flows.contact('ann'), await flows.contact('bob')]
    for (const contact of [ann, bob]) await flows.enter(flow, contact)
    await flows.settle()
    await database.write(tx => removeContacts(flows.parts, tx, flows.acting, [ann]))
    await flows.settle()
    await database.write(async tx => {
      await tx.db.deleteFrom('contacts').where('id', '=', bob.id).execute()
    })
    await flows.pass(DAY)
    t.match(
      (await flows.runs(flow)).map(({ status, exitReason }) => [status, exitReason]),
      [
        ['cancelled', 'contact_deleted'],
        ['cancelled', 'contact_deleted'],
      ],
    )
  },
)

eachDatabase(
  t,
  'a webhook step records the response and is retried three times after a failure',
  async (t, database) => {
    const flows = await openFlows(database)
    const config = {
      url: 'https://hooks.example/x',
      headers: { 'X-Token': 'secret' },
      body: { mail: '{{email}}', plan: '{{plan}}', n: 5 },
    }
    const flow = await flows.flow({
      steps: [{ step_type: 'webhook', config }],
      config: { frequency: 'every_time' },
    })
    const ann = await flows.contact('ann')
    flows.http.answer({ status: 201, body: Buffer.from('made') })
    await flows.enter(flow, ann, { plan: 'pro' })
    await flows.settle()
    const [good] = await flows.runs(flow)
    t.match(await flows.recordsOf(good), [
      { outcome: 'completed', detail: { status_code: 201, body: 'made' } },
    ])
    t.match(flows.http.requests, [
      {
        method: 'POST',
        url: 'https://hooks.example/x',
        headers: {
          'x-token': 'secret',
          'content-type': 'application/json',
          'idempotency-key': `${good?.id}.0.1.0`,
        },
        body: '{"mail":"ann@one.test","plan":"pro","n":5}',
        maxBytes: 1_024,
      },
    ])
    t.equal(flows.http.requests[0]?.namedBy, undefined, 'within the reach of strangers')
    for (const answer of [
      { status: 500, body: Buffer.from('broken') },
      new Error('refused'),
      { status: 503 },
    ])
      flows.http.answer(answer)
    flows.http.answer({ status: 404 })
    await flows.enter(flow, ann)
    await flows.settle()
    for (const wait of [MINUTE, 5 * MINUTE, 25 * MINUTE]) await flows.pass(1.11 * wait)
    const [, bad] = await flows.runs(flow)
    t.match(bad, {
      status: 'failed',
      exitReason: 'step_failed',
      error: 'the web server responded with status 404',
    })
    t.match(await flows.recordsOf(bad), [
      { outcome: 'retrying', detail: { status_code: 500, body: 'broken' } },
      { outcome: 'retrying', detail: { error: 'no response: refused' } },
      { outcome: 'retrying', detail: { status_code: 503 } },
      { outcome: 'failed', detail: { status_code: 404 } },
    ])
    t.same(
      flows.http.requests.slice(1).map(one => one.headers?.['idempotency-key']?.slice(-1)),
      ['0', '1', '1', '1'],
      'an answer of failure ends a key; silence and a gateway do not',
    )
    t.match((await database.reader.selectFrom('automations').selectAll().execute())[0], {
      ...{ runs_active: 0, runs_completed: 1, runs_failed: 1 },
    })
  },
)

eachDatabase(
  t,
  'merge tags work in webhook url and headers, tag names and attribute values',
  async (t, database) => {
    const flows = await openFlows(database)
    const webhook = {
      step_type: 'webhook',
      config: {
        url: 'https://hooks.example/of/{{email}}/{{#if vip}}vip{{else}}all{{/if}}?name={{first_name}}&next={{next|none}}',
        method: 'GET',
        headers: { 'X-Name': 'for {{first_name|nobody}}', 'X-Plain': 'e' },
      },
    } as const
    const steps = [
      webhook,
      { step_type: 'tag', config: { tagName: ' from {{city|nowhere|uppercase}} ' } },
      { step_type: 'tag', config: { tagName: '{{nothing}}' } },
      {
        step_type: 'update_attribute',
        config: { attributeName: 'greeting', attributeValue: 'Hi {{first_name}}' },
      },
    ] as const
    const flow = await flows.flow({ steps, config: { frequency: 'every_time' } })
    const ann = await flows.contact('ann', { firstName: 'Zoë\r\nX-Evil: 1' })
    flows.http.answer({}).answer({})
    await flows.enter(flow, ann, { city: 'Rome', vip: true, next: 'https://evil.example/?a=b&c' })
    await flows.settle()
    const [first] = await flows.runs(flow)
    t.match(first, { status: 'completed' })
    t.match(flows.http.requests[0], {
      url:
        'https://hooks.example/of/ann%40one.test/vip' +
        '?name=Zo%C3%AB%0D%0AX-Evil%3A%201&next=https%3A%2F%2Fevil.example%2F%3Fa%3Db%26c',
      headers: { 'x-name': 'for Zo%C3%AB X-Evil: 1', 'x-plain': 'e' },
    })
    t.match(
      (await flows.recordsOf(first)).map(({ outcome, detail }) => [outcome, detail]),
      [
        ['completed', {}],
        ['completed', { add: 'from ROME' }],
        ['skipped', { reason: 'tagName is empty' }],
        ['completed', {}],
      ],
    )
    t.match(await findContact(database.reader, 'w1', { id: ann.id }), {
      attributes: { greeting: 'Hi Zoë\r\nX-Evil: 1' },
    })
  },
)

eachDatabase(
  t,
  'merged values cannot change the host or escape the path of a webhook url',
  async (t, database) => {
    const flows = await openFlows(database)
    const flow = await flows.flow({
      steps: [{ step_type: 'webhook', config: { url: 'https://hooks.example/users/{{id}}/log' } }],
      config: { frequency: 'every_time' },
    })
    const ann = await flows.contact('ann')
    for (const id of ['/evil', '\\evil', '@evil.example', '%2e%2e', '..%2f', '?x', '#x'])
      await flows.enter(flow, ann, { id })
    for (let count = 0; count < 7; count += 1) flows.http.answer({})
    await flows.settle()
    for (const { url } of flows.http.requests) {
      t.equal(new URL(url).host, 'hooks.example')
      t.match(new URL(url).pathname, /^\/users\/[^/]+\/log$/)
    }
    await flows.enter(flow, ann, { id: '..' })
    await flows.settle()
    t.equal(flows.http.requests.length, 7)
    const run = (await flows.runs(flow)).at(-1)
    t.match((await flows.recordsOf(run))[0], { outcome: 'retrying', detail: { error: /path segment/ } })
  },
)

eachDatabase(
  t,
  'an email whose subject merges to nothing is skipped, and the run continues',
  async (t, database) => {
    const flows = await openFlows(database)
    const config = { templateId: await flows.template(), subject: '{{title}} {{first_name}}' }
    const flow = await flows.flow({
      steps: [
        { step_type: 'email', config },
        { step_type: 'tag', config: { tagName: 'x' } },
      ],
    })
    await flows.enter(flow, await flows.contact('nobody'))
    await flows.enter(flow, await flows.contact('titled'), { title: 'News' })
    await flows.enter(flow, await flows.contact('ann', { firstName: 'Ann' }))
    await flows.settle()
    const records = await Promise.all((await flows.runs(flow)).map(run => flows.recordsOf(run)))
    t.match(
      records.map(([mail, tag]) => [mail?.outcome, mail?.detail?.['reason'], tag?.outcome]),
      [
        ['skipped', 'empty_subject', 'completed'],
        ['completed', undefined, 'completed'],
        ['completed', undefined, 'completed'],
      ],
    )
  },
)

eachDatabase(
  t,
  'a paused automation sends no requests; one in progress at the pause counts and is not repeated',
  async (t, database) => {
    const flows = await openFlows(database)
    const steps = [
      { step_type: 'delay', config: { duration: 1, unit: 'hours' } },
      { step_type: 'webhook', config: { url: 'https://hooks.example/1' } },
      { step_type: 'webhook', config: { url: 'https://hooks.example/2' } },
    ] as const
    const flow = await flows.flow({ steps })
    const { parts, owner, http } = flows
    const become = (status: 'active' | 'paused') => changeAutomation(parts, owner, flow.id, { status })
    await flows.enter(flow, await flows.contact('ann'))
    await flows.settle()
    await become('paused')
    await flows.pass(2 * HOUR)
    t.same(http.requests, [], 'no request is made while it is paused')
    const [parked] = await flows.runs(flow)
    t.match(parked, { status: 'active', dueAt: null, stepsDone: 1, failures: 0 })

    http.answer({ status: 200 })
    http.onRequest = () => become('paused')
    await become('active')
    await flows.settle()
    t.same(
      http.requests.map(({ url }) => url),
      ['https://hooks.example/1'],
    )
    const [after] = await flows.runs(flow)
    t.match(after, { status: 'active', dueAt: null, stepsDone: 2 })

    http.answer({ status: 500 }).answer({ status: 200 })
    await become('active')
    await flows.settle()
    t.match((await flows.runs(flow))[0], { dueAt: null, failures: 1 }, 'a failure counts as well')
    http.onRequest = () => Promise.resolve()
    await become('active')
    await flows.pass(2 * MINUTE)
    t.same(
      http.requests.map(({ url }) => url.slice(-1)),
      ['1', '2', '2'],
    )
    t.same(await flows.trace((await flows.runs(flow))[0]), [
      'delay waiting',
      'delay completed',
      'webhook completed',
      'webhook retrying',
      'webhook completed',
    ])
  },
)

eachDatabase(
  t,
  'a step blocked by limits or a full disk waits and does not count as a failure',
  async (t, database) => {
    const flows = await openFlows(database, { hourlyLimit: 1 })
    const config = { templateId: await flows.template(), subject: 'Hello' }
    const flow = await flows.flow({ steps: [{ step_type: 'email', config }] })
    for (const name of ['ann', 'bob']) await flows.enter(flow, await flows.contact(name))
    await flows.settle()
    // Both are due at the same time: either may be first.
    const shown = async () =>
      (await flows.runs(flow)).map(({ status, failures }) => `${status} ${failures}`).sort()
    t.same(await shown(), ['active 0', 'completed 0'])
    await flows.pass(HOUR)
    t.same(await shown(), ['completed 0', 'completed 0'])
  },
)

eachDatabase(
  t,
  'a busy database delays a run by seconds and does not count as a failure',
  async (t, database) => {
    let failing = 0
    const flows = await openFlows({
      ...withMethods(database),
      write: (work, options) => {
        if (failing === 0) return database.write(work, options)
        failing -= 1
        return Promise.reject(new AppError('unavailable', 'too busy'))
      },
    })
    const flow = await flows.flow({ steps: [{ step_type: 'tag', config: { tagName: 'x' } }] })
    const ann = await flows.contact('ann')
    await flows.settle()
    for (const refused of [1, 2]) {
      await flows.enter(flow, refused === 1 ? ann : await flows.contact('bob'))
      failing = refused
      await flows.settle()
      const run = (await flows.runs(flow)).at(-1)
      t.match(run, { status: 'active', failures: 0, dueAt: flows.clock.now() + 5_000 })
      t.same(await flows.recordsOf(run), [])
      await flows.pass(5_000)
      t.match((await flows.runs(flow)).at(-1), { status: 'completed' })
    }
  },
)

eachDatabase(t, 'a wait ends with the event or after its timeout', async (t, database) => {
  const flows = await openFlows(database)
  const wait = (action: string, more: object = {}) => ({
    step_type: 'wait_for_event' as const,
    config: { eventType: 'purchase', timeoutDays: 2, timeoutAction: action, ...more },
  })
  const tag = (tagName: string) => ({ step_type: 'tag' as const, id: tagName, config: { tagName } })
  const ways = {
    continue: ['wait_for_event waiting', 'wait_for_event completed', 'a', 'b'],
    skip: ['wait_for_event waiting', 'wait_for_event completed', 'b'],
    branch: ['wait_for_event waiting', 'wait_for_event completed', 'b'],
  }
  const ann = await flows.contact('ann')
  const made = new Map<string, Awaited<ReturnType<typeof flows.flow>>>()
  for (const action of Object.keys(ways)) {
    const branch = action === 'branch' ? { timeoutBranch: 'b' } : {}
    const flow = await flows.flow({ steps: [wait(action, branch), tag(`a`), tag(`b`)] })
    made.set(action, flow)
    await flows.enter(flow, ann)
  }
  const bob = await flows.contact('bob')
  const early = await flows.flow({ steps: [wait('skip'), tag('a')] })
  await flows.enter(early, bob)
  await flows.settle()
  await database.write(async tx => {
    const payload = {
      ...{ id: flows.parts.newId(), contact_id: bob.id, value: 1, currency: 'EUR', metadata: {} },
      ...{ message_id: null, campaign_id: null, is_sandbox: false, created_at: '2026-01-05T10:00:00.000Z' },
    }
    await appendEvents(tx, [
      {
        kind: 'conversion.created',
        ...{ workspaceId: 'w1', messageId: null, isSandbox: false, occurredAt: flows.clock.now(), payload },
      },
    ])
  })
  await flows.settle()
  t.match((await flows.runs(early))[0], { status: 'completed' })
  t.same(await flows.trace((await flows.runs(early))[0]), [
    'wait_for_event waiting',
    'wait_for_event completed',
    'tag completed',
  ])
  await flows.pass(2 * DAY - 1)
  for (const flow of made.values()) t.match((await flows.runs(flow))[0], { status: 'active', wait: 'event' })
  await flows.pass(1)
  for (const [action, expected] of Object.entries(ways)) {
    const [run] = await flows.runs(made.get(action)!)
    const records = await flows.recordsOf(run)
    const seen = records.map(({ stepType, outcome, detail }) =>
      stepType === 'tag' ? String(detail?.['add']) : `${stepType} ${outcome}`,
    )
    t.same(seen, expected, action)
  }
})

eachDatabase(
  t,
  'a contact moves to another automation, and leaves this one or stays in both',
  async (t, database) => {
    const flows = await openFlows(database)
    const target = await flows.flow({ steps: [{ step_type: 'delay' }] })
    const move = (exitCurrentFlow: boolean) => ({
      step_type: 'move_to_flow' as const,
      config: { targetFlowId: target.id, exitCurrentFlow },
    })
    const tag = { step_type: 'tag', config: { tagName: 'x' } } as const
    const [leaving, staying] = [
      await flows.flow({ steps: [move(true), tag] }),
      await flows.flow({ steps: [move(false), tag] }),
    ]
    const [ann, bob] = [await flows.contact('ann'), await flows.contact('bob')]
    await flows.enter(leaving, ann, { plan: 'pro' })
    await flows.enter(staying, bob)
    await flows.settle()
    t.match((await flows.runs(leaving))[0], { status: 'completed', exitReason: 'moved_to_flow' })
    t.same(await flows.trace((await flows.runs(leaving))[0]), ['move_to_flow completed'])
    t.same(await flows.trace((await flows.runs(staying))[0]), ['move_to_flow completed', 'tag completed'])
    // Two runs go on at once; either may move first.
    const moved = new Map((await flows.runs(target)).map(run => [run.contactId, run]))
    t.equal(moved.size, 2)
    t.match(moved.get(ann.id), { triggerType: 'move_to_flow', triggerData: { plan: 'pro' }, stepsDone: 2 })
    t.same(moved.get(bob.id)?.triggerData, {})
    await flows.enter(staying, ann)
    await flows.settle()
    t.match((await flows.recordsOf((await flows.runs(staying))[1]))[0], {
      ...{ outcome: 'skipped', detail: { refused: 'inside_already' } },
    })
    await changeAutomation(flows.parts, flows.owner, target.id, { status: 'paused' })
    const eve = await flows.contact('eve')
    await flows.enter(staying, eve)
    await flows.settle()
    t.match(await flows.recordsOf((await flows.runs(staying))[2]), [
      { outcome: 'retrying', detail: { error: 'the target automation is paused, not active' } },
    ])
  },
)

eachDatabase(t, 'automations that lead to each other end at the step limit', async (t, database) => {
  const flows = await openFlows(database)
  const config = { frequency: 'every_time' }
  const there = await flows.flow({ config })
  const back = await flows.flow({
    config,
    steps: [{ step_type: 'move_to_flow', config: { targetFlowId: there.id, exitCurrentFlow: true } }],
  })
  await database.write(async tx => {
    const move = { step_type: 'move_to_flow' as const, config: { targetFlowId: back.id } }
    await addStep(tx.db, there.seq, move, flows.parts.newId)
  })
  const { id: contactId } = await flows.contact('ann')
  const way = { triggerType: 'api', stepsDone: 970 }
  await database.write(tx => enter(flows.parts, tx, there, [{ contactId, triggerData: {} }], way))
  await flows.settle()
  const runs = [...(await flows.runs(there)), ...(await flows.runs(back))]
  t.equal(runs.length, 31)
  t.equal(runs.filter(({ exitReason }) => exitReason === 'step_limit').length, 1)
  t.ok(runs.every(({ stepsDone }) => stepsDone <= 1_000))
})

eachDatabase(t, 'runs at a deleted step continue at once', async (t, database) => {
  const flows = await openFlows(database)
  const steps = [
    { step_type: 'tag', config: { tagName: 'a' } },
    { step_type: 'delay', config: { duration: 30 } },
    { step_type: 'delay', config: { duration: 20 } },
    { step_type: 'tag', config: { tagName: 'b' } },
  ] as const
  const flow = await flows.flow({ steps })
  await flows.enter(flow, await flows.contact('ann'))
  await flows.settle()
  const [, first, second, last] = await findSteps(database.reader, flow.seq)
  const remove = (id: string | undefined) =>
    database.write(tx => removeStep(tx.db, flow.seq, id ?? '', flows.clock.now()))
  await remove(first?.id)
  await flows.settle()
  t.match((await flows.runs(flow))[0], {
    step: second?.seq,
    wait: 'time',
    dueAt: flows.clock.now() + 20 * DAY,
  })
  await remove(second?.id)
  await remove(last?.id)
  await flows.settle()
  t.match((await flows.runs(flow))[0], { status: 'completed', exitReason: 'end_of_flow' })
  t.same(await flows.trace((await flows.runs(flow))[0]), ['tag completed', 'delay waiting', 'delay waiting'])
})

eachDatabase(t, 'waiting runs see edits of later steps', async (t, database) => {
  const flows = await openFlows(database)
  const tag = (tagName: string) => ({ step_type: 'tag' as const, config: { tagName } })
  const flow = await flows.flow({ steps: [{ step_type: 'delay' }, tag('a'), tag('b')] })
  await flows.enter(flow, await flows.contact('ann'))
  await flows.settle()
  const [wait, a, b] = await findSteps(database.reader, flow.seq)
  await database.write(tx =>
    changeSteps(
      tx.db,
      flow.seq,
      [
        { id: wait?.id ?? '', step_type: 'tag', config: { tagName: 'instead' } },
        { id: b?.id ?? '', position: 1, config: { tagName: 'c' } },
        { id: a?.id ?? '', position: 2 },
      ],
      () => '',
    ),
  )
  await flows.pass(DAY)
  const records = await flows.recordsOf((await flows.runs(flow))[0])
  t.same(
    records.map(({ stepType, detail }) => [stepType, detail?.['add']]),
    [
      ['delay', undefined],
      ['tag', 'instead'],
      ['tag', 'c'],
      ['tag', 'a'],
    ],
  )
})

eachDatabase(
  t,
  'a step that gets another type while people wait at it is taken, and not recorded as completed',
  async (t, database) => {
    const flows = await openFlows(database)
    const waiting = { delay: 'delay', event: 'wait_for_event' } as const
    const types = {
      email: { templateId: await flows.template(), subject: 'Hello' },
      tag: { tagName: 'instead' },
      delay: { duration: 2 },
      wait_for_event: { eventType: 'purchase', timeoutDays: 2, timeoutAction: 'skip' },
    } as const
    for (const [kind, before] of Object.entries(waiting))
      for (const [type, config] of Object.entries(types)) {
        if (type === before) continue
        const what = `${before} to ${type}`
        const waits = before === 'delay' ? { duration: 1 } : { eventType: 'purchase', timeoutDays: 1 }
        const flow = await flows.flow({
          steps: [
            { step_type: before, config: waits },
            { step_type: 'tag', config: { tagName: 'end' } },
          ],
        })
        await flows.enter(flow, await flows.contact(`${kind}-${type}`))
        await flows.settle()
        const [{ id } = { id: '' }] = await findSteps(database.reader, flow.seq)
        const change = [{ id, step_type: type as keyof typeof types, config }]
        await database.write(tx => changeSteps(tx.db, flow.seq, change, () => ''))
        await flows.pass(DAY)
        const run = (await flows.runs(flow))[0]
        if (type === 'email' || type === 'tag') {
          t.same(await flows.trace(run), [`${before} waiting`, `${type} completed`, 'tag completed'], what)
          continue
        }
        t.match(run, { status: 'active', dueAt: flows.clock.now() + 2 * DAY }, what)
        t.same(await flows.trace(run), [`${before} waiting`, `${type} waiting`], what)
        await flows.pass(2 * DAY)
        const end = type === 'delay' ? ['tag completed'] : []
        const trace = await flows.trace((await flows.runs(flow))[0])
        t.same(trace, [`${before} waiting`, `${type} waiting`, `${type} completed`, ...end], what)
      }
    t.equal((await flows.events('email.accepted')).length, 2, 'each mail is sent once')
  },
)

eachDatabase(
  t,
  'a run whose wait is over when its step is deleted takes the step after it',
  async (t, database) => {
    const flows = await openFlows(database)
    const tag = { step_type: 'tag', config: { tagName: 'end' } } as const
    const flow = await flows.flow({ steps: [{ step_type: 'delay' }, { step_type: 'delay' }, tag] })
    await flows.enter(flow, await flows.contact('ann'))
    await flows.settle()
    const [first] = await findSteps(database.reader, flow.seq)
    flows.clock.skip(DAY)
    await database.write(tx => removeStep(tx.db, flow.seq, first?.id ?? '', flows.clock.now()))
    await flows.settle()
    const [run] = await flows.runs(flow)
    t.match(run, { wait: 'time', dueAt: flows.clock.now() + DAY })
    t.same(await flows.trace(run), ['delay waiting', 'delay waiting'])
  },
)

eachDatabase(t, 'a run takes at most a thousand steps', async (t, database) => {
  const flows = await openFlows(database)
  const flow = await flows.flow({
    steps: [
      { id: 'start', step_type: 'delay', config: { duration: 1, unit: 'minutes' } },
      { step_type: 'condition', config: { field: 'email', value: 'x', falseBranchStepId: 'start' } },
    ],
  })
  const { id: contactId } = await flows.contact('ann')
  const way = { triggerType: 'api', stepsDone: 980 }
  await database.write(tx => enter(flows.parts, tx, flow, [{ contactId, triggerData: {} }], way))
  for (let minute = 0; minute < 15; minute += 1) await flows.pass(MINUTE)
  const [run] = await flows.runs(flow)
  t.match(run, { status: 'failed', exitReason: 'step_limit', stepsDone: 1_000 })
  t.equal((await flows.recordsOf(run)).length, 30, 'a delay has two lines')
})

eachDatabase(
  t,
  'a pause parks due runs, and runs of a deleted automation are cancelled in batches',
  async (t, database) => {
    const flows = await openFlows(database)
    const flow = await flows.flow({
      steps: [{ step_type: 'delay' }, { step_type: 'tag', config: { tagName: 'x' } }],
    })
    const contacts = await flows.contacts(210)
    const entrants = contacts.map(({ id }) => ({ contactId: id, triggerData: {} }))
    const way = { triggerType: 'api' }
    await database.write(tx => enter(flows.parts, tx, flow, entrants, way))
    await flows.settle()
    await changeAutomation(flows.parts, flows.owner, flow.id, { status: 'paused' })
    await flows.pass(2 * DAY)
    const standing = await flows.runs(flow)
    t.ok(
      standing.every(
        ({ dueAt, parkedDueAt, status }) => dueAt === null && parkedDueAt !== null && status === 'active',
      ),
    )
    await changeAutomation(flows.parts, flows.owner, flow.id, { status: 'active' })
    await flows.settle()
    t.ok((await flows.runs(flow)).every(({ status }) => status === 'completed'))
    const other = await flows.flow({ steps: [{ step_type: 'delay' }] })
    await database.write(tx => enter(flows.parts, tx, other, entrants, way))
    await flows.settle()
    await deleteAutomation(flows.parts, flows.owner, other.id)
    await flows.settle()
    t.ok((await flows.runs(other)).every(({ exitReason }) => exitReason === 'automation_deleted'))
    t.match(
      (await database.reader.selectFrom('automations').selectAll().orderBy('seq').execute()).map(row => [
        ...[row.runs_active, row.runs_completed, row.runs_cancelled],
      ]),
      [
        [0, 210, 0],
        [0, 0, 210],
      ],
    )
  },
)
