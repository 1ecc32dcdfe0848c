/**
 * Deleting all contacts, and restoring all that were deleted: in steps of a few milliseconds, between which others have their turn.
 *
 * A step, its events and how far it has come are one transaction. Whoever asked waits for the end; when the process goes, the
 * job that `audience/resource.ts` declares goes on where it was. Contacts that are made meanwhile are not touched. Of an audience one is
 * under way at a time.
 * Fails: AppError conflict where one is; unavailable where the appliance stops before the end.
 */
import { AppError } from '../../core/errors.js'
import type { Tx } from '../../db/database.js'
import { PieceSize } from '../../db/piece-size.js'
import { recordActivity, type Actor } from '../../events/activity-store.js'
import { appendEvents } from '../../events/store.js'
import { pauseFor } from '../../world/time/clock.js'
import { PIECE, type Acting, type AudienceParts } from '../audience-parts.js'
import { contactsOf, findAudience } from '../audience-store.js'
import { toldDeleted, toldOf } from './contact-events.js'
import {
  deletedBefore,
  findDeleted,
  findSweep,
  insertSweep,
  newestContact,
  restoreContacts,
  softDeleteSome,
  unfinishedSweeps,
  updateSweep,
  type Sweep,
} from './deletion-store.js'

/** How long a deleted contact can be restored. */
export const RESTORABLE_MS = 30 * 86_400_000
/** Contacts of one step at least. */
const FEWEST = 50
/** Between two steps: nobody waits for one more than for whoever else writes. */
const REST_MS = 2
/** What whoever waits is told when the appliance stops. */
const STOPPED_FOR_MS = 60_000

export interface SweepResult {
  readonly changed: number
  readonly skipped: number
  readonly begunAt: number
}

interface Asked {
  readonly id: string
  readonly kind: Sweep['kind']
  readonly acting: Acting
  readonly actor: Actor
}

export class ContactSweeps {
  private readonly parts: AudienceParts
  /** Ids of those that this process carries on. */
  private readonly running = new Set<string>()
  /** What `stop` waits for. */
  private readonly underWay = new Set<Promise<unknown>>()
  private readonly stopping = new AbortController()

  constructor(parts: AudienceParts) {
    this.parts = parts
  }

  deleteAll(acting: Acting, actor: Actor): Promise<SweepResult> {
    return this.awaited(this.begin('delete', acting, actor))
  }

  restoreAll(acting: Acting, actor: Actor): Promise<SweepResult> {
    return this.awaited(this.begin('restore', acting, actor))
  }

  /** Those of these ids that are deleted and whose address is free. @returns how many came back, and how many did not */
  async restore(acting: Acting, ids: readonly string[]): Promise<{ restored: number; skipped: number }> {
    const unique = [...new Set(ids.map(id => id.toLowerCase()))]
    let restored = 0
    for (let start = 0; start < unique.length; start += PIECE)
      restored += await this.parts.database.write(async tx => {
        const audience = await findAudience(tx.db, acting.workspaceId)
        if (!audience) return 0
        const piece = unique.slice(start, start + PIECE)
        const deleted = await findDeleted(tx.db, audience.number, piece, this.restorableSince)
        return this.bringBack(tx, acting, audience.number, deleted)
      })
    return { restored, skipped: unique.length - restored }
  }

  /** Goes on with what a process that is gone has left. @param stopping ends it after the step in hand */
  async resume(stopping: AbortSignal): Promise<void> {
    for (const sweep of await unfinishedSweeps(this.parts.database.reader))
      if (!this.running.has(sweep.id)) await this.run(sweep, stopping)
  }

  /** Ends what is under way after the step in hand, and begins nothing any more: whoever waits is told to ask later. */
  async stop(): Promise<void> {
    this.stopping.abort()
    await Promise.allSettled(this.underWay)
  }

  private awaited<T>(work: Promise<T>): Promise<T> {
    this.underWay.add(work)
    return work.finally(() => this.underWay.delete(work))
  }

  private get restorableSince(): number {
    return this.parts.clock.now() - RESTORABLE_MS
  }

  private async begin(kind: Sweep['kind'], acting: Acting, actor: Actor): Promise<SweepResult> {
    const { database, clock, newId } = this.parts
    const id = newId()
    // Before the commit, so that the job finds none that is not known to be under way.
    this.running.add(id)
    try {
      const sweep = await database.write(tx => this.note(tx, { id, kind, acting, actor }))
      if (!sweep) return { changed: 0, skipped: 0, begunAt: clock.now() }
      const ended = await this.run(sweep, this.stopping.signal)
      if (ended.finishedAt === null) throw stopped()
      return ended
    } finally {
      this.running.delete(id)
    }
  }

