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

/** Campaigns that are looked for at a time. */
const AT_ONCE = 100
/** Of which it is known how long they have waited for the queue, some hundred octets each. */
const MOST_KNOWN = 10_000
/** Whose text is held in memory as well. */
const MOST_WITH_TEXT = 32
/** Between two pieces: nobody waits for them more than for whoever else writes. */
const REST_MS = 1
const LOOK_EVERY_MS = 1_000
/** Where something has failed. */
const AGAIN_AFTER_MS = 2_000

/** What a round has seen; what comes after it is waited for. */
interface Look {
  /** Ms since epoch UTC. */
  readonly at: number
  /** Of other processes' commits. */
  readonly version: number
}

export class CampaignRunner {
  private readonly parts: CampaignParts
  /** Those that had a turn last are last, here and there. */
  private readonly active = new Map<number, ActiveCampaign>()
  private readonly withText = new Map<number, ActiveCampaign>()
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
    while (!stopping.aborted)
      try {
        await this.turn(stopping)
      } catch (error) {
        this.parts.log.error('campaign runner failed', { error: describeError(error) })
        await this.parts.send.clock.sleep(AGAIN_AFTER_MS, stopping)
      }
  }

  private async turn(stopping: AbortSignal): Promise<void> {
    const { clock, database } = this.parts.send
    const { wakes } = this
    const look = { at: clock.now(), version: database.foreignVersion() }
    const hasMore = await this.round(look.at, stopping)
    if (!hasMore && wakes === this.wakes) await this.rest(look, stopping)
  }

  /** A piece of each campaign that is due. @returns whether there may be more at once */
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
      this.resting.set(seq, send.clock.monotonic() + AGAIN_AFTER_MS)
      return 'waits'
    }
  }

  private take(seq: number): ActiveCampaign {
    const one = this.active.get(seq) ?? new ActiveCampaign(this.parts, seq)
    putLast(this.active, seq, one, MOST_KNOWN)
    putLast(this.withText, seq, one, MOST_WITH_TEXT)?.forgetText()
    return one
  }

  private async rest(look: Look, stopping: AbortSignal): Promise<void> {
    const { clock, database } = this.parts.send
    const over = new AbortController()
    const before = this.wakes
    const stop = () => over.abort()
    this.wakeUp = stop
    stopping.addEventListener('abort', stop, { once: true })
    try {
      // From the moment of the look on, that nothing falls between the two; a clock that was set back has put off from before it.
      const since = Math.min(look.at, clock.now())
      const next = (await nextDueAfter(database.reader, since)) ?? Infinity
      while (!over.signal.aborted && !stopping.aborted && before === this.wakes) {
        const left = next - clock.now()
        if (left <= 0) return
        await clock.sleep(Math.min(LOOK_EVERY_MS, left), over.signal)
        if (this.hasWaiting || look.version !== database.foreignVersion()) return
      }
    } finally {
      this.wakeUp = () => {}
      stopping.removeEventListener('abort', stop)
    }
  }
}

/** @returns the first one, where that is one too many and no longer there */
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
