/**
 * Loads the configuration: environment variables (`POSTROAD_MTA_RETRY_FIRST=10m`) override the file (TOML), which overrides the defaults.
 *
 * Called by the command line at start and on SIGHUP. Reads only that file. A variable that does not convert to its key's type stays text, so
 * that validation reports what the key expects.
 * Fails with a `ConfigError` that lists every fault; never returns a partial configuration.
 */
import { readFileSync } from 'node:fs'
import { parse, TomlError } from 'smol-toml'
import { describeError } from '../core/errors.js'
import { parseDuration } from '../core/units.js'
import { isLoopbackOrUnspecified } from '../world/net/address-kind.js'
import { type Config, toConfig } from './config.js'
import type { Environment } from './environment.js'
import { ConfigError } from './faults.js'
import {
  dottedNames,
  environmentKeys,
  environmentName,
  isTableList,
  type KnownKey,
  knownKeys,
  nearestVariable,
} from './key-names.js'
import { isTable, readTable, type Table } from './read-tables.js'
import { nodeOf, type SchemaNode } from './schema/fields.js'
import type { ConfigSchema } from './schema/schema.js'
import { parseDatabaseUrl } from './schema/values.js'

export interface LoadRequest {
  /** Schema assembled by the composition root. */
  readonly schema: ConfigSchema
  /** Path of the TOML file. */
  readonly file: string
  readonly env: Environment
  /** @returns text of the file; throws like `readFileSync` */
  readonly readFile?: (path: string) => string
}

export interface LoadedConfig {
  readonly config: Config
  /** The configuration in file notation, with defaults and derived values, for `showConfig`. Contains secrets. */
  readonly tables: Table
  /** Keys that are set but have no effect in this version. */
  readonly keysWithoutEffect: readonly string[]
  /** Where keys outside lists of tables were set, by dotted name; all others have their default. */
  readonly sources: ReadonlyMap<string, 'file' | 'environment'>
}

/** @throws ConfigError */
export function loadConfig({
  schema,
  file,
  env,
  readFile = path => readFileSync(path, 'utf8'),
}: LoadRequest): LoadedConfig {
  const text = readText(file, readFile)
  const ofFile = parseToml(file, text)
  const given = overrideFromEnvironment(ofFile, env, environmentKeys(schema))
  const faults = [...given.faults]
  const tables = readTable(nodeOf(schema), given.tables, [], {
    faults,
    names: dottedNames(schema),
    origin: path => originOf(given, path),
  })
  faults.push(...faultsBetweenKeys(tables))
  if (faults.length > 0) throw new ConfigError(file, faults, text)
  const complete = withDerived(nodeOf(schema), tables, textAt(tables, ['hostname']) ?? '')
  return {
    config: toConfig(schema, complete),
    tables: complete,
    keysWithoutEffect: keysWithoutEffect(knownKeys(schema), given.tables),
    sources: sourcesOf(knownKeys(schema), ofFile, given),
  }
}

function readText(file: string, readFile: (path: string) => string): string {
  try {
    return readFile(file)
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    if (!isMissing) throw new ConfigError(file, [`cannot be read: ${describeError(error)}`])
    throw new ConfigError(file, [
      'no such file; create it with the line hostname = "mail.example.com" (config/postroad.toml shows every key), ' +
        'or name another file with --config or POSTROAD_CONFIG',
    ])
  }
}

/** @throws ConfigError with line and column */
export function parseToml(file: string, text: string): Table {
  try {
    return parse(text)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    // The rest of the message quotes lines of the file, which may contain passwords.
    const what = error.message.split('\n', 1)[0]?.replace('Invalid TOML document: ', '') ?? ''
    throw new ConfigError(file, [`line ${error.line}, column ${error.column}: ${what}`])
  }
}

/** The variable that set a value, in parentheses; empty for the file. */
function originOf({ keys }: Overridden, path: readonly string[]): string {
  for (let length = path.length; length > 0; length--) {
    const key = path.slice(0, length)
    if (keys.has(key.join('.'))) return ` (${environmentName(key)})`
  }
  return ''
}

