/**
 * One campaign in the runner: chooses the next step from its row and executes it.
 *
 *   scheduled, or paused before its time            wait until then
 *   scheduled, its time has come                    evaluate the audience    `fix-recipients.ts`
 *   evaluated, recipients have no rows yet          create them              `fix-recipients.ts`
 *   in an A/B test, recipients not all drawn        draw them                `ab-test/run-test.ts`
 *   scheduled, its recipients have their rows       start                    `end-campaign.ts`
 *   sending, outside its window                     check again later
 *   sending, A/B test without a winner, sample out  decide, or wait for it   `ab-test/run-test.ts`, unless the sample was everybody
 *   sending, recipients pending, queue has room     enqueue mails            `hand-over.ts`
 *   sending, no recipients pending                  complete once all mail is settled
 *   cancelled or failed                             cancel what is pending
 *
 * The state in memory can be lost: batch sizes and the latest content.
 */
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { PieceSize } from '../../db/piece-size.js'
import type { Services } from '../../db/services.js'
import type { SubmittedContent } from '../../msa/mail-submission.js'
import { decideOrWait, drawSome } from '../ab-test/run-test.js'
import { findTest, findVariantLetter, type SentTest, type SentVariant } from '../model/variant-store.js'
import type { CampaignParts } from '../model/campaign-parts.js'
import type { Campaign } from '../model/campaign.js'
import { changeCampaign, findCampaignBySeq } from '../model/campaign-store.js'
import { findLetter } from '../model/letter-store.js'
import { contentOf, type Letter } from '../model/letter.js'
import { isWithin, opensAt } from '../model/send-window.js'
import { begin, cancelSome, completeOrWait, fail, cancelQueuedSome } from './end-campaign.js'
import { evaluateAudience, fixSome } from './fix-recipients.js'
import { handOver } from './hand-over.js'
import { countUntried } from '../model/recipient-store.js'

/** Lifetime of a content: its mails carry the date it was made. */
const CONTENT_MS = 3_600_000
/** Interval of checks for an open window. */
const WINDOW_RECHECK_MS = 30_000
/** Interval of checks whether a removed workspace was restored. */
const REMOVED_RECHECK_MS = 60_000
/** With a rate limit, mails due within this time are queued together. */
const RATE_STEP_MS = 2_000
const HOUR_MS = 3_600_000
const CANCELLED_AT_ONCE = 500
const QUEUED_AT_ONCE = 200

/** `did`: more work may be due. `waits`: for room in the queue. `rests`: until `nextAt` of its row. */
export type StepResult = 'did' | 'waits' | 'rests'

export class ActiveCampaign {
  private readonly parts: CampaignParts
  private readonly seq: number
  private readonly fixing: PieceSize
  private readonly drawing: PieceSize
  private readonly handing: PieceSize
  private readonly room: QueueRoom
  /** By variant of an A/B test; undefined: of the campaign. */
  private readonly letters = new Map<number | undefined, Letter>()
  private readonly contents = new Map<number | undefined, DatedContent>()
  /** Contacts up to this one have had their queued mail cancelled; undefined: all. */
  private cancelledTo: number | undefined = 0

  constructor(parts: CampaignParts, seq: number) {
    const { clock, database } = parts.send
    this.parts = parts
    this.seq = seq
    this.fixing = new PieceSize(clock, 100, 4_096)
    this.drawing = new PieceSize(clock, 100, 4_096)
    this.handing = new PieceSize(clock, 16, 1_000)
    this.room = new QueueRoom({ database, clock }, seq)
  }

  /** Frees memory; the text is read again when needed. */
  forgetText(): void {
    this.letters.clear()
    this.contents.clear()
  }

  async step(campaign: Campaign): Promise<StepResult> {
    const { database, clock } = this.parts.send
    const { status, startedAt, pending } = campaign
    const now = clock.now()
    if (campaign.who === null && (status === 'scheduled' || status === 'paused'))
      return this.awaitStart(campaign, now)
    if (campaign.fixedAt === null) {
      await fixSome({ database, clock }, campaign, this.fixing)
      return 'did'
    }
    if (status === 'cancelled' || status === 'failed') return this.end(campaign)
    const test =
      campaign.abTest && campaign.recipients > 0 ? await findTest(database.reader, this.seq) : undefined
    if (test?.drawnAt === null && status !== 'paused') return this.drawSome()
    if (status === 'scheduled' || (status === 'sending' && startedAt === null)) {
      await database.write(async tx => {
        await begin(tx, this.seq, now)
        tx.onCommit(this.parts.onEvents)
      })
      return 'did'
    }
    if (status !== 'sending') return this.restUntil(campaign, null)
    const variant = test && nextVariant(test)
    if (variant) return this.handOverSome(campaign, now, variant)
    // If the sample was everybody, nobody is left to get a winner.
    if (test?.winner === null && pending > 0) return this.decide(now)
    if (pending > 0) return this.handOverSome(campaign, now)
    await database.write(async tx => {
      await completeOrWait(tx, this.seq, now)
      tx.onCommit(this.parts.onEvents)
    })
    return 'rests'
  }

