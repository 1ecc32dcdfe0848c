/**
 * The trigger `segment_entered`: looks every few minutes who the segment means now, and starts runs for those it did not mean before.
 *
 * A job. Whom it meant last is kept, so that a restart forgets nobody; that a contact is kept and that its run is started are one
 * transaction. Who is in the segment when the automation becomes active has not entered it. The audience is looked at in
 * pieces, by the threads that read. Fails: one automation's look does, which is logged; the next one is another try.
 */
import { contactsOf, findAudience, type SeqRange } from '../../audience/audience-store.js'
import { findContactsBySeq } from '../../audience/contacts/contact-store.js'
import { listMatchingSeqs } from '../../audience/segments/match-store.js'
import { readConditions, type Group } from '../../audience/segments/read-conditions.js'
import { findSegment } from '../../audience/segments/segment-store.js'
import { describeError } from '../../core/errors.js'
import type { Queries } from '../../db/database.js'
import { pauseFor } from '../../world/time/clock.js'
import type { FlowParts } from '../automation-parts.js'
import type { Automation } from '../flows/automation.js'
import { findActiveByTrigger, findAutomationBySeq, keepScan } from '../flows/automation-store.js'
import { findLiveWorkspace } from '../live-workspace.js'
import { enter } from '../runs/enter.js'
import { addMembers, listMembers, removeMembers } from './member-store.js'
import { ENTRANTS_AT_ONCE, inGroups, piecesFrom } from './scan-audience.js'

/** Between two looks at a segment. */
const LOOK_EVERY_MS = 300_000
const REST_MS = 2

/** How far the first look has come, which starts nothing. */
interface SegmentScan {
  /** Number of the last contact that there was when the automation became active: later ones may enter at once. */
  readonly upTo: number
  readonly isKnown: boolean
}

/** What is kept when an automation becomes active. */
export async function beginSegmentScan(db: Queries, automation: Automation): Promise<void> {
  const audience = await findAudience(db, automation.workspaceId)
  const upTo = audience ? contactsOf(audience.number).first + audience.lastContact : 0
  await keepScan(db, automation.seq, JSON.stringify({ upTo, isKnown: false } satisfies SegmentScan))
}

export class SegmentTrigger {
  private readonly parts: FlowParts
  /** When each was looked at last, by number; ms of the monotonic clock. */
  private readonly lookedAt = new Map<number, number>()

  constructor(parts: FlowParts) {
    this.parts = parts
  }

  /** Looks at those whose time has come. */
  async run(stopping: AbortSignal): Promise<void> {
    const { database, clock, log } = this.parts
    for (const { automation, scan } of await findActiveByTrigger(database.reader, 'segment_entered')) {
      if (stopping.aborted) return
      const state = scan === null ? { upTo: 0, isKnown: false } : (JSON.parse(scan) as SegmentScan)
      const last = this.lookedAt.get(automation.seq)
      if (state.isKnown && last !== undefined && clock.monotonic() - last < LOOK_EVERY_MS) continue
      this.lookedAt.set(automation.seq, clock.monotonic())
      try {
        await this.look(automation, state, stopping)
      } catch (error) {
        const { id } = automation
        log.error('segment trigger scan failed', {
          automation: id,
          error: describeError(error),
        })
      }
    }
  }

  private async look(automation: Automation, state: SegmentScan, stopping: AbortSignal): Promise<void> {
    const { database } = this.parts
    const { workspaceId, triggerConfig } = automation
    if (!(await findLiveWorkspace(this.parts, workspaceId))) return
    const id = triggerConfig['segmentId']
    const segment = typeof id === 'string' ? await findSegment(database.reader, workspaceId, id) : undefined
    const audience = await findAudience(database.reader, workspaceId)
    // Of a segment that is gone nobody is a member, and nobody leaves it either: it may be a mistake.
    if (!segment) return
    const group = readConditions(segment.conditions)
    if (audience)
      for (const range of piecesFrom(audience, 0)) {
        if (stopping.aborted) return
        await this.lookAt(automation, state, group, range)
        await pauseFor(REST_MS)
      }
    if (!state.isKnown)
      await database.write(tx => keepScan(tx.db, automation.seq, JSON.stringify({ ...state, isKnown: true })))
  }

  private async lookAt(
    automation: Automation,
    state: SegmentScan,
    group: Group,
    range: SeqRange,
  ): Promise<void> {
    const { database, clock } = this.parts
    const asking = { workspaceId: automation.workspaceId, now: clock.now() }
    const meant = await listMatchingSeqs(database.slowReader, group, asking, range)
    const known = new Set(await listMembers(database.slowReader, automation.seq, range))
    const isMeant = new Set(meant)
    const left = [...known].filter(seq => !isMeant.has(seq))
    for (const some of inGroups(left, ENTRANTS_AT_ONCE))
      await database.write(tx => removeMembers(tx.db, automation.seq, some), { isLong: true })
    const come = meant.filter(seq => !known.has(seq))
    for (const some of inGroups(come, ENTRANTS_AT_ONCE)) await this.take(automation, state, some)
  }

  private async take(
    automation: Automation,
    { upTo, isKnown }: SegmentScan,
    seqs: readonly number[],
  ): Promise<void> {
    await this.parts.database.write(
      async tx => {
        const now = await findAutomationBySeq(tx.db, automation.seq)
        if (now?.status !== 'active' || now.deletedAt !== null) return
        const added = await addMembers(tx.db, automation.seq, seqs)
        const entering = added.filter(seq => isKnown || seq > upTo)
        const contacts = await findContactsBySeq(tx.db, entering)
        const entrants = contacts.map(({ id }) => ({ contactId: id, triggerData: {} }))
        if (entrants.length > 0)
          await enter(this.parts, tx, automation, entrants, { triggerType: 'segment_entered' })
      },
      { isLong: true },
    )
  }
}
