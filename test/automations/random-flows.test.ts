/**
 * Random flows with random events, edits and kills: every run ends or waits, no step is executed twice, and what a step did is there
 * exactly where its mark is. Each seed is another story.
 */
import t, { type Test } from 'tap'
import { removeContacts } from '../../src/audience/contacts/contacts.js'
import type { Contact } from '../../src/audience/contacts/contact.js'
import type { Automation } from '../../src/automations/flows/automation.js'
import { changeAutomation } from '../../src/automations/flows/automations.js'
import { removeStep, type FirstStep } from '../../src/automations/flows/edit-steps.js'
import { findSteps } from '../../src/automations/flows/step-store.js'
import type { Database } from '../../src/db/database.js'
import { appendEvents } from '../../src/events/store.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { openFlows, type Flows } from '../support/automations.js'
import { sqliteDatabase } from '../support/db/database.js'
import { often } from '../support/long.js'

const DAY = 86_400_000
const SEEDS = Array.from({ length: often(2, 6) }, (_, at) => at + 1)

/** A database whose process is killed at some write: before its commit, or when that is on disk and nobody has heard of it. */
class Killable {
  readonly database: Database
  private left = Infinity
  private isCommitted = false

  constructor(database: Database) {
    this.database = {
      ...database,
      reader: database.reader,
      slowReader: database.slowReader,
      exportReader: database.exportReader,
      write: async (work, options) => {
        this.left -= 1
        if (this.left > 0) return database.write(work, options)
        if (this.left === 0 && this.isCommitted) await database.write(work, options)
        throw new Error('the process is gone')
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }
  }

  /** @param writes that are still made */
  killAfter(writes: number, isCommitted: boolean): void {
    this.left = writes + 1
    this.isCommitted = isCommitted
  }

  revive(): void {
    this.left = Infinity
  }
}

for (const seed of SEEDS)
  t.test(`a random story ends well: ${seed}`, async t => {
    const database = await sqliteDatabase(t)
    const killable = new Killable(database)
    const flows = await openFlows(killable.database)
    const random = new SeededRandom(seed)
    const below = (limit: number) => Math.floor(limit * random.fraction())
    const templateId = await flows.template()
    const made: Automation[] = []
    for (let at = 0; at < 4; at += 1)
      made.push(await flows.flow({ ...triggerOf(below(3)), steps: randomSteps(below, templateId, made) }))
    const contacts: Contact[] = []
    for (let turn = 0; turn < 60; turn += 1) {
      await happen(flows, below, made, contacts, turn)
      for (let calls = below(3); calls > 0; calls -= 1)
        flows.http.answer(below(2) === 0 ? { status: 200 } : { status: 500 })
      flows.clock.skip(below(3) * below(5) * (DAY / 3))
      killable.killAfter(below(60), below(2) === 0)
      await flows.runner.runDue().catch(() => {})
      killable.revive()
      flows.restart()
      await flows.runner.runDue()
      while (await flows.follow());
    }
    for (const automation of made)
      await changeAutomation(flows.parts, flows.owner, automation.id, { status: 'active' }).catch(() => {})
    for (let day = 0; day < 120; day += 4) {
      flows.clock.skip(4 * DAY)
      await flows.runner.runDue()
    }
    await judge(t, flows, made)
  })

function triggerOf(which: number) {
  const config = { frequency: 'every_time' }
  return [
    { config },
    { trigger: 'contact_created' as const, config },
    { trigger: 'tag_added' as const, config: { tagName: 'tag0' } },
  ][which]
}

/** Branches lead on, so that a step is executed once at most in a run. */
function randomSteps(
  below: (limit: number) => number,
  templateId: string,
  others: readonly Automation[],
): FirstStep[] {
  const length = 1 + below(9)
  return Array.from({ length }, (_, at): FirstStep => {
    const later = () => (at + 1 < length ? `s${at + 1 + below(length - at - 1)}` : null)
    const id = `s${at}`
    const target = others[below(others.length + 1)]
    switch (below(8)) {
      case 0:
        return { id, step_type: 'email', config: { templateId, subject: 'Hello' } }
      case 1:
        return { id, step_type: 'delay', config: { duration: 1 + below(5), unit: 'days' } }
      case 2: {
        const branches = { trueBranchStepId: later(), falseBranchStepId: later() }
        return {
          id,
          step_type: 'condition',
          config: { field: 'seen', operator: 'equals', value: 'x', ...branches },
        }
      }
      case 3: {
        const timeoutBranch = later()
        const action = timeoutBranch === null ? 'skip' : 'branch'
        const wait = { eventType: 'purchase', timeoutDays: 1 + below(5), timeoutBranch }
        return { id, step_type: 'wait_for_event', config: { ...wait, timeoutAction: action } }
      }
      case 4:
        return { id, step_type: 'update_attribute', config: { attributeName: 'seen', attributeValue: 'x' } }
      case 5:
        return { id, step_type: 'webhook', config: { url: 'https://hooks.example/' } }
      case 6:
        if (target)
          return {
            ...{ id, step_type: 'move_to_flow' },
            config: { targetFlowId: target.id, exitCurrentFlow: below(2) === 0 },
          }
        return { id, step_type: 'delay', config: { duration: 1, unit: 'minutes' } }
      default:
        return { id, step_type: 'tag', config: { tagName: `tag${below(3)}` } }
    }
  })
}

async function happen(
  flows: Flows,
  below: (limit: number) => number,
  made: readonly Automation[],
  contacts: Contact[],
  turn: number,
): Promise<void> {
  const { parts, owner, acting, database } = flows
  const automation = made[below(made.length)] as Automation
  const contact = contacts[below(contacts.length)]
  switch (contact ? below(8) : 0) {
    case 0:
    case 1:
    case 2:
      contacts.push(await flows.contact(`c${turn}`))
      break
    case 3:
    case 4: {
      const { status } = (await database.reader
        .selectFrom('automations')
        .select('status')
        .where('seq', '=', automation.seq)
        .executeTakeFirstOrThrow()) as { status: string }
      if (contact && status === 'active') await flows.enter(automation, contact)
      break
    }
    case 5:
      await database.write(tx =>
        appendEvents(tx, [
          {
            kind: 'conversion.created',
            ...{ workspaceId: 'w1', messageId: null, isSandbox: false, occurredAt: flows.clock.now() },
            payload: {
              ...{
                id: parts.newId(),
                contact_id: contact?.id ?? '',
                value: 1,
                currency: 'EUR',
                metadata: {},
              },
              ...{
                message_id: null,
                campaign_id: null,
                is_sandbox: false,
                created_at: '2026-01-05T10:00:00.000Z',
              },
            },
          },
        ]),
      )
      break
    case 6: {
      const steps = await findSteps(database.reader, automation.seq)
      const step = steps[below(steps.length)]
      if (step && steps.length > 1)
        await database.write(tx => removeStep(tx.db, automation.seq, step.id, flows.clock.now()))
      break
    }
    default:
      if (below(3) === 0 && contact) {
        contacts.splice(contacts.indexOf(contact), 1)
        await database.write(tx => removeContacts(parts, tx, acting, [contact]))
      } else
        for (const status of ['paused', 'active'] as const)
          await changeAutomation(parts, owner, automation.id, { status }).catch(() => {})
  }
}

async function judge(t: Test, flows: Flows, made: readonly Automation[]): Promise<void> {
  const { reader } = flows.database
  const counted = await reader.selectFrom('automations').selectAll().orderBy('seq').execute()
  let [total, mails] = [0, 0]
  const twice: string[] = []
  for (const [at, automation] of made.entries()) {
    const runs = await flows.runs(automation)
    total += runs.length
    for (const run of runs) {
      const records = await flows.recordsOf(run)
      mails += records.filter(
        ({ stepType, outcome }) => stepType === 'email' && outcome === 'completed',
      ).length
      for (const outcomes of [['completed', 'skipped', 'failed'], ['waiting']]) {
        const steps = records.filter(({ outcome }) => outcomes.includes(outcome)).map(({ stepId }) => stepId)
        if (new Set(steps).size < steps.length) twice.push(run.id)
      }
      t.ok(run.endedAt !== null || (run.dueAt ?? run.parkedDueAt) !== null, 'it ends, or is due')
      t.ok(run.stepsDone <= 1_000)
    }
    const of = (status: string) => runs.filter(run => run.status === status).length
    t.match(counted[at], {
      runs_active: of('active'),
      runs_completed: of('completed'),
      runs_failed: of('failed'),
      runs_cancelled: of('cancelled'),
    })
    t.equal(of('active'), 0, 'nothing here lasts that long')
  }
  t.ok(total > 10, `${total} runs`)
  t.same(twice, [], 'no step is executed twice')
  const messages = await reader.selectFrom('messages').select('id').where('status', '=', 'sent').execute()
  t.equal(messages.length, mails, 'a mail for each mark, a mark for each mail')
}
