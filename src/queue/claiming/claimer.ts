/**
 * Claims due messages and turns them into delivery jobs.
 *
 * The queue manager runs one round at a time. A claim is committed before its job is returned. Each claim ends in
 * exactly one way: passed to the delivery runner, dropped (its row no longer exists), or released (due again, attempt
 * not counted). Mail that `accepted-claims.ts` claimed is loaded here as well. Never delivers anything itself. If the database rejects a round, the schedule treats it as empty.
 */
import type { BackoffPolicy } from '../../core/backoff.js'
import { describeError } from '../../core/errors.js'
import type { Services } from '../../db/services.js'
import type { LogEvent } from '../../world/log-events.js'
import {
  clearClaims,
  listClaims,
  releaseClaims,
  removeEntries,
  type LaneDue,
  type QueueEntry,
} from '../queue-store.js'
import {
  claim,
  type Claimed,
  type ClaimTerms,
  dropUnwanted,
  findUnwanted,
  type Unwanted,
  dropWithdrawn,
} from './claim.js'
import { logMessage } from '../../messages/mail-log.js'
import type { DeliveryJob } from '../delivery-agent.js'
import type { JobLoader } from './job-loader.js'
import { LARGE_OCTETS } from '../../messages/content-store.js'
import type { OctetSemaphore } from './octet-semaphore.js'
import type { Schedule } from '../pacing/schedule.js'
import type { Site, Turn } from '../pacing/site.js'
import { recordTransitions } from '../../messages/message-history.js'

export interface ReadyMessage {
  readonly job: DeliveryJob
  readonly turn: Turn
  /** Octets of the body that are still to be read. */
  readonly octets: number
  /** Why it cannot be sent now; it is deferred without calling the agent. */
  readonly fault: string | undefined
  readonly freeMemory: () => void
}

export interface ClaimerParts extends Pick<Services, 'database' | 'clock' | 'random' | 'log'> {
  readonly jobs: JobLoader
  readonly schedule: Schedule
  readonly memory: OctetSemaphore<Site>
  readonly retry: BackoffPolicy
  readonly incarnation: string
  readonly partOf?: ClaimTerms['partOf']
  /** Called when messages ended without a delivery attempt and events were appended. */
  readonly onSettled: () => void
}

export interface ClaimRound {
  /** `nothing`: no lane had a turn. `failed`: the database failed; wait before the next round. */
  readonly kind: 'nothing' | 'done' | 'failed'
  readonly ready: readonly ReadyMessage[]
}

const LANES_PER_CLAIM = 40
/** A large message in a lane of small ones that finds no memory lets the others go first. */
const MEMORY_RETRY_MS = 5_000
const RELEASE_RETRY_MS = 1_000

interface ClaimedMessage {
  readonly turn: Turn
  readonly messageId: string
}

type Unloaded = ClaimedMessage & { readonly entry: QueueEntry }

const WITHOUT_CONTENT = 'message content is missing'

export class Claimer {
  private readonly parts: ClaimerParts

  constructor(parts: ClaimerParts) {
    this.parts = parts
  }

  /**
   * Claims the next messages. Turns are assigned when the transaction begins, so they use every slot freed until then.
   *
   * @param freeSlots how many deliveries may start
   */
  async claimNext(freeSlots: () => number): Promise<ClaimRound> {
    const { database, clock, random, retry, schedule, incarnation, partOf, log, onSettled } = this.parts
    if (!schedule.hasTurn || freeSlots() === 0) return { kind: 'nothing', ready: [] }
    let turns: readonly Turn[] = []
    let claimed: readonly Claimed[]
    try {
      claimed = await database.write(async tx => {
        // A transaction that is retried keeps its turns.
        if (turns.length === 0) turns = schedule.takeTurns(freeSlots(), LANES_PER_CLAIM)
        const terms = { now: clock.now(), retry, fraction: random.fraction(), incarnation, partOf }
        return dropWithdrawn(tx, await claim(tx.db, turns, terms), terms.now, onSettled)
      })
    } catch (error) {
      log.error('queue not claimed', { error: describeError(error) })
      for (const turn of turns) schedule.claimEnded(turn, 0, turn.dueAt)
      return { kind: 'failed', ready: [] }
    }
    for (const { turn, entries, nextDueAt } of claimed) schedule.claimEnded(turn, entries.length, nextDueAt)
    return turns.length === 0 ? { kind: 'nothing', ready: [] } : this.load(claimed)
  }

