/**
 * Automations with their steps, as the runner asks for them: read once for all runs of a group, and then read anew.
 *
 * An edit that is made while a group is under way reaches its runs with their next step. Fails: as the database does.
 */
import type { Queries } from '../../db/database.js'
import type { Automation, KeptStep } from '../flows/automation.js'
import { findAutomationBySeq } from '../flows/automation-store.js'
import { findKeptSteps } from '../flows/step-store.js'

export class Flow {
  readonly automation: Automation
  private readonly bySeq = new Map<number, KeptStep>()
  private readonly byId = new Map<string, KeptStep>()
  /** Those that there are, in their order. */
  private readonly steps: readonly KeptStep[]

  constructor(automation: Automation, kept: readonly KeptStep[]) {
    this.automation = automation
    this.steps = kept.filter(({ deletedAt }) => deletedAt === null)
    for (const step of kept) {
      this.bySeq.set(step.seq, step)
      this.byId.set(step.id, step)
    }
  }

  /** The step of this number, or the one that came after it when it was deleted. @returns undefined at the end */
  at(seq: number | null): KeptStep | undefined {
    // Deleted steps lead to steps that came after them; a circle there is none, but none is gone round either.
    for (let next = seq, turns = 0; next !== null && turns <= this.bySeq.size; turns += 1) {
      const step = this.bySeq.get(next)
      if (step === undefined || step.deletedAt === null) return step
      next = step.successor
    }
    return undefined
  }

  /** @returns undefined where no step, deleted or not, has the id; null at the end */
  named(id: string): KeptStep | null | undefined {
    const step = this.byId.get(id)
    return step && (this.at(step.seq) ?? null)
  }

  /** @param pass steps that are passed over */
  after({ seq }: Pick<KeptStep, 'seq'>, pass = 0): KeptStep | undefined {
    const at = this.steps.findIndex(one => one.seq === seq)
    return at < 0 ? undefined : this.steps[at + 1 + pass]
  }
}

export class FlowCache {
  private readonly reader: Queries
  private readonly flows = new Map<number, Promise<Flow | undefined>>()

  constructor(reader: Queries) {
    this.reader = reader
  }

  /** @param seq of the automation */
  get(seq: number): Promise<Flow | undefined> {
    const known = this.flows.get(seq)
    if (known) return known
    const read = this.read(seq)
    this.flows.set(seq, read)
    return read
  }

  /** What is read from now on is as it then is. */
  clear(): void {
    this.flows.clear()
  }

  private async read(seq: number): Promise<Flow | undefined> {
    const automation = await findAutomationBySeq(this.reader, seq)
    return automation && new Flow(automation, await findKeptSteps(this.reader, seq))
  }
}
