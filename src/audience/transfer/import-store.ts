/**
 * SQL of imports: their state, file parts and rejected rows.
 *
 * Progress is written in the same transaction as the rows it covers, so that no row is applied twice. All rejected rows are counted, but
 * only the first ones are stored.
 */
import { sql, type Generated, type Selectable } from 'kysely'
import type { Queries } from '../../db/database.js'
import { countRows, newestFirst } from '../../db/listing.js'
import { inLists, inPieces, statement } from '../../db/statement.js'
import { flag, type Flag } from '../../db/tables.js'
import type { Listing, Page } from '../../http/pagination.js'
import type { Import, ImportOptions, ImportStatus, Rejection } from './import.js'

interface ImportRow {
  seq: Generated<number>
  id: string
  workspace_id: string
  is_sandbox: Flag
  status: ImportStatus
  file_name: string | null
  charset: string
  options: string
  octets: number
  octets_read: number
  rows_done: number
  created: number
  updated: number
  unchanged: number
  rejected: number
  error: string | null
  created_at: number
  started_at: number | null
  finished_at: number | null
}

interface PartRow {
  import: number
  part: number
  octets: Uint8Array
}

/** An address erased after the import began. */
interface ErasureRow {
  import: number
  /** SHA-256 of the address, hexadecimal. */
  email_hash: string
}

interface RejectionRow {
  import: number
  line: number
  reason: string
  cells: string
}

declare module '../../db/tables.js' {
  interface Tables {
    contact_imports: ImportRow
    contact_import_parts: PartRow
    contact_import_rejections: RejectionRow
    contact_import_erasures: ErasureRow
  }
}

/** Options of imports without a file yet, and of imports from before options were stored. */
const NO_OPTIONS: ImportOptions = {
  isDryRun: false,
  listId: null,
  tags: [],
  mapping: {},
  types: {},
  rules: {},
  declared: [],
  areTypesFound: true,
  columns: [],
  hasHeading: true,
  preset: null,
  makesContacts: true,
  everyRow: { suppress: null, isUnsubscribed: false, isTyped: false },
  order: 'file',
}

/** An import whose file is still being received. @returns its number */
export async function insertImport(
  db: Queries,
  one: Pick<Import, 'id' | 'workspaceId' | 'isSandbox' | 'createdAt'>,
): Promise<number> {
  const { seq } = await db
    .insertInto('contact_imports')
    .values({
      id: one.id,
      workspace_id: one.workspaceId,
      is_sandbox: flag(one.isSandbox),
      status: 'receiving',
      file_name: null,
      charset: 'utf-8',
      options: JSON.stringify(NO_OPTIONS),
      octets: 0,
      octets_read: 0,
      rows_done: 0,
      created: 0,
      updated: 0,
      unchanged: 0,
      rejected: 0,
      error: null,
      created_at: one.createdAt,
      started_at: null,
      finished_at: null,
    })
    .returning('seq')
    .executeTakeFirstOrThrow()
  return seq
}

/** Stores size and columns of the complete file, and queues the import. @throws Error if it no longer exists */
export async function queueImport(
  db: Queries,
  seq: number,
  file: Pick<Import, 'fileName' | 'charset' | 'options' | 'octets'>,
): Promise<void> {
  const { numUpdatedRows } = await db
    .updateTable('contact_imports')
    .set({
      status: 'queued',
      file_name: file.fileName,
      charset: file.charset,
      options: JSON.stringify(file.options),
      octets: file.octets,
    })
    .where('seq', '=', seq)
    .executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) throw new Error(`import ${seq} is gone`)
}

export async function saveImportOptions(db: Queries, seq: number, options: ImportOptions): Promise<void> {
  const text = JSON.stringify(options)
  await db.updateTable('contact_imports').set({ options: text }).where('seq', '=', seq).execute()
}

type Progress = Omit<Import, 'id' | 'options'>