  private async awaitStart(campaign: Campaign, now: number): Promise<StepResult> {
    const { status, scheduledAt } = campaign
    if (status === 'paused') return this.restUntil(campaign, null)
    if (scheduledAt !== null && scheduledAt > now) return this.restUntil(campaign, scheduledAt)
    await this.parts.send.database.write(async tx => {
      await evaluateAudience(tx, this.seq, now)
      tx.onCommit(this.parts.onHolds)
    })
    return 'did'
  }

  private async drawSome(): Promise<StepResult> {
    const { database, clock } = this.parts.send
    const limit = this.drawing.rows
    await this.drawing.measured(limit, measure =>
      database.write(tx => measure(() => drawSome(tx, this.seq, limit, clock.now())), { isLong: true }),
    )
    return 'did'
  }

  private async decide(now: number): Promise<StepResult> {
    const isDecided = await this.parts.send.database.write(async tx => {
      tx.onCommit(this.parts.onEvents)
      return decideOrWait(tx, this.seq, now)
    })
    return isDecided ? 'did' : 'rests'
  }

  /** @param variant whose recipients; undefined: all others */
  private async handOverSome(campaign: Campaign, now: number, variant?: SentVariant): Promise<StepResult> {
    const workspace = await this.findWorkspace(campaign)
    if (!workspace) return this.restUntil(campaign, now + REMOVED_RECHECK_MS)
    const { sendWindow } = campaign
    if (sendWindow && !isWithin(sendWindow, now, workspace.timezone))
      return this.restUntil(
        campaign,
        Math.min(opensAt(sendWindow, now, workspace.timezone) ?? Infinity, now + WINDOW_RECHECK_MS),
      )
    const { database } = this.parts.send
    const room = await this.room.left(campaign)
    if (room === 0) return 'waits'
    let content: SubmittedContent
    try {
      content = await this.contentFor(campaign, workspace, now, variant)
    } catch (error) {
      if (!(error instanceof AppError) || error.code === 'unavailable') throw error
      await database.write(async tx => {
        await fail(tx, this.seq, error.message, now)
        tx.onCommit(this.parts.onHolds)
      })
      return 'did'
    }
    database.storage.requireRoom()
    const { newId, emailWindows, ...store } = this.parts.send
    const limit = Math.min(this.handing.rows, room, perStep(campaign))
    const done = await this.handing.measured<number>(limit, measure =>
      database.write(
        tx =>
          measure(() =>
            handOver(
              tx,
              { newId, emailWindows, ...store },
              this.seq,
              { workspace, content, limit, ...given({ variant: variant?.variant }) },
              this.parts.send.clock.now(),
            ),
          ),
        { isLong: true },
      ),
    )
    return done > 0 && campaign.ratePerHour === null ? 'did' : 'rests'
  }

  /** Reuses a fresh content; after a restart under the same id. */
  private async contentFor(
    campaign: Campaign,
    workspace: ActingWorkspace,
    now: number,
    variant: SentVariant | undefined,
  ): Promise<SubmittedContent> {
    const { contentId, contentAt } = variant ?? campaign
    const key = variant?.variant
    const isFresh = (at: number) => at <= now && now - at < CONTENT_MS
    const known = this.contents.get(key)
    if (known && isFresh(known.at)) return known.content
    const letter = this.letters.get(key) ?? (await this.readLetter(key))
    this.letters.set(key, letter)
    const { senders, newId } = this.parts.send
    const isKept = contentId !== null && contentAt !== null && isFresh(contentAt)
    const id = isKept ? contentId : newId()
    const content = await contentOf(senders, workspace, letter, id, campaign.id)
    this.contents.set(key, { content, at: isKept ? contentAt : now })
    return content
  }