  /** Writes down what is begun. @returns undefined where there has never been a contact */
  private async note(tx: Tx, { id, kind, acting, actor }: Asked): Promise<Sweep | undefined> {
    if (this.stopping.signal.aborted) throw stopped()
    const { workspaceId, isSandbox } = acting
    if ((await unfinishedSweeps(tx.db, workspaceId)).length > 0)
      throw new AppError('conflict', 'contacts are being deleted or restored; try again when that is done')
    const audience = await findAudience(tx.db, workspaceId)
    const begunAt = this.parts.clock.now()
    await recordActivity(tx, {
      workspaceId,
      actor,
      action: kind === 'delete' ? 'contacts.deleted_all' : 'contacts.restored_all',
      subject: 'all contacts',
      ...(kind === 'delete' ? { details: { contacts: audience?.contacts ?? 0 } } : {}),
      createdAt: begunAt,
    })
    if (!audience) return undefined
    const [{ first }, last] = [contactsOf(audience.number), await newestContact(tx.db, audience.number)]
    const [position, endPosition] = kind === 'delete' ? [first, last] : [last, first]
    const begun = {
      ...{ id, workspaceId, isSandbox, kind, position, endPosition, begunAt },
      ...{ changed: 0, skipped: 0, finishedAt: null },
    }
    await insertSweep(tx.db, begun)
    return begun
  }

  /** @returns how far it has come: to the end, unless the signal comes before */
  private async run(begun: Sweep, stopping: AbortSignal): Promise<Sweep> {
    this.running.add(begun.id)
    try {
      let sweep = begun
      const size = new PieceSize(this.parts.clock, FEWEST, PIECE)
      while (sweep.finishedAt === null && !stopping.aborted) {
        const { rows } = size
        sweep = await size.measured(rows, measure =>
          this.parts.database.write(tx => measure(() => this.step(tx, sweep, rows)), { isLong: true }),
        )
        if (sweep.finishedAt === null) await pauseFor(REST_MS)
      }
      return sweep
    } finally {
      this.running.delete(begun.id)
    }
  }

  /** @param limit contacts at most */
  private async step(tx: Tx, known: Sweep, limit: number): Promise<Sweep> {
    const { clock, onEvents } = this.parts
    // As it stands in the database: another process may have gone on with it.
    const sweep = (await findSweep(tx.db, known.id)) ?? known
    const audience = await findAudience(tx.db, sweep.workspaceId)
    if (!audience || sweep.finishedAt !== null)
      return { ...sweep, finishedAt: sweep.finishedAt ?? clock.now() }
    const next = await (sweep.kind === 'delete'
      ? this.deleteSome(tx, sweep, audience.number, limit)
      : this.restoreSome(tx, sweep, audience.number, limit))
    await updateSweep(tx.db, next)
    tx.onCommit(onEvents)
    return next
  }

  private async deleteSome(tx: Tx, sweep: Sweep, audience: number, limit: number): Promise<Sweep> {
    const range = { first: sweep.position, last: sweep.endPosition }
    const deleted = await softDeleteSome(tx.db, audience, range, sweep.begunAt, limit)
    const acting = this.actingFor(sweep)
    await appendEvents(
      tx,
      deleted.map(contact => toldDeleted(acting, contact, true, sweep.begunAt)),
    )
    const last = deleted.at(-1)
    return {
      ...sweep,
      changed: sweep.changed + deleted.length,
      position: last ? last.seq + 1 : sweep.position,
      finishedAt: deleted.length < limit ? this.parts.clock.now() : null,
    }
  }

  private async restoreSome(tx: Tx, sweep: Sweep, audience: number, limit: number): Promise<Sweep> {
    const range = { first: sweep.endPosition, last: sweep.position }
    const since = sweep.begunAt - RESTORABLE_MS
    const deleted = await deletedBefore(tx.db, range, since, limit)
    const restored = await this.bringBack(tx, this.actingFor(sweep), audience, deleted)
    const last = deleted.at(-1)
    return {
      ...sweep,
      changed: sweep.changed + restored,
      skipped: sweep.skipped + deleted.length - restored,
      position: last ? last.seq - 1 : sweep.position,
      finishedAt: deleted.length < limit ? this.parts.clock.now() : null,
    }
  }

  private async bringBack(
    tx: Tx,
    acting: Acting,
    audience: number,
    deleted: Parameters<typeof restoreContacts>[2],
  ): Promise<number> {
    const at = this.parts.clock.now()
    const restored = await restoreContacts(tx.db, { ...acting, audience }, deleted, at)
    await appendEvents(
      tx,
      restored.map(contact => toldOf('contact.restored', acting, contact, at)),
    )
    tx.onCommit(this.parts.onEvents)
    return restored.length
  }

  private actingFor({ workspaceId, isSandbox }: Sweep): Acting {
    return { workspaceId, isSandbox, source: 'api' }
  }
}

function stopped(): AppError {
  return new AppError('unavailable', 'the appliance stops; what was begun goes on when it runs again', {
    retryAfterMs: STOPPED_FOR_MS,
  })
}