const setProgress = statement((db, one: Progress) =>
  db
    .updateTable('contact_imports')
    .set({
      status: one.status,
      octets_read: one.octetsRead,
      rows_done: one.rowsDone,
      created: one.created,
      updated: one.updated,
      unchanged: one.unchanged,
      rejected: one.rejected,
      error: one.error,
      started_at: one.startedAt,
      finished_at: one.finishedAt,
    })
    .where('seq', '=', one.seq),
)

/** Stores progress and status. */
export async function updateImport(db: Queries, one: Import): Promise<void> {
  await setProgress(db, { ...one })
}

export async function findImport(db: Queries, workspaceId: string, id: string): Promise<Import | undefined> {
  const row = await db
    .selectFrom('contact_imports')
    .selectAll()
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()
  return row && fromRow(row)
}

const selectBySeq = statement((db, { seq }: { seq: number }) =>
  db.selectFrom('contact_imports').selectAll().where('seq', '=', seq),
)

export async function findImportBySeq(db: Queries, seq: number): Promise<Import | undefined> {
  const [row] = (await selectBySeq(db, { seq })).rows
  return row && fromRow(row)
}

export async function listImports(db: Queries, workspaceId: string, page: Page): Promise<Listing<Import>> {
  const ofWorkspace = db.selectFrom('contact_imports').where('workspace_id', '=', workspaceId)
  return newestFirst(ofWorkspace, page, fromRow)
}

const selectWaiting = statement((db, { limit }: { limit: number }) =>
  db
    .selectFrom('contact_imports')
    .selectAll()
    .where('finished_at', 'is', null)
    .where('status', '<>', 'receiving')
    .orderBy('seq')
    .limit(limit),
)

/** Queued and running imports, oldest first. */
export async function listUnfinishedImports(db: Queries, limit: number): Promise<Import[]> {
  return (await selectWaiting(db, { limit })).rows.map(fromRow)
}

/** Of one workspace, including those being received. */
export async function countUnfinished(db: Queries, workspaceId: string): Promise<number> {
  return countRows(
    db.selectFrom('contact_imports').where('finished_at', 'is', null).where('workspace_id', '=', workspaceId),
  )
}

/** @param part from 0 */
export async function insertImportPart(
  db: Queries,
  seq: number,
  part: number,
  octets: Uint8Array,
): Promise<void> {
  await db.insertInto('contact_import_parts').values({ import: seq, part, octets }).execute()
}

export async function findImportPart(
  db: Queries,
  seq: number,
  part: number,
): Promise<Uint8Array | undefined> {
  const row = await db
    .selectFrom('contact_import_parts')
    .select('octets')
    .where('import', '=', seq)
    .where('part', '=', part)
    .executeTakeFirst()
  return row?.octets
}

/** @returns rows deleted, at most `limit` */
export async function deleteImportParts(db: Queries, seq: number, limit: number): Promise<number> {
  const parts = await db
    .selectFrom('contact_import_parts')
    .select('part')
    .where('import', '=', seq)
    .orderBy('part')
    .limit(limit)
    .execute()
  if (parts.length > 0)
    await db
      .deleteFrom('contact_import_parts')
      .where('import', '=', seq)
      .where(
        'part',
        'in',
        parts.map(({ part }) => part),
      )
      .execute()
  return parts.length
}

/** A finished or abandoned import whose file is still stored. */
export async function findImportToClear(db: Queries, receivedBefore: number): Promise<number | undefined> {
  const { rows } = await sql<{ seq: number }>`
    select seq from contact_imports
    where (finished_at is not null or (status = 'receiving' and created_at < ${receivedBefore}))
      and exists (select 1 from contact_import_parts where import = seq)
    order by seq limit 1`.execute(db)
  return rows[0]?.seq
}

