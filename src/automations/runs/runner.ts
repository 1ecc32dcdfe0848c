/**
 * The runner: takes runs that are due, a bounded group at a time, and brings each on until it waits or ends.
 *
 * A job that lasts as long as the appliance. Runs that wait cost nothing: it sleeps until the next one is due, or until it is told of
 * one, or another process has written. Steps that may take seconds have places of their own, so that nobody waits for somebody else's
 * web server, and where more is due than can be taken at a time workspaces take turns. Whatever it has in hand when the process is gone is due again at the next start. Fails: never; while the database does
 * not write it tries again.
 */
import { AppError, describeError } from '../../core/errors.js'
import { isStorageError } from '../../events/set-aside-store.js'
import { pauseFor } from '../../world/time/clock.js'
import type { AutomationParts, FlowParts } from '../automation-parts.js'
import { findLiveWorkspace } from '../live-workspace.js'
import { STEP_TYPE } from '../steps/step-types.js'
import { advance, UNAVAILABLE_MS } from './advance.js'
import { FlowCache, type Flow } from './flow-cache.js'
import type { Run } from './run.js'
import { findDue, findDueOf, findRunBySeq, listOwnersOfRuns, moveRun, nextDueAt } from './run-store.js'
import { settleSome } from './settle-runs.js'

/** Runs that are looked for at a time. */
const AT_ONCE = 64
/** Of those so many are brought on at a time: as many of their steps share a commit as take some milliseconds. */
const LINES = 32
/** Workspaces that share them where more are due. */
const OWNERS_AT_ONCE = 16
/** Steps that a run takes in a row before others have their turn. */
const STEPS_IN_A_ROW = 20
/** Steps under way that may take seconds, and of one workspace. */
const MOST_SLOW = 32
const MOST_SLOW_OF_ONE = 8
/** Until a run looks again for a place among them. */
const PLACE_MS = 5_000
/** Between two groups, ms of real time: nobody waits for one more than for whoever else writes. */
const REST_MS = 1
/** Until the clock, which may have been set, and other processes are asked. */
const LOOK_EVERY_MS = 30_000
const FOREIGN_EVERY_MS = 1_000
const AGAIN_AFTER_MS = 5_000
/** Of a run that has a fault which is no step's. */
const SET_BACK_MS = 300_000
/** Of a workspace that was removed and may be restored. */
const REMOVED_MS = 3_600_000

export class Runner {
  private readonly parts: FlowParts
  private readonly flows: FlowCache
  /** Runs in slow steps, by number. */
  private readonly slow = new Map<number, { readonly workspaceId: string; readonly done: Promise<void> }>()
  /** That nothing can be written down, as a slow step has found. */
  private fault: unknown
  /** Workspaces up to this one have had their turn. */
  private lastOwner = ''
  private wakes = 0
  private wakeUp: () => void = () => {}

  constructor(parts: AutomationParts) {
    this.parts = { ...parts, wakeRunner: () => this.wake() }
    this.flows = new FlowCache(parts.database.reader)
  }

  /** There may be something to do. Cheap. */
  wake(): void {
    this.wakes += 1
    this.wakeUp()
  }

  /** Until the signal comes. */
  async run(stopping: AbortSignal): Promise<void> {
    const { log, clock } = this.parts
    try {
      while (!stopping.aborted) {
        const { wakes } = this
        try {
          if (await this.step(stopping)) await pauseFor(REST_MS)
          else if (wakes === this.wakes) await this.rest(stopping)
        } catch (error) {
          log.error('automation runner failed', { error: describeError(error) })
          await clock.sleep(AGAIN_AFTER_MS, stopping)
        }
      }
    } finally {
      await Promise.all([...this.slow.values()].map(({ done }) => done))
    }
  }

  /** Whatever is to be done at this moment, slow steps included. For tests, which turn the clock themselves. */
  async runDue(): Promise<void> {
    const never = new AbortController().signal
    do {
      while (await this.step(never));
      await Promise.all([...this.slow.values()].map(({ done }) => done))
    } while (await this.step(never))
  }

  /** @returns whether there was anything to do */
  private async step(stopping: AbortSignal): Promise<boolean> {
    const { fault } = this
    this.fault = undefined
    // Whatever a web server was asked would be asked again at once: what it answered cannot be written down.
    if (fault !== undefined) throw asError(fault)
    if (await settleSome(this.parts)) return true
    this.flows.clear()
    const due = await this.findDue()
    const free = due.filter(seq => !this.slow.has(seq))
    const faults: unknown[] = []
    let next = 0
    const line = async () => {
      for (let seq = free[next++]; seq !== undefined && faults.length === 0; seq = free[next++])
        try {
          await this.bringOn(seq, stopping)
        } catch (error) {
          await this.setBack(seq, error).catch((thrown: unknown) => faults.push(thrown))
        }
    }
    await Promise.all(Array.from({ length: LINES }, line))
    const [first] = faults
    if (first !== undefined) throw asError(first)
    return free.length > 0
  }

