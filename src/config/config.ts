/**
 * The configuration as used by the code: decoded keys under camel-case names (`named.ts`), and derived values.
 *
 * Created by the loader; the composition root passes each part what it needs. The schema documents the keys.
 */
import { isAbsolute, join } from 'node:path'
import { Value } from 'typebox/value'
import { named, type Named } from './named.js'
import type { Table } from './read-tables.js'
import { nodeOf } from './schema/fields.js'
import { OWN_KEYS, type ConfigSchema } from './schema/schema.js'

export interface Config extends Named<typeof OWN_KEYS> {
  /** Path of the SQLite file, joined to the data directory. */
  readonly databaseFile: string
  /** By key of the file, in ms; 0 = forever. */
  readonly retention: Readonly<Record<string, number>>
  /** Sections declared by resources, by name. */
  readonly sections: Readonly<Record<string, unknown>>
}

/** @param tables validated, with defaults and derived values */
export function toConfig(schema: ConfigSchema, tables: Table): Config {
  const settings = Value.Decode(schema, tables)
  const { retention, data_dir: dataDir, database } = settings
  const { location } = database.url
  const { retention: _, ...all } = nodeOf(schema).properties ?? {}
  const added = Object.entries(all).filter(([name]) => !Object.hasOwn(OWN_KEYS.properties, name))
  return {
    ...(named(nodeOf(OWN_KEYS), settings) as Named<typeof OWN_KEYS>),
    databaseFile: isAbsolute(location) ? location : join(dataDir, location),
    retention,
    sections: Object.fromEntries(
      added.map(([name, node]) => [name, named(node, (settings as Table)[name])] as const),
    ),
  }
}
