/** SQL of automations. Each row carries its run counts, updated in the transaction that changes the runs. */
import { sql, type Generated, type Selectable } from 'kysely'
import type { Queries } from '../../db/database.js'
import { countRows, newestFirst } from '../../db/listing.js'
import { statement } from '../../db/statement.js'
import { flag, type Flag } from '../../db/tables.js'
import type { Listing, Page } from '../../http/pagination.js'
import type { Automation, AutomationStatus, RunCounts, TriggerConfig, TriggerType } from './automation.js'

interface AutomationRow {
  seq: Generated<number>
  id: string
  workspace_id: string
  is_sandbox: Flag
  name: string
  status: AutomationStatus
  trigger_type: TriggerType
  trigger_config: string
  runs_active: number
  runs_completed: number
  runs_failed: number
  runs_cancelled: number
  activated_at: number | null
  version: Generated<number>
  scan: string | null
  /** Set by an activation or deletion until it has been applied to all runs. */
  unsettled_at: number | null
  created_at: number
  updated_at: number
  deleted_at: number | null
}

declare module '../../db/tables.js' {
  interface Tables {
    automations: AutomationRow
  }
}

export type NewAutomation = Omit<Automation, 'seq' | 'version' | 'runs' | 'activatedAt' | 'deletedAt'>

/** @returns its number */
export async function insertAutomation(db: Queries, automation: NewAutomation): Promise<number> {
  const { seq } = await db
    .insertInto('automations')
    .values({
      id: automation.id,
      workspace_id: automation.workspaceId,
      is_sandbox: flag(automation.isSandbox),
      runs_active: 0,
      runs_completed: 0,
      runs_failed: 0,
      runs_cancelled: 0,
      activated_at: null,
      scan: null,
      unsettled_at: null,
      created_at: automation.createdAt,
      deleted_at: null,
      ...changingFields(automation),
    })
    .returning('seq')
    .executeTakeFirstOrThrow()
  return seq
}

type Changing = Pick<Automation, 'name' | 'status' | 'triggerType' | 'triggerConfig' | 'updatedAt'>

function changingFields(automation: Changing) {
  return {
    name: automation.name,
    status: automation.status,
    trigger_type: automation.triggerType,
    trigger_config: JSON.stringify(automation.triggerConfig),
    updated_at: automation.updatedAt,
  }
}

export async function updateAutomation(db: Queries, seq: number, automation: Changing): Promise<void> {
  await db.updateTable('automations').set(changingFields(automation)).where('seq', '=', seq).execute()
}

/** Call it in the transaction that edits the trigger or steps. */
export async function raiseVersion(db: Queries, seq: number, at: number): Promise<void> {
  await db
    .updateTable('automations')
    .set({ version: sql<number>`version + 1`, updated_at: at })
    .where('seq', '=', seq)
    .execute()
}

/** The runner resumes its parked runs afterwards. */
export async function markActivated(db: Queries, seq: number, at: number): Promise<void> {
  await db
    .updateTable('automations')
    .set({ activated_at: at, unsettled_at: at, scan: null })
    .where('seq', '=', seq)
    .execute()
}

/** The runner cancels its runs afterwards. */
export async function markAutomationDeleted(db: Queries, seq: number, at: number): Promise<void> {
  await db
    .updateTable('automations')
    .set({ deleted_at: at, unsettled_at: at, updated_at: at })
    .where('seq', '=', seq)
    .execute()
}

/** Automations whose activation or deletion is not yet applied to their runs. */
export async function findChangedAutomations(db: Queries, limit: number): Promise<Automation[]> {
  const rows = await db
    .selectFrom('automations')
    .selectAll()
    .where('unsettled_at', 'is not', null)
    .orderBy('unsettled_at')
    .limit(limit)
    .execute()
  return rows.map(automationFromRow)
}

export async function markChangeApplied(db: Queries, seq: number): Promise<void> {
  await db.updateTable('automations').set({ unsettled_at: null }).where('seq', '=', seq).execute()
}

export async function findAutomation(
  db: Queries,
  workspaceId: string,
  id: string,
): Promise<Automation | undefined> {
  const row = await db
    .selectFrom('automations')
    .selectAll()
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return row && automationFromRow(row)
}

const selectBySeqs = statement((db, { seqs }: { readonly seqs: readonly number[] }) =>
  db.selectFrom('automations').selectAll().where('seq', 'in', seqs),
)

export async function findAutomationBySeq(db: Queries, seq: number): Promise<Automation | undefined> {
  const [row] = (await selectBySeqs(db, { seqs: [seq] })).rows
  return row && automationFromRow(row)
}

