/**
 * Runs the checks that were asked for, one of each workspace at a time, so that none waits for links of another: a job that lasts until
 * shutdown.
 *
 * Which checks run is in the database, so a new process begins again those that the last one left. A step that fails is retried; one that
 * keeps failing ends its check.
 */
import { describeError } from '../../core/errors.js'
import { pauseFor } from '../../world/time/clock.js'
import { WHEN_WOKEN, Worker } from '../../world/time/worker.js'
import { changeCheck, listRunning, type CampaignCheck } from './check-store.js'
import type { PreflightParts } from './preflight-parts.js'
import { RunningCheck } from './running-check.js'

/** Workspaces whose checks run beside each other; further ones wait. */
const AT_A_TIME = 8
const REST_MS = 1
const RETRY_MS = 1_000
/** Failures in a row after which a check ends. */
const MAX_FAILURES = 5

interface Running {
  readonly check: RunningCheck
  failures: number
  /** The step it is in. */
  step: Promise<void> | undefined
}

export class PreflightRunner {
  private readonly parts: PreflightParts
  private readonly running = new Map<string, Running>()
  private readonly worker: Worker
  private readonly rspamdUrl: string | undefined

  /** @param rspamdUrl absent if there is none */
  constructor(parts: PreflightParts, rspamdUrl?: string) {
    this.parts = parts
    this.rspamdUrl = rspamdUrl
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

  /** Steps that wait for other servers are not waited for at the end: the check begins again where it runs next. */
  run(stopping: AbortSignal): Promise<void> {
    // Another node may have worked on them since the last run.
    this.running.clear()
    return this.worker.run(stopping)
  }

  /** Begins the next step of each check that is not in one. */
  private async round(stopping: AbortSignal): Promise<number> {
    const { database } = this.parts.send
    const found = await listRunning(database.reader, AT_A_TIME)
    const ids = new Set(found.map(({ id }) => id))
    for (const id of this.running.keys()) if (!ids.has(id)) this.running.delete(id)
    for (const one of found) {
      const known = this.running.get(one.id) ?? this.open(one)
      if (stopping.aborted || known.step) continue
      known.step = this.step(one, known, stopping)
        .then(() => pauseFor(REST_MS))
        .finally(() => {
          known.step = undefined
          this.wake()
        })
    }
    this.worker.resetBackoff()
    return WHEN_WOKEN
  }

  private open(one: CampaignCheck): Running {
    const opened = { check: new RunningCheck(this.parts, one, this.rspamdUrl), failures: 0, step: undefined }
    this.running.set(one.id, opened)
    return opened
  }

  private async step(one: CampaignCheck, known: Running, stopping: AbortSignal): Promise<void> {
    const { id } = one
    const { send, log } = this.parts
    try {
      if (!(await known.check.step())) this.running.delete(id)
      known.failures = 0
    } catch (error) {
      if (stopping.aborted) return
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
