/**
 * One campaign in the runner's hands: decides by its row what is to be done next, and does a piece of it.
 *
 *   scheduled, or paused before its time            it is looked at again then
 *   scheduled, its time has come                    its audience is evaluated `fix-recipients.ts`
 *   evaluated, recipients have no rows yet          they get them            `fix-recipients.ts`
 *   scheduled, its recipients have their rows       it begins                `end-campaign.ts`
 *   sending, outside of its window                  it is looked at again
 *   sending, somebody waits, the queue has room     mails are handed over    `hand-over.ts`
 *   sending, nobody waits                           it is completed once all mail is settled
 *   cancelled or failed                             what waits is taken back
 *
 * What it holds beside the row can be lost: how large a piece is, the content made last. Fails: as the database does.
 */
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import { AppError } from '../../core/errors.js'
import { PieceSize } from '../../db/piece-size.js'
import type { SubmittedContent } from '../../msa/mail-submission.js'
import type { CampaignParts } from '../campaign-parts.js'
import type { Campaign } from '../records/campaign.js'
import { changeCampaign, findCampaignBySeq, findLetter } from '../records/campaign-store.js'
import { contentOf, type Letter } from '../sending/letter.js'
import { isWithin } from '../sending/send-window.js'
import { begin, cancelSome, completeOrWait, fail, takeBackSome } from './end-campaign.js'
import { evaluateAudience, fixSome } from './fix-recipients.js'
import { handOver } from './hand-over.js'
import { QueueRoom } from './queue-room.js'

/** How long a content serves: its mails have the date on which it was made. */
const CONTENT_MS = 3_600_000
/** A window opens, or the clocks are changed, or somebody changes the zone. */
const WINDOW_LOOK_MS = 30_000
/** A workspace that was removed may be restored. */
const REMOVED_LOOK_MS = 60_000
/** At a rate, mails of so long are handed over together. */
const RATE_STEP_MS = 2_000
const HOUR_MS = 3_600_000
const CANCELLED_AT_ONCE = 500
const TAKEN_BACK_AT_ONCE = 200

/** `did`: there may be more at once. `waits`: for mail to leave the queue. `rests`: its row says when it is looked at again. */
export type StepResult = 'did' | 'waits' | 'rests'

export class ActiveCampaign {
  private readonly parts: CampaignParts
  private readonly seq: number
  private readonly fixing: PieceSize
  private readonly handing: PieceSize
  private readonly room: QueueRoom
  private letter: Letter | undefined
  private content: SubmittedContent | undefined
  private contentAt = 0
  /** Contacts up to this one were looked at for what is still queued. */
  private takenBackTo: number | undefined = 0

  constructor(parts: CampaignParts, seq: number) {
    const { clock, database } = parts.send
    this.parts = parts
    this.seq = seq
    this.fixing = new PieceSize(clock, 100, 4_096)
    this.handing = new PieceSize(clock, 16, 1_000)
    this.room = new QueueRoom({ database, clock }, seq)
  }

  /** It is read again when it is wanted. */
  forgetText(): void {
    this.letter = undefined
    this.content = undefined
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
    if (status === 'scheduled' || (status === 'sending' && startedAt === null)) {
      await database.write(async tx => {
        await begin(tx, this.seq, now)
        tx.onCommit(this.parts.onEvents)
      })
      return 'did'
    }
    if (status !== 'sending') return this.restUntil(campaign, null)
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

  private async handOverSome(campaign: Campaign, now: number): Promise<StepResult> {
    const workspace = await this.findWorkspace(campaign)
    if (!workspace) return this.restUntil(campaign, now + REMOVED_LOOK_MS)
    const { sendWindow } = campaign
    if (sendWindow && !isWithin(sendWindow, now, workspace.timezone))
      return this.restUntil(campaign, now + WINDOW_LOOK_MS)
    const { database } = this.parts.send
    const room = await this.room.left(campaign)
    if (room === 0) return 'waits'
    let content: SubmittedContent
    try {
      content = await this.contentFor(campaign, workspace, now)
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
              { workspace, content, limit },
              this.parts.send.clock.now(),
            ),
          ),
        { isLong: true },
      ),
    )
    return done > 0 && campaign.ratePerHour === null ? 'did' : 'rests'
  }

  /** The one in use, as long as it is fresh: after a start its text is read again, and its id is used on. */
  private async contentFor(
    campaign: Campaign,
    workspace: ActingWorkspace,
    now: number,
  ): Promise<SubmittedContent> {
    const { contentId, contentAt } = campaign
    const isFresh = (at: number) => at <= now && now - at < CONTENT_MS
    if (this.content && isFresh(this.contentAt)) return this.content
    this.letter ??= await this.readLetter()
    const { senders, newId } = this.parts.send
    const isKept = contentId !== null && contentAt !== null && isFresh(contentAt)
    const id = isKept ? contentId : newId()
    this.content = await contentOf(senders, workspace, this.letter, id, campaign.id)
    this.contentAt = isKept ? contentAt : now
    return this.content
  }

  private async readLetter(): Promise<Letter> {
    const json = await findLetter(this.parts.send.database.reader, this.seq)
    if (json === undefined) throw new Error(`what campaign ${this.seq} says is missing`)
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

  /** First what is queued, then what waits: with the last of them it is done with. */
  private async end(campaign: Campaign): Promise<StepResult> {
    const { database, clock } = this.parts.send
    const after = this.takenBackTo
    if (campaign.status === 'cancelled' && after !== undefined)
      this.takenBackTo = await database.write(
        async tx => {
          const last = await takeBackSome(tx, this.seq, after, TAKEN_BACK_AT_ONCE, clock.now())
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

  /** Unless somebody has done something with it since, who has said when it is its turn. */
  private async restUntil({ status }: Campaign, nextAt: number | null): Promise<StepResult> {
    await this.parts.send.database.write(async tx => {
      const campaign = await findCampaignBySeq(tx.db, this.seq)
      if (campaign?.status === status) await changeCampaign(tx.db, this.seq, { nextAt })
    })
    return 'rests'
  }
}

function perStep({ ratePerHour }: Campaign): number {
  return ratePerHour === null ? Infinity : Math.max(1, Math.floor((ratePerHour * RATE_STEP_MS) / HOUR_MS))
}