  /** Releases claims that were not started: due again, attempt not counted. Retries until it is committed. */
  async release(claimed: readonly ClaimedMessage[], dueAt: number): Promise<void> {
    if (claimed.length === 0) return
    const ids = claimed.map(({ messageId }) => messageId)
    await this.writeUntilDone('claims not released', db =>
      releaseClaims(db, ids, dueAt, this.parts.incarnation),
    )
    for (const { turn } of claimed) this.parts.schedule.released(turn, dueAt)
  }

  /**
   * Releases claims of this run that nobody here knows of: they were committed, and the answer was lost. Call it between
   * two rounds.
   *
   * @param isInHand whether the message is being delivered, or waits for it
   * @returns their lanes, due now
   */
  async releaseLost(isInHand: (messageId: string) => boolean): Promise<readonly LaneDue[]> {
    const { database, incarnation, clock, log } = this.parts
    const lost = (await listClaims(database.reader, incarnation)).filter(one => !isInHand(one.messageId))
    if (lost.length === 0) return []
    const ids = lost.map(({ messageId }) => messageId)
    const dueAt = clock.now()
    await database.write(tx => releaseClaims(tx.db, ids, dueAt, incarnation))
    log.warn('claims without an answer released', { messages: ids.length, first: ids[0] })
    return [...new Set(lost.map(({ lane }) => lane))].map(lane => ({ lane, dueAt }))
  }

  /**
   * Makes jobs of committed claims.
   *
   * @param isJustAccepted the transaction that claimed them also checked suppressions
   */
  async load(claimed: readonly Claimed[], isJustAccepted = false): Promise<ClaimRound> {
    const inHand = claimed.flatMap(({ turn, entries }) =>
      entries.map(entry => ({ turn, messageId: entry.messageId, entry })),
    )
    try {
      const loaded = await this.parts.jobs.load(inHand.map(({ entry }) => entry))
      const unwanted: Unwanted = isJustAccepted ? new Map() : await this.dropUnwanted(loaded.jobs)
      const byMessage = new Map(loaded.jobs.map(job => [job.messageId, job]))
      const ready: ReadyMessage[] = []
      const withoutMemory: ClaimedMessage[] = []
      const gone: Unloaded[] = []
      for (const one of inHand) {
        const job = byMessage.get(one.messageId)
        if (job && unwanted.has(job)) this.parts.schedule.released(one.turn)
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
      this.parts.log.error('claimed messages not loaded', { error: describeError(error) })
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

  /** A lane of large messages waits for memory as a whole; in other lanes only these messages wait. */
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

  /** Fails expired messages whose content is missing: no delivery attempt will ever expire them. */
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

  /** Their row was deleted or their content is missing: keeps the counted attempt and its retry time. */
  private async retryLater(claimed: readonly Unloaded[]): Promise<void> {
    if (claimed.length === 0) return
    const ids = claimed.map(({ messageId }) => messageId)
    await this.writeUntilDone('claims not released', db => clearClaims(db, ids, this.parts.incarnation))
    for (const { turn, entry } of claimed) this.parts.schedule.released(turn, entry.nextAttemptAt)
  }

  private async dropUnwanted(jobs: readonly DeliveryJob[]): Promise<Unwanted> {
    const { database, clock, log, onSettled } = this.parts
    const unwanted = await findUnwanted(database.reader, jobs)
    if (unwanted.size > 0) {
      await database.write(tx => dropUnwanted(tx, unwanted, clock.now()))
      for (const [{ messageId, recipient, submission = {} }, reason] of unwanted)
        logMessage(log, 'suppressed', messageId, submission, recipient, {
          reason: `${reason} while it was queued`,
        })
      onSettled()
    }
    return unwanted
  }

  /** A claim that is not released blocks its message until a restart, so this retries until the write succeeds. */
  private async writeUntilDone(
    event: LogEvent<'error'>,
    work: (db: Parameters<typeof clearClaims>[0]) => Promise<void>,
  ): Promise<void> {
    const { database, clock, log } = this.parts
    for (;;)
      try {
        await database.write(tx => work(tx.db))
        return
      } catch (error) {
        log.error(event, { error: describeError(error) })
        await clock.sleep(RELEASE_RETRY_MS)
      }
  }
}
