/**
 * Deletes all contacts, or restores all deleted ones, in steps of a few milliseconds so that other writers are not delayed.
 *
 * A step, its events and its progress are one transaction. The request waits for the end; if the process exits, the job declared in
 * `audience/resource.ts` resumes the sweep. Contacts created meanwhile are not touched. Only one sweep per audience runs at a time.
 * Fails: AppError conflict if another one is running; unavailable if the appliance stops first.
 */
import { AppError } from '../../core/errors.js'
import type { Tx } from '../../db/database.js'
import { PieceSize } from '../../db/piece-size.js'
import type { Actor } from '../../core/actor.js'
import { recordActivity } from '../../events/activity-store.js'
import { appendEvents } from '../../events/store.js'
import { pauseFor } from '../../world/time/clock.js'
import { PIECE, RESTORABLE_MS, type Acting, type AudienceParts } from '../audience-parts.js'
import { contactsOf, findAudience } from '../audience-store.js'
import type { Contact } from './contact.js'
import { contactDeletedEvent, contactEvent } from './contact-events.js'
import {
  deletedBefore,
  findDeleted,
  findSweep,
  insertSweep,
  newestContact,
  restoreContacts,
  softDelete,
  softDeleteSome,
  unfinishedSweeps,
  updateSweep,
  type Sweep,
} from './deletion-store.js'

/** Minimum contacts per step. */
const MIN_STEP = 50
/** Pause between steps: sweeps are less urgent than other writes. */
const REST_MS = 2
/** Retry-After of requests interrupted by a shutdown. */
const STOPPED_FOR_MS = 60_000

export interface SweepResult {
  readonly changed: number
  readonly skipped: number
  readonly begunAt: number
}

interface SweepRequest {
  readonly id: string
  readonly kind: Sweep['kind']
  readonly acting: Acting
  readonly actor: Actor
}

export class ContactSweeps {
  private readonly parts: AudienceParts
  /** Ids of sweeps running in this process. */
  private readonly running = new Set<string>()
  /** Promises that `stop` awaits. */
  private readonly pending = new Set<Promise<unknown>>()
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

  /** Restores those of these contacts whose address is free. @returns how many were restored and skipped */
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

  /** Resumes sweeps of exited processes. @param stopping ends it after the current step */
  async resume(stopping: AbortSignal): Promise<void> {
    for (const sweep of await unfinishedSweeps(this.parts.database.reader))
      if (!this.running.has(sweep.id)) await this.run(sweep, stopping)
  }

  /** Ends running sweeps after the current step; their requests fail with `unavailable`. */
  async stop(): Promise<void> {
    this.stopping.abort()
    await Promise.allSettled(this.pending)
  }

  private awaited<T>(work: Promise<T>): Promise<T> {
    this.pending.add(work)
    return work.finally(() => this.pending.delete(work))
  }

  private get restorableSince(): number {
    return this.parts.clock.now() - RESTORABLE_MS
  }

  private async begin(kind: Sweep['kind'], acting: Acting, actor: Actor): Promise<SweepResult> {
    const { database, clock, newId } = this.parts
    const id = newId()
    // Before the commit, so that the job never sees this sweep as abandoned.
    this.running.add(id)
    try {
      const sweep = await database.write(tx => this.recordStart(tx, { id, kind, acting, actor }))
      if (!sweep) return { changed: 0, skipped: 0, begunAt: clock.now() }
      const ended = await this.run(sweep, this.stopping.signal)
      if (ended.finishedAt === null) throw stopped()
      return ended
    } finally {
      this.running.delete(id)
    }
  }

  /** Stores the sweep and records it in the activity log. @returns undefined if the audience never had a contact */
  private async recordStart(tx: Tx, { id, kind, acting, actor }: SweepRequest): Promise<Sweep | undefined> {
    if (this.stopping.signal.aborted) throw stopped()
    const { workspaceId, isSandbox } = acting
    if ((await unfinishedSweeps(tx.db, workspaceId)).length > 0)
      throw new AppError(
        'conflict',
        'contacts are already being deleted or restored; retry when that has finished',
      )
    const audience = await findAudience(tx.db, workspaceId)
    const begunAt = this.parts.clock.now()
    await recordActivity(tx, { workspaceId, actor }, begunAt, {
      action: kind === 'delete' ? 'contacts.deleted_all' : 'contacts.restored_all',
      subject: 'all contacts',
      ...(kind === 'delete' ? { details: { contacts: audience?.contacts ?? 0 } } : {}),
    })
    if (!audience) return undefined
    const [{ first }, last] = [contactsOf(audience.number), await newestContact(tx.db, audience.number)]
    const [position, endPosition] = kind === 'delete' ? [first, last] : [last, first]
    const begun = {
      id,
      workspaceId,
      isSandbox,
      kind,
      position,
      endPosition,
      begunAt,
      changed: 0,
      skipped: 0,
      finishedAt: null,
    }
    await insertSweep(tx.db, begun)
    return begun
  }

  /** @returns the sweep when finished, or when the signal stopped it */
  private async run(begun: Sweep, stopping: AbortSignal): Promise<Sweep> {
    this.running.add(begun.id)
    try {
      let sweep = begun
      const size = new PieceSize(this.parts.clock, MIN_STEP, PIECE)
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

  /** @param limit maximum contacts */
  private async step(tx: Tx, known: Sweep, limit: number): Promise<Sweep> {
    const { clock, onEvents } = this.parts
    // Reread: another process may have advanced it.
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
      deleted.map(contact => contactDeletedEvent(acting, contact, true, sweep.begunAt)),
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
      restored.map(contact => contactEvent('contact.restored', acting, contact, at)),
    )
    tx.onCommit(this.parts.onEvents)
    return restored.length
  }

  private actingFor({ workspaceId, isSandbox }: Sweep): Acting {
    return { workspaceId, isSandbox, source: 'api' }
  }
}

/** Deletes contacts so that they can be restored for `RESTORABLE_MS`. @param contacts live ones */
export async function removeRestorably(
  { clock, onEvents }: Pick<AudienceParts, 'clock' | 'onEvents'>,
  tx: Tx,
  acting: Acting,
  contacts: readonly Contact[],
): Promise<void> {
  const audience = await findAudience(tx.db, acting.workspaceId)
  if (!audience || contacts.length === 0) return
  const at = clock.now()
  await softDelete(tx.db, audience.number, contacts, at)
  await appendEvents(
    tx,
    contacts.map(contact => contactDeletedEvent(acting, contact, true, at)),
  )
  tx.onCommit(onEvents)
}

function stopped(): AppError {
  return new AppError('unavailable', 'the server is shutting down; the operation resumes after the restart', {
    retryAfterMs: STOPPED_FOR_MS,
  })
}
