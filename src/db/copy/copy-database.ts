/**
 * Copies all rows of one database to another, and proves it: every table is read back from the copy, and has to have the same number of
 * rows and the same checksum as what was read from the source. A copy that differs is not committed.
 *
 * Used by `postroad migrate copy`. Memory is bounded by the size of a piece (`copy-side.ts`). Throws what the databases throw.
 */
import { commonTables, type TableShape } from './copied-table.js'
import type { CopySide, CopySource, CopyTarget } from './copy-side.js'
import { RowDigest, type TableDigest } from './row-digest.js'

export interface CopiedTable {
  readonly table: string
  readonly source: TableDigest
  readonly target: TableDigest
}

export type CopyPhase = 'copying' | 'building' | 'verifying'

export interface CopyProgress {
  readonly phase: CopyPhase
  /** Empty while indexes are built. */
  readonly table: string
  /** Of this table, in this phase. */
  readonly rows: number
  readonly rowsOfTable: number
  /** Of all tables, each row counted once when written and once when read back. */
  readonly done: number
  readonly total: number
}

export interface CopyRequest {
  readonly source: CopySource
  readonly target: CopyTarget
  readonly onProgress?: (progress: CopyProgress) => void
}

export interface CopyResult {
  /** By name. */
  readonly tables: readonly CopiedTable[]
  readonly isEqual: boolean
}

export async function copyDatabase({ source, target, onProgress }: CopyRequest): Promise<CopyResult> {
  const tables = commonTables(await source.listTables(), await target.listTables())
  const counts = new Map<string, number>()
  for (const table of tables) counts.set(table.name, await source.countRows(table))
  const total = 2 * [...counts.values()].reduce((sum, count) => sum + count, 0)
  let done = 0
  const report = (phase: CopyPhase, table = '', rows = 0, added = 0) => {
    done += added
    onProgress?.({ phase, table, rows, rowsOfTable: counts.get(table) ?? 0, done, total })
  }
  const sources = new Map<string, TableDigest>()
  for (const table of tables)
    sources.set(
      table.name,
      await copyTable(source, target, table, (rows, added) => report('copying', table.name, rows, added)),
    )
  report('building')
  await target.build()
  const copied: CopiedTable[] = []
  for (const table of tables) {
    const inSource = sources.get(table.name) ?? { rows: 0, checksum: '' }
    const inTarget = await digestTable(target, table, (rows, added) =>
      report('verifying', table.name, rows, added),
    )
    copied.push({ table: table.name, source: inSource, target: inTarget })
  }
  const isEqual = copied.every(isSame)
  if (isEqual) {
    await copyPositions(source, target, tables)
    await target.commit()
  }
  return { tables: copied, isEqual }
}

export function isSame({ source, target }: CopiedTable): boolean {
  return source.rows === target.rows && source.checksum === target.checksum
}

type OnRows = (rows: number, added: number) => void

/** The target stores one piece while the next is read. */
async function copyTable(
  source: CopySource,
  target: CopyTarget,
  table: TableShape,
  onRows: OnRows,
): Promise<TableDigest> {
  const digest = new RowDigest(table)
  let written: Promise<void> = Promise.resolve()
  try {
    for await (const rows of source.read(table)) {
      for (const row of rows) digest.add(row)
      await written
      written = target.write(table, rows)
      // Awaited with the next piece, or below.
      written.catch(() => {})
      onRows(digest.result().rows, rows.length)
    }
  } finally {
    await written
  }
  onRows(digest.result().rows, 0)
  return digest.result()
}

async function digestTable(side: CopySide, table: TableShape, onRows: OnRows): Promise<TableDigest> {
  const digest = new RowDigest(table)
  for await (const rows of side.read(table)) {
    for (const row of rows) digest.add(row)
    onRows(digest.result().rows, rows.length)
  }
  return digest.result()
}

/** Values of deleted rows must not be assigned again: event consumers remember them. */
async function copyPositions(
  source: CopySource,
  target: CopyTarget,
  tables: readonly TableShape[],
): Promise<void> {
  for (const table of tables) {
    if (table.serial === undefined) continue
    const position = await source.readPosition(table)
    await target.writePosition(table, position)
    const found = await target.readPosition(table)
    if (found !== position)
      throw new Error(`the target would continue ${table.name} after ${found} instead of ${position}`)
  }
}
