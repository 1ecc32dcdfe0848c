/**
 * Automations without a server: the real services, consumer and runner on a database, a clock that the test turns, web servers by a
 * script. `settle` does all work that is due, so that days pass in milliseconds.
 */
import type { Workspace } from '../../src/accounts/workspace-store.js'
import type { Acting } from '../../src/audience/audience-parts.js'
import type { Contact } from '../../src/audience/contacts/contact.js'
import { createContact, type NewContactPatch } from '../../src/audience/contacts/contacts.js'
import { insertContacts } from '../../src/audience/contacts/contact-write-store.js'
import { insertList } from '../../src/audience/lists/list-store.js'
import type { FlowParts } from '../../src/automations/automation-parts.js'
import type { Automation, TriggerType } from '../../src/automations/flows/automation.js'
import { changeAutomation, createAutomation } from '../../src/automations/flows/automations.js'
import { readNewSteps, type FirstStep } from '../../src/automations/flows/edit-steps.js'
import { enter, type Entry } from '../../src/automations/runs/enter.js'
import type { Run, StepRecord } from '../../src/automations/runs/run.js'
import { findRunBySeq } from '../../src/automations/runs/run-store.js'
import { listStepRecords } from '../../src/automations/runs/step-record-store.js'
import { Runner } from '../../src/automations/runs/runner.js'
import { triggerConsumer } from '../../src/automations/triggers/trigger-consumer.js'
import { PlanCache } from '../../src/content/rendering/plan-cache.js'
import { RenderQueue } from '../../src/content/rendering/render-queue.js'
import { runRenderRequest } from '../../src/content/rendering/render-request.js'
import { createTemplate } from '../../src/content/templates/templates.js'
import { orderedIds } from '../../src/core/ids.js'
import type { Database } from '../../src/db/database.js'
import { SHELL } from '../../src/core/actor.js'
import type { EventKind } from '../../src/events/event.js'
import { readEventsAfter, type StoredEvent } from '../../src/events/store.js'
import { SlidingWindow } from '../../src/http/sliding-window.js'
import { SubmissionGatherer } from '../../src/msa/submission-gatherer.js'
import { SenderCache } from '../../src/msa/sender.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { FakeHttpClient } from '../../src/world/net/fake-fetch.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { addWorkspace } from './mailroom.js'

export interface Definition {
  readonly trigger?: TriggerType
  readonly config?: Readonly<Record<string, unknown>>
  readonly steps?: readonly FirstStep[]
}

/** Nothing stays cached. */
const UNCACHED = { monotonic: () => Infinity }

