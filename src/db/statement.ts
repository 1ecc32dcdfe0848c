/**
 * Statements compiled once: building and compiling a statement with Kysely takes several times as long as SQLite takes to run it.
 *
 * Used by stores for statements that run for every message or batch. They are still written with Kysely, type-checked, and valid on both
 * dialects; only the parameters change. With a direct path (`Queries.run`) they go straight to SQLite, since Kysely's takes eight promises.
 * Fails as the statement does.
 */
import {
  sql,
  type Compilable,
  type CompiledQuery,
  type DialectAdapter,
  type QueryResult,
  type RawBuilder,
} from 'kysely'
import type { Queries } from './database.js'

/** Arguments of a statement: single values, lists for `in (...)`, rows to insert. */
type Arguments = Readonly<Record<string, unknown>>

/** Placeholder for an argument's value. */
class Place {
  readonly read: (given: Arguments) => unknown

  constructor(read: (given: Arguments) => unknown) {
    this.read = read
  }
}

/**
 * @param build writes the statement; called once per combination of list lengths, so it must not depend on values. Rows need the same keys
 * each time, null for missing ones
 * @returns a function that runs it; no list may be empty
 */
export function statement<A extends Arguments, Row = unknown>(
  build: (db: Queries, given: A) => Compilable<Row>,
): (db: Queries, given: A) => Promise<QueryResult<Row>> {
  const printed = new WeakMap<DialectAdapter, Map<string, CompiledQuery>>()

  function compile(db: Queries, given: A, shape: string): CompiledQuery {
    const { adapter } = db.getExecutor()
    const ofDialect = printed.get(adapter) ?? new Map<string, CompiledQuery>()
    printed.set(adapter, ofDialect)
    const known = ofDialect.get(shape)
    if (known) return known
    const compiled = build(db, placesFor(given) as A).compile()
    ofDialect.set(shape, compiled)
    return compiled
  }

  return async (db, given) => {
    const compiled = compile(db, given, shapeOf(given))
    const parameters = compiled.parameters.map(value => (value instanceof Place ? value.read(given) : value))
    return db.run
      ? db.run<Row>({ sql: compiled.sql, parameters })
      : db.executeQuery<Row>({ ...compiled, parameters })
  }
}

/**
 * The same for very many rows, passed as arrays of values without creating objects.
 *
 * @param build writes the statement so that the values appear row by row, each once; called once per number of rows and of values per row
 */
export function rowsStatement(
  build: (db: Queries, rows: readonly (readonly unknown[])[]) => Compilable,
): (db: Queries, rows: readonly (readonly unknown[])[]) => Promise<QueryResult<unknown>> {
  const printed = new WeakMap<DialectAdapter, Map<string, CompiledQuery>>()
  return async (db, rows) => {
    const { adapter } = db.getExecutor()
    const ofDialect = printed.get(adapter) ?? new Map<string, CompiledQuery>()
    printed.set(adapter, ofDialect)
    const shape = `${rows.length} ${rows[0]?.length ?? 0}`
    const compiled = ofDialect.get(shape) ?? build(db, rows).compile()
    ofDialect.set(shape, compiled)
    const parameters: unknown[] = []
    for (const row of rows) for (const value of row) parameters.push(value)
    if (parameters.length !== compiled.parameters.length) throw new Error('values that stand nowhere')
    return db.run ? db.run({ sql: compiled.sql, parameters }) : db.executeQuery({ ...compiled, parameters })
  }
}

/** For a statement written as SQL text. */
export function compilable(db: Queries, text: RawBuilder<unknown>): Compilable {
  return { compile: () => text.compile(db) }
}

/** Runs a statement without parameters and rows, e.g. a savepoint. */
export async function command(db: Queries, text: string): Promise<void> {
  if (db.run) db.run({ sql: text, parameters: [] })
  else await sql.raw(text).execute(db)
}

/** Maximum rows per insert; a power of two. */
const MOST_ROWS = 64

/** Splits rows into chunks of 64, 32, 16, ... 1, so that few insert lengths are ever compiled. */
export function* inPieces<T>(rows: readonly T[]): Generator<readonly T[]> {
  let start = 0
  for (let size = MOST_ROWS; start < rows.length;)
    if (rows.length - start < size) size /= 2
    else {
      yield start === 0 && rows.length === size ? rows : rows.slice(start, start + size)
      start += size
    }
}

/** Maximum values per `in (...)`. */
const MOST_VALUES = 256

/** Splits the values of an `in (...)` into lists of at most 256. */
export function* inLists<T>(values: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < values.length; start += MOST_VALUES)
    yield values.length <= MOST_VALUES ? values : values.slice(start, start + MOST_VALUES)
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
    if (Array.isArray(value))
      shape += `${key}:${isRow(value[0]) ? value.length : paddedLength(value.length)},`
  }
  return shape
}

function isRow(value: unknown): value is Readonly<Record<string, unknown>> {
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

function rowPlaces(key: string, index: number, row: object): Arguments {
  return Object.fromEntries(
    Object.keys(row).map(column => [
      column,
      new Place(given => (given[key] as readonly Arguments[])[index]?.[column]),
    ]),
  )
}

function listPlace(key: string, index: number): Place {
  return new Place(given => {
    const list = given[key] as readonly unknown[]
    return list[Math.min(index, list.length - 1)]
  })
}
