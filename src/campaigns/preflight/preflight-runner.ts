/**
 * Runs the checks that were asked for, a step of each in turn: a job that lasts until shutdown.
 *
 * Which checks run is in the database, so a new process begins again those that the last one left. A step that fails is retried; one that
 * keeps failing ends its check.
 */
import { describeError } from '../../core/errors.js'
import { pauseFor } from '../../world/time/clock.js'
import { AT_ONCE, WHEN_WOKEN, Worker } from '../../world/time/worker.js'
import { changeCheck, listRunning, type CampaignCheck } from './check-store.js'
import type { PreflightParts } from './preflight-parts.js'
import { RunningCheck } from './running-check.js'

/** Checks that take turns; further ones wait. */
const AT_A_TIME = 4
const REST_MS = 1
const RETRY_MS = 1_000
/** Failures in a row after which a check ends. */
const MAX_FAILURES = 5

export class PreflightRunner {
  private readonly parts: PreflightParts
  private readonly running = new Map<string, { readonly check: RunningCheck; failures: number }>()
  private readonly worker: Worker

  constructor(parts: PreflightParts) {
    this.parts = parts
    const { clock, database } = parts.send
    this.worker = new Worker({
      clock,
      log: parts.log,
      failure: 'campaign checks failed',
      runPiece: stopping => this.round(stopping),
      version: () => database.changes.version('campaigns'),
    })
  }

  wake(): void {
    this.worker.wake()
  }

  run(stopping: AbortSignal): Promise<void> {
    // Another node may have worked on them since the last run.
    this.running.clear()
    return this.worker.run(stopping)
  }

  private async round(stopping: AbortSignal): Promise<number> {
    const { database } = this.parts.send
    const found = await listRunning(database.reader, AT_A_TIME)
    const ids = new Set(found.map(({ id }) => id))
    for (const id of this.running.keys()) if (!ids.has(id)) this.running.delete(id)
    for (const one of found) {
      if (stopping.aborted) return AT_ONCE
      await this.step(one)
      await pauseFor(REST_MS)
    }
    this.worker.resetBackoff()
    return found.length > 0 ? AT_ONCE : WHEN_WOKEN
  }

  private async step(one: CampaignCheck): Promise<void> {
    const { id } = one
    const { send, log } = this.parts
    const known = this.running.get(id) ?? { check: new RunningCheck(this.parts, one), failures: 0 }
    this.running.set(id, known)
    try {
      if (!(await known.check.step())) this.running.delete(id)
      known.failures = 0
    } catch (error) {
      known.failures += 1
      log.error('campaign check step failed, retrying', { check: id, error: describeError(error) })
      if (known.failures >= MAX_FAILURES) {
        this.running.delete(id)
        await send.database.write(tx =>
          changeCheck(tx.db, one, { status: 'failed', finishedAt: send.clock.now() }),
        )
      } else await send.clock.sleep(RETRY_MS)
    }
  }
}
