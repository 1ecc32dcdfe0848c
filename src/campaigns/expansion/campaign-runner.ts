/**
 * Runs all active campaigns: a job that lasts until shutdown.
 *
 * All state is in the database, each campaign with the time its next step is due, so a new process resumes where the last one stopped.
 * Campaigns take turns in short steps. Settled mail and API calls wake the runner; changes by other processes are seen within a second.
 * Never fails: a failed step is retried after a pause while the other campaigns continue.
 */
import { describeError } from '../../core/errors.js'
import { pauseFor } from '../../world/time/clock.js'
import { AT_ONCE, Worker } from '../../world/time/worker.js'
import type { CampaignParts } from '../model/campaign-parts.js'
import { listDue, nextDueAfter } from '../model/campaign-store.js'
import type { Campaign } from '../model/campaign.js'
import { ActiveCampaign, type StepResult } from './active-campaign.js'

/** Due campaigns read at once. */
const LIST_SIZE = 100
/** Campaigns with state in memory, some hundred octets each. */
const MAX_ACTIVE = 10_000
/** Campaigns with their content in memory. */
const MAX_WITH_TEXT = 32
/** Pause between steps, to let other writers in. */
const REST_MS = 1
const POLL_EVERY_MS = 1_000
const RETRY_AFTER_MS = 2_000

export class CampaignRunner {
  private readonly parts: CampaignParts
  /** Least recently used first, like `withText`. */
  private readonly active = new Map<number, ActiveCampaign>()
  private readonly withText = new Map<number, ActiveCampaign>()
  /** A campaign waits for the queue or a retry, which its row does not show. */
  private hasWaiting = false
  /** Retry times of failed campaigns, on the monotonic clock. */
  private readonly resting = new Map<number, number>()
  private readonly worker: Worker

  constructor(parts: CampaignParts) {
    this.parts = parts
    const { clock, database } = parts.send
    this.worker = new Worker({
      clock,
      log: parts.log,
      failure: 'campaign runner failed',
      runPiece: stopping => this.round(stopping),
      version: () => database.changes.version('campaigns'),
    })
  }

  wake(): void {
    this.worker.wake()
  }

  run(stopping: AbortSignal): Promise<void> {
    // Another node may have sent them since the last run.
    for (const one of [this.active, this.withText, this.resting]) one.clear()
    return this.worker.run(stopping)
  }

  /** Runs a step of each due campaign. @returns when the next step is due */
  private async round(stopping: AbortSignal): Promise<number> {
    const { clock, database } = this.parts.send
    const now = clock.now()
    let hasMore = false
    this.hasWaiting = false
    for (let last: Campaign | undefined; ;) {
      const due = await listDue(database.reader, now, last, LIST_SIZE)
      for (const campaign of due) {
        if (stopping.aborted) return AT_ONCE
        if ((this.resting.get(campaign.seq) ?? 0) > clock.monotonic()) {
          this.hasWaiting = true
          continue
        }
        const result = await this.step(campaign)
        if (result === 'did') hasMore = true
        if (result === 'waits') this.hasWaiting = true
        await pauseFor(REST_MS)
      }
      last = due.at(-1)
      if (due.length < LIST_SIZE) break
    }
    this.worker.resetBackoff()
    if (hasMore) return AT_ONCE
    // Counts from the start of the round, so nothing due in between is missed; if the clock was set back, from now.
    const since = Math.min(now, clock.now())
    const next = (await nextDueAfter(database.reader, since)) ?? Infinity
    return this.hasWaiting ? Math.min(next, clock.now() + POLL_EVERY_MS) : next
  }

  private async step(campaign: Campaign): Promise<StepResult> {
    const { seq, id } = campaign
    this.resting.delete(seq)
    try {
      return await this.take(seq).step(campaign)
    } catch (error) {
      const { log, send } = this.parts
      log.error('campaign step failed, retrying', { campaign: id, error: describeError(error) })
      this.active.delete(seq)
      this.resting.set(seq, send.clock.monotonic() + RETRY_AFTER_MS)
      return 'waits'
    }
  }

  private take(seq: number): ActiveCampaign {
    const one = this.active.get(seq) ?? new ActiveCampaign(this.parts, seq)
    putLast(this.active, seq, one, MAX_ACTIVE)
    putLast(this.withText, seq, one, MAX_WITH_TEXT)?.forgetText()
    return one
  }
}

/** @returns the evicted oldest entry, if the map was full */
function putLast<T>(map: Map<number, T>, key: number, value: T, most: number): T | undefined {
  map.delete(key)
  map.set(key, value)
  if (map.size <= most) return undefined
  const [first] = map.keys()
  if (first === undefined) return undefined
  const gone = map.get(first)
  map.delete(first)
  return gone
}
