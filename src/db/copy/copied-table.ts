/**
 * Tables that `postroad migrate copy` copies: every table of both databases that is not named here, with every column.
 *
 * Tables and columns are read from the databases, so a new table is copied without being listed. Databases that differ are refused. Pure.
 */
import { AppError } from '../../core/errors.js'

/** How a column's values are passed between databases; JSON as text. */
export type ColumnKind = 'text' | 'number' | 'octets' | 'json'

export interface Column {
  readonly name: string
  readonly kind: ColumnKind
}

export interface TableShape {
  readonly name: string
  readonly columns: readonly Column[]
  /** The column whose values the database assigns and never reuses. */
  readonly serial: string | undefined
}

export type Value = string | number | Uint8Array | null
/** In the order of the table's columns. */
export type Row = readonly Value[]

/** Tables that belong to one database and its servers. The search index of SQLite is a virtual table, which triggers fill. */
export const NOT_COPIED: ReadonlySet<string> = new Set([
  'schema_migrations',
  'schema_migrations_lock',
  // A run of a server. What it had claimed is released by the first server on the copy, as after a crash.
  'nodes',
  'leases',
  // State that running nodes exchange.
  'job_requests',
  'limit_uses',
  'site_uses',
  'split_destinations',
  // Of orders in progress, which the copy does not continue.
  'acme_challenges',
])

export function copiedOnly(shapes: readonly TableShape[]): TableShape[] {
  return shapes.filter(({ name }) => !NOT_COPIED.has(name))
}

/** @returns the tables to copy, columns in the source's order @throws AppError conflict if the databases differ in tables or columns */
export function commonTables(source: readonly TableShape[], target: readonly TableShape[]): TableShape[] {
  const [from, to] = [copiedOnly(source), copiedOnly(target)]
  requireSame(
    'tables',
    from.map(({ name }) => name),
    to.map(({ name }) => name),
  )
  return from.map(table => {
    const other = to.find(({ name }) => name === table.name) ?? table
    const names = ({ columns }: TableShape) => columns.map(({ name }) => name)
    requireSame(`columns of ${table.name}`, names(table), names(other))
    return {
      ...table,
      columns: table.columns.map(column => commonColumn(table.name, column, other)),
    }
  })
}

function requireSame(what: string, source: readonly string[], target: readonly string[]): void {
  const differing = [
    ...source.filter(name => !target.includes(name)).map(name => `${name} (source only)`),
    ...target.filter(name => !source.includes(name)).map(name => `${name} (target only)`),
  ]
  if (differing.length > 0)
    throw new AppError('conflict', `the databases differ in the ${what}: ${differing.join(', ')}`)
}

/** SQLite stores JSON in a binary format where PostgreSQL has jsonb. */
function commonColumn(table: string, { name, kind }: Column, other: TableShape): Column {
  const otherKind = other.columns.find(column => column.name === name)?.kind ?? kind
  if (otherKind === kind) return { name, kind }
  const kinds = new Set([kind, otherKind])
  if (kinds.has('json') && kinds.has('octets')) return { name, kind: 'json' }
  throw new AppError('conflict', `${table}.${name} is ${kind} in the source and ${otherKind} in the target`)
}

/** @throws Error for a type that has no kind */
export function kindOf(table: string, column: string, type: string, kinds: Kinds): ColumnKind {
  const kind = kinds[type.toLowerCase()]
  if (kind === undefined) throw new Error(`${table}.${column} has the type ${type}, which cannot be copied`)
  return kind
}

/** By a database's name of the type. */
export type Kinds = Readonly<Record<string, ColumnKind>>
