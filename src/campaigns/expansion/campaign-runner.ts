/**
 * Runs all active campaigns: a job that lasts until shutdown.
 *
 * All state is in the database, each campaign with the time its next step is due, so a new process resumes where the last one stopped.
 * Campaigns take turns in short steps. Settled mail and API calls wake the runner; changes by other processes are seen within a second.
 * Never fails: a failed step is retried after a pause while the other campaigns continue.
 */
import { describeError } from '../../core/errors.js'
import { pauseFor } from '../../world/time/clock.js'
import type { CampaignParts } from '../campaign-parts.js'
import { listDue, nextDueAfter } from '../records/campaign-store.js'
import type { Campaign } from '../records/campaign.js'
import { ActiveCampaign, type StepResult } from './active-campaign.js'

const AT_ONCE = 100
/** Campaigns with state in memory, some hundred octets each. */
const MAX_ACTIVE = 10_000
/** Campaigns with their content in memory. */
const MAX_WITH_TEXT = 32
/** Pause between steps, to let other writers in. */
const REST_MS = 1
const POLL_EVERY_MS = 1_000
const RETRY_AFTER_MS = 2_000

/** Snapshot at the start of a round: changes after it end the wait that follows. */
interface Snapshot {
  /** Ms since epoch UTC. */
  readonly at: number
  readonly version: number
}

export class CampaignRunner {
  private readonly parts: CampaignParts
  /** Least recently used first, like `withText`. */
  private readonly active = new Map<number, ActiveCampaign>()
  private readonly withText = new Map<number, ActiveCampaign>()
  /** A campaign waits for the queue or a retry, which its row does not show. */
  private hasWaiting = false
  /** Retry times of failed campaigns, on the monotonic clock. */
  private readonly resting = new Map<number, number>()
  private wakes = 0
  private wakeUp: () => void = () => {}

  constructor(parts: CampaignParts) {
    this.parts = parts
  }

  wake(): void {
    this.wakes += 1
    this.wakeUp()
  }

  async run(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted)
      try {
        await this.turn(stopping)
      } catch (error) {
        this.parts.log.error('campaign runner failed', { error: describeError(error) })
        await this.parts.send.clock.sleep(RETRY_AFTER_MS, stopping)
      }
  }

  private async turn(stopping: AbortSignal): Promise<void> {
    const { clock, database } = this.parts.send
    const { wakes } = this
    const snapshot = { at: clock.now(), version: database.foreignVersion() }
    const hasMore = await this.round(snapshot.at, stopping)
    if (!hasMore && wakes === this.wakes) await this.rest(snapshot, stopping)
  }

  /** Runs a step of each due campaign. @returns whether more work may be due at once */
  private async round(now: number, stopping: AbortSignal): Promise<boolean> {
    const { clock, database } = this.parts.send
    let hasMore = false
    this.hasWaiting = false
    for (let last: Campaign | undefined; ;) {
      const due = await listDue(database.reader, now, last, AT_ONCE)
      for (const campaign of due) {
        if (stopping.aborted) return false
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
      if (due.length < AT_ONCE) return hasMore
    }
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

  private async rest(snapshot: Snapshot, stopping: AbortSignal): Promise<void> {
    const { clock, database } = this.parts.send
    const over = new AbortController()
    const before = this.wakes
    const stop = () => over.abort()
    this.wakeUp = stop
    stopping.addEventListener('abort', stop, { once: true })
    try {
      // Counts from the snapshot, so nothing due in between is missed; if the clock was set back, from now.
      const since = Math.min(snapshot.at, clock.now())
      const next = (await nextDueAfter(database.reader, since)) ?? Infinity
      while (!over.signal.aborted && !stopping.aborted && before === this.wakes) {
        const left = next - clock.now()
        if (left <= 0) return
        await clock.sleep(Math.min(POLL_EVERY_MS, left), over.signal)
        if (this.hasWaiting || snapshot.version !== database.foreignVersion()) return
      }
    } finally {
      this.wakeUp = () => {}
      stopping.removeEventListener('abort', stop)
    }
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