function ofWorkspace(db: Queries, workspaceId: string) {
  return db.selectFrom('automations').where('workspace_id', '=', workspaceId).where('deleted_at', 'is', null)
}

/** At most MAX_AUTOMATIONS. */
export async function findAllAutomations(db: Queries, workspaceId: string): Promise<Automation[]> {
  return (await ofWorkspace(db, workspaceId).selectAll().orderBy('seq').execute()).map(automationFromRow)
}

export async function countAutomations(db: Queries, workspaceId: string): Promise<number> {
  return countRows(ofWorkspace(db, workspaceId))
}

/** Newest first. */
export async function listAutomations(
  db: Queries,
  workspaceId: string,
  filter: { readonly status?: AutomationStatus },
  page: Page,
): Promise<Listing<Automation>> {
  let matching = ofWorkspace(db, workspaceId)
  if (filter.status !== undefined) matching = matching.where('status', '=', filter.status)
  return newestFirst(matching, page, automationFromRow)
}

const selectActiveOf = statement((db, { workspaces }: { readonly workspaces: readonly string[] }) =>
  db
    .selectFrom('automations')
    .selectAll()
    .where('workspace_id', 'in', workspaces)
    .where('status', '=', 'active')
    .where('deleted_at', 'is', null)
    .orderBy('seq'),
)

export async function findActiveOf(db: Queries, workspaces: readonly string[]): Promise<Automation[]> {
  return (await selectActiveOf(db, { workspaces })).rows.map(automationFromRow)
}

const selectActiveTypes = statement(db =>
  db
    .selectFrom('automations')
    .select('trigger_type')
    .distinct()
    .where('status', '=', 'active')
    .where('deleted_at', 'is', null),
)

/** Trigger types with an active automation in any workspace. */
export async function activeTriggerTypes(db: Queries): Promise<ReadonlySet<TriggerType>> {
  return new Set((await selectActiveTypes(db, {})).rows.map(row => row.trigger_type))
}

const selectAny = statement(db => db.selectFrom('automations').select('seq').limit(1))

/** Whether any automation exists, deleted ones included; without one no run can be waiting. */
export async function hasAutomations(db: Queries): Promise<boolean> {
  return (await selectAny(db, {})).rows.length > 0
}

export interface ScannedAutomation {
  readonly automation: Automation
  /** Progress of the trigger's scan as JSON; null before the first one. */
  readonly scan: string | null
}

/** Active automations of all workspaces. */
export async function findActiveByTrigger(db: Queries, type: TriggerType): Promise<ScannedAutomation[]> {
  const rows = await db
    .selectFrom('automations')
    .selectAll()
    .where('trigger_type', '=', type)
    .where('status', '=', 'active')
    .where('deleted_at', 'is', null)
    .orderBy('seq')
    .execute()
  return rows.map(row => ({ automation: automationFromRow(row), scan: row.scan }))
}

export async function saveScanState(db: Queries, seq: number, scan: string): Promise<void> {
  await db.updateTable('automations').set({ scan }).where('seq', '=', seq).execute()
}

interface CountChange extends Readonly<Record<string, number>> {
  readonly seq: number
  readonly active: number
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
}

const addCounts = statement((db, { seq, active, completed, failed, cancelled }: CountChange) =>
  db
    .updateTable('automations')
    .set({
      runs_active: sql<number>`runs_active + ${active}`,
      runs_completed: sql<number>`runs_completed + ${completed}`,
      runs_failed: sql<number>`runs_failed + ${failed}`,
      runs_cancelled: sql<number>`runs_cancelled + ${cancelled}`,
    })
    .where('seq', '=', seq),
)

/** Call it in the transaction that creates or ends the runs. */
export async function changeRunCounts(
  db: Queries,
  seq: number,
  { active = 0, completed = 0, failed = 0, cancelled = 0 }: Partial<RunCounts>,
): Promise<void> {
  await addCounts(db, { seq, active, completed, failed, cancelled })
}

function automationFromRow(row: Selectable<AutomationRow>): Automation {
  return {
    seq: row.seq,
    id: row.id,
    workspaceId: row.workspace_id,
    isSandbox: row.is_sandbox === 1,
    name: row.name,
    status: row.status,
    triggerType: row.trigger_type,
    triggerConfig: JSON.parse(row.trigger_config) as TriggerConfig,
    version: row.version,
    runs: {
      active: row.runs_active,
      completed: row.runs_completed,
      failed: row.runs_failed,
      cancelled: row.runs_cancelled,
    },
    activatedAt: row.activated_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deletedAt: row.deleted_at,
  }
}
