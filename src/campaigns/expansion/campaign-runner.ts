/**
 * Brings campaigns on their way: a job that lasts as long as the appliance.
 *
 * All there is to be done stands in the database, with the moment at which it is due, so that a process that is gone is gone on for.
 * Campaigns take turns, a piece of some milliseconds each. What the outcome of mail makes room for, and what people ask for, wakes
 * it; what another process has changed it sees within a second. Fails: never; a campaign whose piece fails is tried again after a pause,
 * and the others go on.
 */
import { describeError } from '../../core/errors.js'
import { pauseFor } from '../../world/time/clock.js'
import type { CampaignParts } from '../campaign-parts.js'
import { listDue, nextDueAfter } from '../records/campaign-store.js'
import type { Campaign } from '../records/campaign.js'
import { ActiveCampaign, type StepResult } from './active-campaign.js'

/** Campaigns that have a turn before the database is asked again. */
const MOST_AT_ONCE = 100
/** Whose text is held in memory. */
const MOST_KEPT = 32
/** Between two pieces: nobody waits for them more than for whoever else writes. */
const REST_MS = 1
const LOOK_EVERY_MS = 1_000
/** Where something has failed. */
const AGAIN_AFTER_MS = 2_000

export class CampaignRunner {
  private readonly parts: CampaignParts
  /** Those that had a turn last are last. */
  private readonly active = new Map<number, ActiveCampaign>()
  /** Of those that had a turn, one waits for the queue or for another try, which no row says. */
  private hasWaiting = false
  /** Until when one that has failed rests, on the monotonic clock. */
  private readonly resting = new Map<number, number>()
  private wakes = 0
  private wakeUp: () => void = () => {}

  constructor(parts: CampaignParts) {
    this.parts = parts
  }

  /** There may be something to do. */
  wake(): void {
    this.wakes += 1
    this.wakeUp()
  }

  /** Until the signal comes. */
  async run(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      const { wakes } = this
      const didSomething = await this.round(stopping).catch(async (error: unknown) => {
        this.parts.log.error('campaigns are not looked at', { error: describeError(error) })
        this.hasWaiting = true
        return false
      })
      if (!didSomething && wakes === this.wakes) await this.rest(stopping)
    }
  }

  /** A piece of each campaign that is due. @returns whether there may be more at once */
  private async round(stopping: AbortSignal): Promise<boolean> {
    const { clock, database } = this.parts.send
    let hasMore = false
    this.hasWaiting = false
    for (const campaign of await listDue(database.reader, clock.now(), MOST_AT_ONCE)) {
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
    return hasMore
  }

  private async step(campaign: Campaign): Promise<StepResult> {
    const { seq, id } = campaign
    this.resting.delete(seq)
    try {
      return await this.take(seq).step(campaign)
    } catch (error) {
      const { log, send } = this.parts
      log.error('a campaign has stopped for a moment', { campaign: id, error: describeError(error) })
      this.active.delete(seq)
      this.resting.set(seq, send.clock.monotonic() + AGAIN_AFTER_MS)
      return 'waits'
    }
  }

  private take(seq: number): ActiveCampaign {
    const one = this.active.get(seq) ?? new ActiveCampaign(this.parts, seq)
    this.active.delete(seq)
    this.active.set(seq, one)
    for (const oldest of this.active.keys()) {
      if (this.active.size <= MOST_KEPT) break
      this.active.delete(oldest)
    }
    return one
  }

  private async rest(stopping: AbortSignal): Promise<void> {
    const { clock, database } = this.parts.send
    const over = new AbortController()
    const stop = () => over.abort()
    const before = this.wakes
    this.wakeUp = stop
    stopping.addEventListener('abort', stop, { once: true })
    const version = database.foreignVersion()
    const next = (await nextDueAfter(database.reader, clock.now()).catch(() => undefined)) ?? Infinity
    while (!over.signal.aborted && before === this.wakes && version === database.foreignVersion()) {
      const left = next - clock.now()
      if (left <= 0) break
      await clock.sleep(Math.min(LOOK_EVERY_MS, left), over.signal)
      if (this.hasWaiting) break
    }
    this.wakeUp = () => {}
    stopping.removeEventListener('abort', stop)
  }
}
