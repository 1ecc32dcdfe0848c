/**
 * The trigger `segment_entered`: scans segments every few minutes and starts runs for contacts that were not in them before.
 *
 * Known members are stored, and a contact is added to them in the transaction that starts its run, so restarts lose and repeat nobody.
 * Contacts that are in the segment when the automation becomes active do not count as entering. Scans read in small ranges in reader
 * threads. A failed scan is logged and repeated at the next interval.
 */
import { contactsOf, findAudience, type SeqRange } from '../../audience/audience-store.js'
import { findContactsBySeq } from '../../audience/contacts/contact-store.js'
import { listMatchingSeqs } from '../../audience/segments/audience-query-store.js'
import { readConditions, type Group } from '../../audience/segments/read-conditions.js'
import { findSegment } from '../../audience/segments/segment-store.js'
import { describeError } from '../../core/errors.js'
import type { Queries } from '../../db/database.js'
import { pauseFor } from '../../world/time/clock.js'
import { type FlowParts, findLiveWorkspace } from '../automation-parts.js'
import type { Automation } from '../flows/automation.js'
import { findActiveByTrigger, findAutomationBySeq, saveScanState } from '../flows/automation-store.js'
import { enter } from '../runs/enter.js'
import { addMembers, listMembers, removeMembers } from './member-store.js'
import { ENTER_BATCH_SIZE, chunks, rangesFrom } from './scan-audience.js'

const SCAN_INTERVAL_MS = 300_000
const RANGE_PAUSE_MS = 2

/** Stored as JSON with the automation. */
interface SegmentScan {
  /** The newest contact when the automation became active. Until the first scan is complete only newer contacts enter. */
  readonly upTo: number
  readonly isKnown: boolean
}

/** Called when an automation becomes active. */
export async function beginSegmentScan(db: Queries, automation: Automation): Promise<void> {
  const audience = await findAudience(db, automation.workspaceId)
  const upTo = audience ? contactsOf(audience.number).first + audience.lastContact : 0
  await saveScanState(db, automation.seq, JSON.stringify({ upTo, isKnown: false } satisfies SegmentScan))
}

export class SegmentTrigger {
  private readonly parts: FlowParts
  /** Last scan by number of the automation, monotonic ms. */
  private readonly scannedAt = new Map<number, number>()

  constructor(parts: FlowParts) {
    this.parts = parts
  }

  /** Scans the segments that are due. */
  async run(stopping: AbortSignal): Promise<void> {
    const { database, clock, log } = this.parts
    for (const { automation, scan } of await findActiveByTrigger(database.reader, 'segment_entered')) {
      if (stopping.aborted) return
      const state = scan === null ? { upTo: 0, isKnown: false } : (JSON.parse(scan) as SegmentScan)
      const last = this.scannedAt.get(automation.seq)
      if (state.isKnown && last !== undefined && clock.monotonic() - last < SCAN_INTERVAL_MS) continue
      this.scannedAt.set(automation.seq, clock.monotonic())
      try {
        await this.scan(automation, state, stopping)
      } catch (error) {
        const { id } = automation
        log.error('segment trigger scan failed', {
          automation: id,
          error: describeError(error),
        })
      }
    }
  }

  private async scan(automation: Automation, state: SegmentScan, stopping: AbortSignal): Promise<void> {
    const { database } = this.parts
    const { workspaceId, triggerConfig } = automation
    if (!(await findLiveWorkspace(this.parts, workspaceId))) return
    const id = triggerConfig['segmentId']
    const segment = typeof id === 'string' ? await findSegment(database.reader, workspaceId, id) : undefined
    const audience = await findAudience(database.reader, workspaceId)
    // Keep the known members: the segment may have been deleted by mistake.
    if (!segment) return
    const group = readConditions(segment.conditions)
    if (audience)
      for (const range of rangesFrom(audience, 0)) {
        if (stopping.aborted) return
        await this.scanRange(automation, state, group, range)
        await pauseFor(RANGE_PAUSE_MS)
      }
    if (!state.isKnown)
      await database.write(tx =>
        saveScanState(tx.db, automation.seq, JSON.stringify({ ...state, isKnown: true })),
      )
  }

  private async scanRange(
    automation: Automation,
    state: SegmentScan,
    group: Group,
    range: SeqRange,
  ): Promise<void> {
    const { database, clock } = this.parts
    const scope = { workspaceId: automation.workspaceId, now: clock.now() }
    const matching = await listMatchingSeqs(database.slowReader, group, scope, range)
    const known = new Set(await listMembers(database.slowReader, automation.seq, range))
    const isMatching = new Set(matching)
    const left = [...known].filter(seq => !isMatching.has(seq))
    for (const some of chunks(left, ENTER_BATCH_SIZE))
      await database.write(tx => removeMembers(tx.db, automation.seq, some), { isLong: true })
    const entered = matching.filter(seq => !known.has(seq))
    for (const some of chunks(entered, ENTER_BATCH_SIZE)) await this.enterContacts(automation, state, some)
  }

  private async enterContacts(
    automation: Automation,
    { upTo, isKnown }: SegmentScan,
    seqs: readonly number[],
  ): Promise<void> {
    await this.parts.database.write(
      async tx => {
        const current = await findAutomationBySeq(tx.db, automation.seq)
        if (current?.status !== 'active' || current.deletedAt !== null) return
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
