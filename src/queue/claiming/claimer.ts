/**
 * The claimer: asks the schedule whose turn it is, claims that mail and makes complete jobs of it.
 *
 * Used by the queue manager, one round at a time. What it hands over is claimed on disk, and every claim ends in exactly one of
 * three ways: handed over, dropped because its row is gone, or handed back (due again, the attempt not counted). Never begins
 * a delivery. Fails: a round that the database refuses is told to the schedule as if nothing had been found.
 */
import type { BackoffPolicy } from '../../core/backoff.js'
import { describeError } from '../../core/errors.js'
import type { Database } from '../../db/database.js'
import type { Clock } from '../../world/time/clock.js'
import type { Log } from '../../world/log.js'
import type { Random } from '../../world/random.js'
import type { LogEvent } from '../../world/log-events.js'
import { clearClaims, releaseClaims, removeEntries, type QueueEntry } from '../queue-store.js'
import { claim, type Claimed, dropSuppressed, findSuppressedJobs, dropWithdrawn } from './claim.js'
import { logMessage } from '../../messages/mail-log.js'
import type { DeliveryJob } from '../delivery-agent.js'
import type { JobLoader } from './job-loader.js'
import { LARGE_OCTETS } from '../../messages/content-store.js'
import type { OctetSemaphore } from '../delivery/octet-semaphore.js'
import type { Schedule } from '../pacing/schedule.js'
import type { Site, Turn } from '../pacing/site.js'
import { recordTransitions } from '../../messages/message-history.js'

/** A message that is claimed and complete. */
export interface ReadyMessage {
  readonly job: DeliveryJob
  readonly turn: Turn
  /** Octets that are still to be read of its message. */
  readonly octets: number
  /** Why it cannot be delivered now; it is put off without asking the agent. */
  readonly fault: string | undefined
  /** Gives back the memory that was set apart for it. */
  readonly freeMemory: () => void
}

export interface ClaimerParts {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly jobs: JobLoader
  readonly schedule: Schedule
  readonly memory: OctetSemaphore<Site>
  readonly retry: BackoffPolicy
  readonly incarnation: string
  /** Something was settled without a delivery; the event log has grown. */
  readonly onSettled: () => void
}

export interface ClaimRound {
  /** `nothing`: there was no turn to give. `failed`: the database had trouble; what fails now would only fail again. */
  readonly kind: 'nothing' | 'done' | 'failed'
  readonly ready: readonly ReadyMessage[]
}

/** Lanes looked at in one claiming transaction. */
const LANES_PER_CLAIM = 40
/** A large message among small ones that finds no memory lets those behind it go first. */
const MEMORY_RETRY_MS = 5_000
/** Between two tries to hand back what was claimed. */
const RELEASE_RETRY_MS = 1_000

interface ClaimedMessage {
  readonly turn: Turn
  readonly messageId: string
}

type Unloaded = ClaimedMessage & { readonly entry: QueueEntry }

const WITHOUT_CONTENT = 'its content is missing'

export class Claimer {
  private readonly parts: ClaimerParts

  constructor(parts: ClaimerParts) {
    this.parts = parts
  }

  /**
   * Turns are given out when the transaction begins, so that they are for all slots that were freed until then.
   *
   * @param freeSlots deliveries that may begin
   * @param isBusy whether so much is under way that waiting a few ms for company costs nobody anything
   */
  async claimNext(freeSlots: () => number, isBusy: boolean): Promise<ClaimRound> {
    const { database, clock, random, retry, schedule, incarnation, log, onSettled } = this.parts
    if (!schedule.hasTurn || freeSlots() === 0) return { kind: 'nothing', ready: [] }
    let turns: readonly Turn[] = []
    let claimed: readonly Claimed[]
    try {
      claimed = await database.write(
        async tx => {
          turns = schedule.takeTurns(freeSlots(), LANES_PER_CLAIM)
          const terms = { now: clock.now(), retry, fraction: random.fraction(), incarnation }
          return dropWithdrawn(tx, await claim(tx.db, turns, terms), terms.now, onSettled)
        },
        { canWait: isBusy },
      )
    } catch (error) {
      log.error('queue could not be claimed', { error: describeError(error) })
      for (const turn of turns) schedule.claimEnded(turn, 0, clock.now())
      return { kind: 'failed', ready: [] }
    }
    for (const { turn, entries, nextDueAt } of claimed) schedule.claimEnded(turn, entries.length, nextDueAt)
    return turns.length === 0 ? { kind: 'nothing', ready: [] } : this.loadClaimed(claimed)
  }

  /** Gives back what was claimed and not begun: due again, the attempt not counted. Tries until the database takes it. */
  async release(claimed: readonly ClaimedMessage[], dueAt: number): Promise<void> {
    if (claimed.length === 0) return
    const ids = claimed.map(({ messageId }) => messageId)
    await this.writeUntilDone('queue could not be handed back', db => releaseClaims(db, ids, dueAt))
    for (const { turn } of claimed) this.parts.schedule.released(turn, dueAt)
  }

