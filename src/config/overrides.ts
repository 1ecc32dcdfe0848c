/**
 * Environment variables that override keys of the configuration file: `POSTROAD_MTA_RETRY_FIRST=10m`.
 *
 * Called by the loader. Pure. A value that cannot be converted to the key's type is kept as text, so that validation reports what the
 * key expects; only invalid JSON is reported here.
 */
import type { Environment } from './environment.js'
import { isTableList, type KnownKey } from './key-names.js'
import { nearestName } from './nearest.js'
import { isTable, type Table } from './read-tables.js'

const PREFIX = 'POSTROAD_'
/** Names the configuration file; read by the command line. */
const NOT_A_KEY = 'POSTROAD_CONFIG'

export interface Overridden {
  /** The file's tables with overrides applied. */
  readonly tables: Table
  /** Dotted keys that came from the environment. */
  readonly keys: ReadonlySet<string>
  readonly faults: readonly string[]
}

/** @param known keys by variable name */
export function overrideFromEnvironment(
  tables: Table,
  env: Environment,
  known: ReadonlyMap<string, KnownKey>,
): Overridden {
  const keys = new Set<string>()
  const faults: string[] = []
  let merged = tables
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(PREFIX) || name === NOT_A_KEY || value === undefined) continue
    const key = known.get(name)
    if (key === undefined) {
      const meant = nearestName(name, [...known.keys(), NOT_A_KEY])
      faults.push(`${name}: unknown variable${meant === undefined ? '' : `, did you mean ${meant}?`}`)
      continue
    }
    const read = readVariable(key, value)
    if (read === undefined) {
      faults.push(`${key.path.join('.')} (${name}): must be a list of tables in JSON, [{...}, ...]`)
      continue
    }
    keys.add(key.path.join('.'))
    merged = withValue(merged, key.path, read)
  }
  return { tables: merged, keys, faults }
}

/** @returns undefined for invalid JSON, which is not quoted because it may contain a password */
function readVariable({ node }: KnownKey, value: string): unknown {
  if (isTableList(node)) return readJson(value)
  switch (node.type) {
    case 'array':
      return value.trim() === '' ? [] : value.split(',').map(part => part.trim())
    case 'boolean':
      return value === 'true' ? true : value === 'false' ? false : value
    case 'integer':
    case 'number':
      return value.trim() === '' || Number.isNaN(Number(value)) ? value : Number(value)
    default:
      return value
  }
}

function readJson(value: string): unknown {
  try {
    return JSON.parse(value) as unknown
  } catch {
    return undefined
  }
}

/** Replaces one value; a non-table on the path is left for validation to report. */
function withValue(tables: Table, [name = '', ...rest]: readonly string[], value: unknown): Table {
  if (rest.length === 0) return { ...tables, [name]: value }
  const inner = tables[name] ?? {}
  return isTable(inner) ? { ...tables, [name]: withValue(inner, rest, value) } : tables
}
