/**
 * The configuration as the program uses it: the keys of the schema, decoded and by the program's names (`named.ts`), and what is
 * computed of them.
 *
 * Made by the loader; the composition root hands each part what it needs of it. What a key means stands in the schema and is not
 * repeated here.
 */
import { isAbsolute, join } from 'node:path'
import { Value } from 'typebox/value'
import { named, type Named } from './named.js'
import type { Table } from './read-tables.js'
import { nodeOf } from './schema/fields.js'
import { OWN_KEYS, type ConfigSchema } from './schema/schema.js'

export interface Config extends Named<typeof OWN_KEYS> {
  /** Path of the SQLite file, already joined to the data folder. */
  readonly databaseFile: string
  /** By key of the file, in ms; 0 = for ever. */
  readonly retention: Readonly<Record<string, number>>
  /** By name; each for the resource that declares it. */
  readonly sections: Readonly<Record<string, unknown>>
}

/** @param tables checked, with defaults and derived values filled in */
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