  private async readLetter(variant: number | undefined): Promise<Letter> {
    const { reader } = this.parts.send.database
    const json = await (variant === undefined
      ? findLetter(reader, this.seq)
      : findVariantLetter(reader, this.seq, variant))
    if (json === undefined) throw new Error(`campaign ${this.seq} has no stored content`)
    return JSON.parse(json) as Letter
  }

  private async findWorkspace({ workspaceId }: Campaign): Promise<ActingWorkspace | undefined> {
    try {
      return await this.parts.send.senders.workspace(workspaceId)
    } catch (error) {
      if (error instanceof AppError && error.code === 'workspace_not_found') return undefined
      throw error
    }
  }

  private async end(campaign: Campaign): Promise<StepResult> {
    const { database, clock } = this.parts.send
    const after = this.cancelledTo
    if (campaign.status === 'cancelled' && after !== undefined)
      this.cancelledTo = await database.write(
        async tx => {
          const last = await cancelQueuedSome(tx, this.seq, after, QUEUED_AT_ONCE, clock.now())
          tx.onCommit(this.parts.onEvents)
          return last
        },
        { isLong: true },
      )
    else
      await database.write(
        async tx => {
          if (await cancelSome(tx, campaign, CANCELLED_AT_ONCE)) tx.onCommit(this.parts.onHolds)
        },
        { isLong: true },
      )
    return 'did'
  }

  /** Skipped if the status has changed since: whoever changed it has set `nextAt`. */
  private async restUntil({ status }: Campaign, nextAt: number | null): Promise<StepResult> {
    await this.parts.send.database.write(async tx => {
      const campaign = await findCampaignBySeq(tx.db, this.seq)
      if (campaign?.status === status) await changeCampaign(tx.db, this.seq, { nextAt })
    })
    return 'rests'
  }
}

interface DatedContent {
  readonly content: SubmittedContent
  readonly at: number
}

/** The one with most recipients pending, so that all go out at the same time. */
function nextVariant({ variants }: SentTest): SentVariant | undefined {
  const most = Math.max(...variants.map(({ pending }) => pending))
  return most > 0 ? variants.find(({ pending }) => pending === most) : undefined
}

function perStep({ ratePerHour }: Campaign): number {
  return ratePerHour === null ? Infinity : Math.max(1, Math.floor((ratePerHour * RATE_STEP_MS) / HOUR_MS))
}

/** Waiting for the first attempt. */
export const MAX_UNTRIED = 10_000
/** Including those waiting for a retry. */
export const MAX_QUEUED = 100_000
/** Less room than this is not worth a transaction. */
export const MIN_ROOM = 250
/** Retried mails are counted after there has been no room for this long. */
const STUCK_MS = 5_000
/** And again at this interval. */
const COUNT_EVERY_MS = 30_000

/**
 * How many more of a campaign's mails may be queued: enough to keep delivery busy, few enough that an unsubscribe, pause or cancel takes
 * effect in time. Mails waiting for a retry do not count towards `MAX_UNTRIED`, so that a host that is down does not delay the rest.
 */
export class QueueRoom {
  private readonly parts: Pick<Services, 'database' | 'clock'>
  private readonly seq: number
  /** When room ran out, on the monotonic clock. */
  private fullSince: number | undefined
  private countedAt = -Infinity
  /** Mails already attempted, as last counted. */
  private tried = 0

  constructor(parts: Pick<Services, 'database' | 'clock'>, seq: number) {
    this.parts = parts
    this.seq = seq
  }

  /** @returns 0: the campaign has to wait */
  async left(campaign: Pick<Campaign, 'queued' | 'pending' | 'isSandbox'>): Promise<number> {
    // Sandbox mail is never queued.
    if (campaign.isSandbox) return Infinity
    const left = Math.min(MAX_UNTRIED + this.tried, MAX_QUEUED) - campaign.queued
    if (left >= Math.min(MIN_ROOM, campaign.pending)) {
      this.fullSince = undefined
      return left
    }
    await this.countWhereStuck(campaign.queued)
    return 0
  }

  private async countWhereStuck(queued: number): Promise<void> {
    const { database, clock } = this.parts
    const now = clock.monotonic()
    this.fullSince ??= now
    if (now - this.fullSince < STUCK_MS || now - this.countedAt < COUNT_EVERY_MS) return
    this.countedAt = now
    this.tried = Math.max(0, queued - (await countUntried(database.slowReader, this.seq)))
  }
}