  private async loadClaimed(claimed: readonly Claimed[]): Promise<ClaimRound> {
    const inHand = claimed.flatMap(({ turn, entries }) =>
      entries.map(entry => ({ turn, messageId: entry.messageId, entry })),
    )
    try {
      const loaded = await this.parts.jobs.load(inHand.map(({ entry }) => entry))
      const suppressed = await this.dropSuppressed(loaded.jobs)
      const byMessage = new Map(loaded.jobs.map(job => [job.messageId, job]))
      const ready: ReadyMessage[] = []
      const withoutMemory: ClaimedMessage[] = []
      const gone: Unloaded[] = []
      for (const one of inHand) {
        const job = byMessage.get(one.messageId)
        if (job && suppressed.has(job)) this.parts.schedule.released(one.turn)
        else if (!job) gone.push(one)
        else {
          const made = this.reserveMemory(one.turn, job, loaded.faults.get(job.messageId))
          if (made) ready.push(made)
          else withoutMemory.push(one)
        }
      }
      await this.releaseWithoutMemory(withoutMemory)
      await this.retryLater(await this.expire(gone))
      return { kind: 'done', ready }
    } catch (error) {
      this.parts.log.error('queue could not be read', { error: describeError(error) })
      await this.release(inHand, this.parts.clock.now())
      return { kind: 'failed', ready: [] }
    }
  }

  private reserveMemory(turn: Turn, job: DeliveryJob, fault: string | undefined): ReadyMessage | undefined {
    const { jobs, memory } = this.parts
    const octets = jobs.unreadOctets(job)
    if (octets <= LARGE_OCTETS) return { job, turn, octets, fault, freeMemory: () => {} }
    const release = memory.take(turn.site, octets, turn.standing === 'proven')
    return release && { job, turn, octets, fault, freeMemory: release }
  }

  /** They hold no connection and no place; their lane waits for memory, where it is one of large messages only. */
  private async releaseWithoutMemory(claimed: readonly ClaimedMessage[]): Promise<void> {
    const now = this.parts.clock.now()
    await this.release(
      claimed.filter(({ turn }) => turn.lane.isLarge),
      now,
    )
    await this.release(
      claimed.filter(({ turn }) => !turn.lane.isLarge),
      now + MEMORY_RETRY_MS,
    )
  }

  /**
   * Fails messages past their expiry whose content is missing: no attempt ever ends them.
   *
   * @returns the others
   */
  private async expire(claimed: readonly Unloaded[]): Promise<readonly Unloaded[]> {
    const { database, clock, log, schedule, onSettled } = this.parts
    const now = clock.now()
    const expired = claimed.filter(({ entry }) => entry.expiresAt <= now)
    if (expired.length === 0) return claimed
    const ids = expired.map(({ messageId }) => messageId)
    try {
      await database.write(async tx => {
        const removed = await removeEntries(tx.db, ids)
        await recordTransitions(
          tx,
          removed.map(({ messageId }) => ({
            kind: 'failed',
            messageId,
            at: now,
            facts: { reason: WITHOUT_CONTENT },
          })),
        )
      })
    } catch (error) {
      log.error('expired messages not removed', { messages: ids.length, error: describeError(error) })
      return claimed
    }
    log.error('messages without content expired', { messages: ids.length, first: ids[0] })
    for (const { turn } of expired) schedule.released(turn)
    onSettled()
    return claimed.filter(({ entry }) => entry.expiresAt > now)
  }

  /** An operator took the row away while it was being claimed, or its content is not there: it is tried again later. */
  private async retryLater(claimed: readonly Unloaded[]): Promise<void> {
    if (claimed.length === 0) return
    const ids = claimed.map(({ messageId }) => messageId)
    await this.writeUntilDone('queue could not be handed back', db => clearClaims(db, ids))
    for (const { turn, entry } of claimed) this.parts.schedule.released(turn, entry.nextAttemptAt)
  }

  private async dropSuppressed(jobs: readonly DeliveryJob[]): Promise<Set<DeliveryJob>> {
    const { database, clock, log, onSettled } = this.parts
    const suppressed = await findSuppressedJobs(database.reader, jobs)
    if (suppressed.size > 0) {
      await database.write(tx => dropSuppressed(tx, [...suppressed], clock.now()))
      for (const { messageId, recipient, submission = {} } of suppressed)
        logMessage(log, 'suppressed', messageId, submission, recipient, { reason: 'while it was queued' })
      onSettled()
    }
    return suppressed
  }

  /** What is in hand has to be let go of: nobody else may take it. */
  private async writeUntilDone(
    complaint: LogEvent<'error'>,
    work: (db: Parameters<typeof clearClaims>[0]) => Promise<void>,
  ): Promise<void> {
    const { database, clock, log } = this.parts
    for (;;)
      try {
        await database.write(tx => work(tx.db))
        return
      } catch (error) {
        log.error(complaint, { error: describeError(error) })
        await clock.sleep(RELEASE_RETRY_MS)
      }
  }
}