  /** The oldest of all, or, where that is not all that is due, the oldest of each of some workspaces, and next time of the next. */
  private async findDue(): Promise<number[]> {
    const { reader } = this.parts.database
    const now = this.parts.clock.now()
    const most = AT_ONCE + this.slow.size
    const oldest = await findDue(reader, now, most)
    if (oldest.length < most) return oldest
    const owners = await listOwnersOfRuns(reader, this.lastOwner, OWNERS_AT_ONCE)
    this.lastOwner = owners.length < OWNERS_AT_ONCE ? '' : (owners.at(-1) ?? '')
    const share = Math.ceil(AT_ONCE / Math.max(1, owners.length)) + MOST_SLOW_OF_ONE
    const shared: number[] = []
    for (const owner of owners) shared.push(...(await findDueOf(reader, owner, now, share)))
    return shared.length > 0 ? shared : oldest
  }

  /**
   * A fault of the database is nobody's, and what is unavailable is tried again soon; of any other a run that has it must not hold up the
   * others.
   */
  private async setBack(seq: number, error: unknown): Promise<void> {
    if (isStorageError(error)) throw error
    if (error instanceof AppError && error.code === 'unavailable')
      return this.putOff(seq, error.retryAfterMs ?? UNAVAILABLE_MS)
    const { log } = this.parts
    log.error('automation run failed, rescheduled', { run: seq, error: describeError(error) })
    await this.putOff(seq, SET_BACK_MS)
  }

  private async bringOn(seq: number, stopping: AbortSignal): Promise<void> {
    for (let steps = 0; steps < STEPS_IN_A_ROW && !stopping.aborted; steps += 1) {
      const run = await findRunBySeq(this.parts.database.reader, seq)
      if (!run || run.dueAt === null || run.dueAt > this.parts.clock.now()) return
      const flow = await this.flows.get(run.automation)
      if (!flow) return
      if (!(await findLiveWorkspace(this.parts, run.workspaceId))) return this.putOff(seq, REMOVED_MS)
      if (isSlow(flow, run)) return this.beginSlow(flow, run)
      if ((await advance(this.parts, flow, run)) === 'rests') return
    }
  }

  private async beginSlow(flow: Flow, run: Run): Promise<void> {
    const { seq, workspaceId } = run
    const own = [...this.slow.values()].filter(one => one.workspaceId === workspaceId).length
    if (this.slow.size >= MOST_SLOW || own >= MOST_SLOW_OF_ONE) return this.waitForPlace(run)
    const done = this.takeSlow(flow, run).finally(() => {
      this.slow.delete(seq)
      this.wake()
    })
    this.slow.set(seq, { workspaceId, done })
  }

  private async takeSlow(flow: Flow, run: Run): Promise<void> {
    try {
      await advance(this.parts, flow, run)
    } catch (error) {
      await this.setBack(run.seq, error).catch((fault: unknown) => (this.fault = fault))
    }
  }

  /** All places are taken: those that wait for one look again at different times. */
  private async waitForPlace({ seq }: Run): Promise<void> {
    await this.putOff(seq, PLACE_MS * (1 + Math.floor(4 * this.parts.random.fraction())))
  }

  private async putOff(seq: number, ms: number): Promise<void> {
    const { database, clock } = this.parts
    await database.write(async tx => {
      const run = await findRunBySeq(tx.db, seq)
      if (run && run.dueAt !== null) await moveRun(tx.db, seq, { ...run, dueAt: clock.now() + ms })
    })
  }

  private async rest(stopping: AbortSignal): Promise<void> {
    const { clock, database } = this.parts
    const over = new AbortController()
    const { wakes } = this
    const stop = () => over.abort()
    this.wakeUp = stop
    stopping.addEventListener('abort', stop, { once: true })
    try {
      const next = await nextFree(this.parts, this.slow)
      const end = clock.monotonic() + Math.min(LOOK_EVERY_MS, Math.max(1, next - clock.now()))
      const version = database.foreignVersion()
      while (wakes === this.wakes && !over.signal.aborted && !stopping.aborted) {
        const left = end - clock.monotonic()
        if (left <= 0 || version !== database.foreignVersion()) return
        await clock.sleep(Math.min(FOREIGN_EVERY_MS, left), over.signal)
      }
    } finally {
      this.wakeUp = () => {}
      stopping.removeEventListener('abort', stop)
    }
  }
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(describeError(thrown))
}

function isSlow(flow: Flow, run: Run): boolean {
  const step = flow.at(run.step)
  return step !== undefined && run.wait === null && STEP_TYPE[step.type].isSlow === true
}

/** When the next run is due that is not in hand, ms since epoch UTC; what is in hand wakes us itself. */
async function nextFree({ database, clock }: FlowParts, slow: ReadonlyMap<number, unknown>): Promise<number> {
  const next = await nextDueAt(database.reader)
  if (next === undefined) return Infinity
  return slow.size > 0 && next <= clock.now() ? clock.now() + FOREIGN_EVERY_MS : next
}
