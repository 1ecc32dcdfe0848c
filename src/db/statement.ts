/**
 * Statements compiled once: building and compiling a statement with Kysely takes several times as long as SQLite takes to run it.
 *
 * Used by stores for statements that run for every message or batch; all others run through Kysely, bulk inserts through `insert-rows.ts`.
 * They are still written with Kysely or its `sql`, and valid on both dialects; only the parameters change. With a direct path (`Queries.run`) they go straight to SQLite, since Kysely's takes eight promises.
 * Fails as the statement does.
 */
import {
  CompiledQuery,
  type Compilable,
  type DialectAdapter,
  type QueryResult,
  type RawBuilder,
} from 'kysely'
import type { PrintedQuery, Queries } from './database.js'

/** Arguments of a statement: single values, lists for `in (...)`, rows as objects or as arrays of values. */
type Arguments = Readonly<Record<string, unknown>>

/** Arguments of a statement for many rows, given as arrays of values. */
export interface Rows extends Arguments {
  readonly rows: readonly (readonly unknown[])[]
}

/** Placeholder for an argument's value. */
class Place {
  readonly read: (given: Arguments) => unknown

  constructor(read: (given: Arguments) => unknown) {
    this.read = read
  }
}

/**
 * @param build writes the statement; called once per combination of list lengths, so it must not depend on values. Rows need the same keys
 * or the same number of values each time, null for missing ones
 * @returns a function that runs it; no list may be empty
 */
export function statement<A extends Arguments, Row = unknown>(
  build: (db: Queries, given: A) => Compilable<Row> | RawBuilder<Row>,
): (db: Queries, given: A) => Promise<QueryResult<Row>> {
  const compiled = new CompiledQueries()
  return async (db, given) => {
    const { sql, parameters } = compiled.get(db, shapeOf(given), () => build(db, placesFor(given) as A))
    return runCompiled(db, {
      sql,
      parameters: parameters.map(value => (value instanceof Place ? value.read(given) : value)),
    })
  }
}

/** One statement's text by dialect and shape (numbers of rows and values). */
export class CompiledQueries {
  private readonly byDialect = new WeakMap<DialectAdapter, Map<string, CompiledQuery>>()

  get(db: Queries, shape: string, build: () => Compilable | RawBuilder<unknown>): CompiledQuery {
    const { adapter } = db.getExecutor()
    const ofDialect = this.byDialect.get(adapter) ?? new Map<string, CompiledQuery>()
    this.byDialect.set(adapter, ofDialect)
    const known = ofDialect.get(shape)
    if (known) return known
    const compiled = build().compile(db)
    ofDialect.set(shape, compiled)
    return compiled
  }
}

/** By the direct path if there is one. */
export function runCompiled<Row>(
  db: Queries,
  { sql, parameters }: PrintedQuery,
): QueryResult<Row> | Promise<QueryResult<Row>> {
  return db.run ? db.run({ sql, parameters }) : db.executeQuery(CompiledQuery.raw(sql, [...parameters]))
}

/** Maximum rows per insert; a power of two. */
const MAX_ROWS = 64

/** Splits rows into chunks of 64, 32, 16, ... 1, so that few insert lengths are ever compiled. */
export function* inPieces<T>(rows: readonly T[]): Generator<readonly T[]> {
  let start = 0
  for (let size = MAX_ROWS; start < rows.length;)
    if (rows.length - start < size) size /= 2
    else {
      yield start === 0 && rows.length === size ? rows : rows.slice(start, start + size)
      start += size
    }
}

/** Maximum values per `in (...)`. */
const MAX_VALUES = 256

/** Splits the values of an `in (...)` into lists of at most 256. */
export function* inLists<T>(values: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < values.length; start += MAX_VALUES)
    yield values.length <= MAX_VALUES ? values : values.slice(start, start + MAX_VALUES)
}

/** Pads lists to a power of two by repeating the last value, which does not change the result of `in (...)`. */
function paddedLength(length: number): number {
  let padded = 1
  while (padded < length) padded *= 2
  return padded
}

function shapeOf(given: Arguments): string {
  let shape = ''
  for (const key in given) {
    const value = given[key]
    if (!Array.isArray(value)) continue
    const [first] = value as readonly unknown[]
    if (Array.isArray(first)) shape += `${key}:${value.length}*${first.length},`
    else shape += `${key}:${isRow(first) ? value.length : paddedLength(value.length)},`
  }
  return shape
}

/** An object or an array of values. */
function isRow(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof Uint8Array)
}

function placesFor(given: Arguments): Arguments {
  return Object.fromEntries(
    Object.entries(given).map(([key, value]): [string, unknown] => {
      if (!Array.isArray(value)) return [key, new Place(values => values[key])]
      if (isRow(value[0])) return [key, value.map((row: object, index) => rowPlaces(key, index, row))]
      const places = Array.from({ length: paddedLength(value.length) }, (_, index) => listPlace(key, index))
      return [key, places]
    }),
  )
}

function rowPlaces(key: string, index: number, row: object): Arguments | readonly Place[] {
  const place = (column: string | number) =>
    new Place(given => (given[key] as readonly Arguments[])[index]?.[column])
  return Array.isArray(row)
    ? row.map((_, at) => place(at))
    : Object.fromEntries(Object.keys(row).map(column => [column, place(column)]))
}

function listPlace(key: string, index: number): Place {
  return new Place(given => {
    const list = given[key] as readonly unknown[]
    return list[Math.min(index, list.length - 1)]
  })
}