/** Checks rules across keys. Skips values that are invalid themselves; those are reported already. */
function faultsBetweenKeys(tables: Table): string[] {
  const faults: string[] = []
  const first = durationAt(tables, ['mta', 'retry', 'first'])
  for (const key of ['max', 'expire']) {
    const longer = durationAt(tables, ['mta', 'retry', key])
    if (first !== undefined && longer !== undefined && longer < first)
      faults.push(`mta.retry.${key}: must be at least mta.retry.first`)
  }
  for (const [index, route] of tablesAt(tables, ['mta', 'routes']).entries()) {
    if ((route['username'] === '') !== (route['password'] === ''))
      faults.push(`mta.routes.${index}: set both username and password, or neither`)
    else if (saysPasswordUnverified(route))
      faults.push(
        `mta.routes.${index}: with tls = "${String(route['tls'])}" the password could be intercepted; ` +
          'set tls = "verify", or password_without_verification = true',
      )
  }
  faults.push(...roleFaults(tables))
  for (const [index, site] of tablesAt(tables, ['mta', 'sites']).entries())
    if ([site['mx'], site['domain']].filter(pattern => pattern === '').length !== 1)
      faults.push(`mta.sites.${index}: set either mx or domain`)
  return faults
}

/** With SQLite there is no other node that could do what this one does not. */
function roleFaults(tables: Table): string[] {
  const roles = isTable(tables['roles']) ? Object.entries(tables['roles']) : []
  if (roles.length > 0 && roles.every(([, isOn]) => isOn === false))
    return ['roles: must have at least one role that is true']
  const url = textAt(tables, ['database', 'url'])
  if (url === undefined || parseDatabaseUrl(url)?.dialect !== 'sqlite') return []
  return roles
    .filter(([role, isOn]) => isOn === false && ONLY_NODE_ROLES.has(role))
    .map(
      ([role]) =>
        `roles.${role}: must be true with SQLite, since no other node can do it; for several nodes set database.url to a PostgreSQL database`,
    )
}

const ONLY_NODE_ROLES = new Set(['mta', 'scheduler'])

/** Loopback connections are exempt: nobody can intercept them. */
function saysPasswordUnverified({
  password,
  tls,
  host,
  password_without_verification: word,
}: Table): boolean {
  if (typeof password !== 'string' || typeof tls !== 'string' || typeof host !== 'string') return false
  return password !== '' && tls !== 'verify' && word !== true && !isLoopbackOrUnspecified(host)
}

/** Fills in empty values that are derived from the hostname, so that `config show` prints the effective ones. */
function withDerived({ properties = {} }: SchemaNode, tables: Table, hostname: string): Table {
  return Object.fromEntries(
    Object.entries(tables).map(([name, value]) => {
      const node = properties[name]
      if (node?.fromHostname && value === '') return [name, node.fromHostname(hostname)]
      return [name, node?.type === 'object' && isTable(value) ? withDerived(node, value, hostname) : value]
    }),
  )
}

function sourcesOf(
  known: readonly KnownKey[],
  ofFile: Table,
  { keys }: Overridden,
): Map<string, 'file' | 'environment'> {
  const sources = new Map<string, 'file' | 'environment'>()
  for (const { path, inList } of known) {
    const name = path.join('.')
    if (keys.has(name)) sources.set(name, 'environment')
    else if (!inList && valueAt(ofFile, path) !== undefined) sources.set(name, 'file')
  }
  return sources
}

function keysWithoutEffect(known: readonly KnownKey[], given: Table): string[] {
  return known.filter(key => !key.effective && isGiven(given, key)).map(({ path }) => path.join('.'))
}

function isGiven(given: Table, { path, node, inList }: KnownKey): boolean {
  if (inList) {
    // A list without effect is reported once, without its keys.
    const name = node.effective === false ? path.at(-1) : undefined
    return name !== undefined && tablesAt(given, path.slice(0, -1)).some(table => table[name] !== undefined)
  }
  const value = valueAt(given, path)
  return value !== undefined && !(isTableList(node) && Array.isArray(value) && value.length === 0)
}

export function valueAt(tables: Table, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, name) => (isTable(value) ? value[name] : undefined), tables)
}

function textAt(tables: Table, path: readonly string[]): string | undefined {
  const value = valueAt(tables, path)
  return typeof value === 'string' ? value : undefined
}

function durationAt(tables: Table, path: readonly string[]): number | undefined {
  const value = textAt(tables, path)
  return value === undefined ? undefined : parseDuration(value)
}

function tablesAt(tables: Table, path: readonly string[]): readonly Table[] {
  const value = valueAt(tables, path)
  return Array.isArray(value) ? value.filter(isTable) : []
}

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
      const meant = nearestVariable(name, [...known.keys(), NOT_A_KEY])
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
export function withValue(tables: Table, [name = '', ...rest]: readonly string[], value: unknown): Table {
  if (rest.length === 0) return { ...tables, [name]: value }
  const inner = tables[name] ?? {}
  return isTable(inner) ? { ...tables, [name]: withValue(inner, rest, value) } : tables
}