export async function insertRejections(
  db: Queries,
  seq: number,
  rejections: readonly Rejection[],
): Promise<void> {
  const rows = rejections.map(({ line, reason, cells }) => ({
    import: seq,
    line,
    reason,
    cells: JSON.stringify(cells),
  }))
  for (const piece of inPieces(rows)) await db.insertInto('contact_import_rejections').values(piece).execute()
}

/** In file order. @param after line number */
export async function listRejections(
  db: Queries,
  seq: number,
  after: number,
  limit: number,
): Promise<Rejection[]> {
  const rows = await db
    .selectFrom('contact_import_rejections')
    .select(['line', 'reason', 'cells'])
    .where('import', '=', seq)
    .where('line', '>', after)
    .orderBy('line')
    .limit(limit)
    .execute()
  return rows.map(row => ({ ...row, cells: JSON.parse(row.cells) as string[] }))
}

/** From now on, unfinished imports of these workspaces drop rows of an erased person. @param emailHash SHA-256, hexadecimal */
export async function eraseFromImports(
  db: Queries,
  workspaceIds: readonly string[],
  emailHash: string,
): Promise<void> {
  for (const list of inLists(workspaceIds)) {
    const imports = await db
      .selectFrom('contact_imports')
      .select('seq')
      .where('finished_at', 'is', null)
      .where('workspace_id', 'in', list)
      .execute()
    const rows = imports.map(({ seq }) => ({ import: seq, email_hash: emailHash }))
    for (const piece of inPieces(rows))
      await db
        .insertInto('contact_import_erasures')
        .values(piece)
        .onConflict(conflict => conflict.doNothing())
        .execute()
  }
}

const selectErased = statement((db, { seq }: { seq: number }) =>
  db.selectFrom('contact_import_erasures').select('email_hash').where('import', '=', seq),
)

/** Hashes of addresses whose rows the import drops. */
export async function listErasedHashes(db: Queries, seq: number): Promise<ReadonlySet<string>> {
  return new Set((await selectErased(db, { seq })).rows.map(row => row.email_hash))
}

export async function deleteErasures(db: Queries, seq: number): Promise<void> {
  await db.deleteFrom('contact_import_erasures').where('import', '=', seq).execute()
}

export async function deleteImport(db: Queries, seq: number): Promise<void> {
  await deleteErasures(db, seq)
  await db.deleteFrom('contact_imports').where('seq', '=', seq).execute()
}

/** Deletes some rows of old imports: rejected rows first, then the import. @returns rows deleted */
export async function deleteImportsBefore(db: Queries, before: number, limit: number): Promise<number> {
  const oldest = await db
    .selectFrom('contact_imports')
    .select('seq')
    .where('finished_at', 'is not', null)
    .where('finished_at', '<', before)
    .orderBy('finished_at')
    .limit(1)
    .executeTakeFirst()
  if (!oldest) return 0
  const lines = await db
    .selectFrom('contact_import_rejections')
    .select('line')
    .where('import', '=', oldest.seq)
    .orderBy('line')
    .limit(limit)
    .execute()
  const last = lines.at(-1)
  if (!last) {
    await deleteImport(db, oldest.seq)
    return 1
  }
  await db
    .deleteFrom('contact_import_rejections')
    .where('import', '=', oldest.seq)
    .where('line', '<=', last.line)
    .execute()
  return lines.length
}

function fromRow(row: Selectable<ImportRow>): Import {
  return {
    seq: row.seq,
    id: row.id,
    workspaceId: row.workspace_id,
    isSandbox: row.is_sandbox === 1,
    status: row.status,
    fileName: row.file_name,
    charset: row.charset,
    options: { ...NO_OPTIONS, ...(JSON.parse(row.options) as Partial<ImportOptions>) },
    octets: row.octets,
    octetsRead: row.octets_read,
    rowsDone: row.rows_done,
    created: row.created,
    updated: row.updated,
    unchanged: row.unchanged,
    rejected: row.rejected,
    error: row.error,
    createdAt: row.created_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
  }
}
