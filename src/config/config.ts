/**
 * The configuration as used by the code: decoded keys under camel-case names, and derived values.
 *
 * Durations get the suffix `Ms` and sizes `Bytes`, so that every number carries its unit: `final_dot` of `[mta.timeouts]` becomes
 * `mta.timeouts.finalDotMs`. Types are derived from the schema, which documents the keys. Created by the loader. Pure.
 */
import { isAbsolute, join } from 'node:path'
import type { StaticDecode, TArray, TObject, TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { isTable, type Table } from './read-tables.js'
import { type Milliseconds, nodeOf, type Octets, type SchemaNode } from './schema/fields.js'
import { type ConfigSchema, OWN_KEYS } from './schema/schema.js'

export interface Config extends Named<typeof OWN_KEYS> {
  /** Path of the SQLite file, joined to the data directory; undefined with PostgreSQL. */
  readonly databaseFile: string | undefined
  /** Undefined with SQLite. */
  readonly postgres: PostgresPlace | undefined
  /** By key of the file, in ms; 0 = forever. */
  readonly retention: Readonly<Record<string, number>>
  /** Sections declared by resources, by name. */
  readonly sections: Readonly<Record<string, unknown>>
}

export interface PostgresPlace {
  /** `postgres://...` */
  readonly url: string
  readonly listenUrl: string
}

/** @param tables validated, with defaults and derived values */
export function toConfig(schema: ConfigSchema, tables: Table): Config {
  const settings = Value.Decode(schema, tables)
  const { retention, data_dir: dataDir, database } = settings
  const { dialect, location } = database.url
  const isFile = dialect === 'sqlite'
  const { retention: _, ...all } = nodeOf(schema).properties ?? {}
  const added = Object.entries(all).filter(([name]) => !Object.hasOwn(OWN_KEYS.properties, name))
  return {
    ...withoutDisabledListeners(named(nodeOf(OWN_KEYS), settings) as Named<typeof OWN_KEYS>),
    databaseFile: isFile ? fileIn(dataDir, location) : undefined,
    postgres: isFile ? undefined : { url: location, listenUrl: database.listen_url ?? location },
    retention,
    sections: Object.fromEntries(
      added.map(([name, node]) => [name, named(node, (settings as Table)[name])] as const),
    ),
  }
}

/** A node without the role has no addresses to listen on. */
function withoutDisabledListeners(own: Named<typeof OWN_KEYS>): Named<typeof OWN_KEYS> {
  const { http, submission, inbound, roles } = own
  return {
    ...own,
    http: roles.http
      ? http
      : { ...http, listen: [], listenTls: [], publicListen: [], publicListenTls: [], redirectListen: [] },
    submission: roles.submission ? submission : { ...submission, listen: [], listenTls: [] },
    inbound: roles.inbound ? inbound : { ...inbound, listen: [] },
  }
}

function fileIn(folder: string, path: string): string {
  return isAbsolute(path) ? path : join(folder, path)
}

type CamelCase<Name> = Name extends `${infer Head}_${infer Rest}`
  ? `${Head}${Capitalize<CamelCase<Rest>>}`
  : Name & string

type NameOf<Key, Schema extends TSchema> =
  StaticDecode<Schema> extends Milliseconds
    ? `${CamelCase<Key>}Ms`
    : StaticDecode<Schema> extends Octets
      ? `${CamelCase<Key>}Bytes`
      : CamelCase<Key>

/** The decoded type of a schema, with names as in the code. */
export type Named<Schema extends TSchema> =
  Schema extends TObject<infer Keys>
    ? { readonly [Key in keyof Keys as NameOf<Key, Keys[Key]>]: Named<Keys[Key]> }
    : Schema extends TArray<infer Item>
      ? readonly Named<Item>[]
      : StaticDecode<Schema> extends Milliseconds | Octets
        ? number
        : StaticDecode<Schema>

const SUFFIXES = { ms: 'Ms', octets: 'Bytes' } as const

/** @param decoded the decoded value of the node */
export function named(node: SchemaNode, decoded: unknown): unknown {
  const { items, properties } = node
  if (properties && isTable(decoded))
    return Object.fromEntries(
      Object.entries(properties).map(([key, child]) => [nameOf(key, child), named(child, decoded[key])]),
    )
  return items && Array.isArray(decoded) ? decoded.map(item => named(items, item)) : decoded
}

function nameOf(key: string, { unit }: SchemaNode): string {
  const name = key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())
  return unit === undefined ? name : name + SUFFIXES[unit]
}

/** E.g. `http://127.0.0.1:8025`; no trailing slash. */
export function baseUrl({ http, publicUrl }: Pick<Config, 'http' | 'publicUrl'>): string {
  const [first] = http.listen
  if (!first) return publicUrl
  const host = first.host === '0.0.0.0' ? '127.0.0.1' : first.host === '::' ? '[::1]' : first.host
  return `http://${host}:${first.port}`
}