/** @param settings of the workspace */
export async function openFlows(database: Database, settings: Partial<Workspace> = {}) {
  const clock = new FakeClock()
  const random = new SeededRandom()
  const log = new FakeLog()
  const http = new FakeHttpClient()
  const newId = orderedIds(
    () => clock.now(),
    count => random.bytes(count),
  )
  const workspace = await addWorkspace(database, 'w1', {
    ...{ defaultFromEmail: 'shop@shop.test', hourlyLimit: 0, dailyLimit: 0 },
    ...settings,
  })
  const onEvents = () => {}
  const submit = {
    ...{ database, clock, newId, expireMs: 86_400_000 },
    emailWindows: new SlidingWindow(clock),
    onEnqueued: () => {},
  }
  const send = {
    ...submit,
    messageLimit: 1e6,
    gatherer: new SubmissionGatherer(submit),
    senders: new SenderCache(database, UNCACHED, 'notify@mail.test'),
  }
  const parts: FlowParts = {
    ...{ database, clock, newId, onEvents, send, log, random },
    outgoingCalls: () => ({ http }),
    hasCampaign: () => Promise.resolve(false),
    wakeRunner: () => {},
  }
  const acting: Acting = { workspaceId: workspace.id, isSandbox: false, source: 'api' }
  const owner = { workspaceId: workspace.id, isSandbox: false, actor: SHELL }
  // A process that ends forgets all but the database: its next one has another runner.
  let runner = new Runner(parts)
  const consumer = triggerConsumer(parts)
  let seen = 0

  /** Does all work that is due. @throws Error with the operator's log */
  async function settle(): Promise<void> {
    do await runner.runDue()
    while (await follow())
    const faults = log.lines.filter(({ level }) => level === 'error')
    if (faults.length > 0) throw new Error(JSON.stringify(faults.slice(0, 3)))
  }

  /** Brings the consumer what it has not seen yet. @returns whether there was anything */
  async function follow(): Promise<boolean> {
    const events = await readEventsAfter(database.reader, seen, consumer.kinds, consumer.eventsPerTurn ?? 100)
    if (events.length === 0) return false
    await consumer.refresh?.(database.reader, events)
    const concerning = events.filter(event => consumer.concerns?.(event) ?? true)
    if (concerning.length > 0) await database.write(tx => consumer.react(tx, concerning))
    seen = events.at(-1)?.seq ?? seen
    return true
  }

  const plans = new PlanCache()
  const renderQueue = new RenderQueue({
    clock,
    render: request => Promise.resolve(runRenderRequest(request, plans)),
  })
  return {
    ...{ database, clock, random, log, http, parts, acting, owner, workspace },
    follow,
    restart() {
      runner = new Runner(parts)
    },
    get runner() {
      return runner
    },
    settle,
    async pass(ms: number) {
      clock.skip(ms)
      await settle()
    },
    contact: (name: string, more: Omit<NewContactPatch, 'email'> = {}): Promise<Contact> =>
      database.write(tx => createContact(parts, tx, acting, { email: `${name}@one.test`, ...more })),
    /** Many contacts, without events. */
    contacts: (count: number): Promise<Contact[]> =>
      database.write(tx =>
        insertContacts(
          tx.db,
          workspace.id,
          Array.from({ length: count }, (_, at) => ({
            ...{ id: newId(), email: `c${at}@one.test`, firstName: null, lastName: null },
            ...{ attributes: {}, subscribed: true, createdAt: clock.now() },
          })),
        ),
      ),
    template: async (html = '<p>Hello {{first_name}}</p>'): Promise<string> =>
      (await createTemplate({ ...parts, renderQueue }, owner, SHELL, { name: 'T', html })).id,
    async list(name: string) {
      const list = {
        ...{ id: newId(), workspaceId: workspace.id, name, description: null, type: 'static' as const },
        ...{ conditions: null, isPublic: false, doubleOptIn: false },
        ...{ createdAt: clock.now(), updatedAt: clock.now() },
      }
      await database.write(tx => insertList(tx.db, list))
      return list.id
    },
    /** Active. */
    async flow({ trigger = 'manual', config = {}, steps = [] }: Definition): Promise<Automation> {
      const { automation: made } = await createAutomation(parts, owner, {
        ...{ name: 'x', triggerType: trigger, triggerConfig: config },
        steps: readNewSteps(steps, newId),
      })
      const { automation } = await changeAutomation(parts, owner, made.id, { status: 'active' })
      return automation
    },
    enter: (automation: Automation, contact: Contact, triggerData = {}): Promise<Entry[]> =>
      database.write(tx =>
        enter(parts, tx, automation, [{ contactId: contact.id, triggerData }], { triggerType: 'api' }),
      ),
    /** All runs of the automation, in the order of their making. */
    async runs({ seq }: Pick<Automation, 'seq'>): Promise<Run[]> {
      const rows = await database.reader
        .selectFrom('automation_runs')
        .select('seq')
        .where('automation', '=', seq)
        .orderBy('seq')
        .execute()
      const runs = await Promise.all(rows.map(row => findRunBySeq(database.reader, row.seq)))
      return runs.filter(run => run !== undefined)
    },
    recordsOf: (run: Run | undefined): Promise<StepRecord[]> =>
      listStepRecords(database.reader, run?.seq ?? 0, 10_000),
    /** `type outcome` of each line. */
    async trace(run: Run | undefined): Promise<string[]> {
      const records = await listStepRecords(database.reader, run?.seq ?? 0, 10_000)
      return records.map(({ stepType, outcome }) => `${stepType} ${outcome}`)
    },
    async events<Kind extends EventKind>(...kinds: readonly Kind[]): Promise<StoredEvent<Kind>[]> {
      return readEventsAfter(database.reader, 0, kinds, 10_000)
    },
  }
}

export type Flows = Awaited<ReturnType<typeof openFlows>>
