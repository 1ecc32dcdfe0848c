/**
 * The configuration of a running process key by key: what is in effect, where it was set, and what the file would change.
 *
 * `serve` creates it at start and notes each reload. Values are in file notation; secrets are hidden.
 * Fails: never; a file that cannot be loaded now is a result.
 */
import { isDeepStrictEqual } from 'node:util'
import { describeError } from '../core/errors.js'
import { withoutSecrets } from './generate.js'
import { environmentName, knownKeys, type KnownKey } from './key-names.js'
import { loadConfig, valueAt, withValue, type LoadedConfig, type LoadRequest } from './load.js'
import type { Table } from './read-tables.js'
import { isReloaded } from './reload.js'
import { nodeOf } from './schema/fields.js'

export interface Setting {
  /** Dotted, e.g. `mta.retry.first`. */
  readonly key: string
  readonly value: unknown
  /** Undefined for a required key. */
  readonly default: unknown
  readonly source: 'file' | 'environment' | 'default'
  /** Environment variable that overrides the file. */
  readonly variable: string
  /** Whether a reload suffices to change it. */
  readonly isReloaded: boolean
  /** False if this version does not use the key. */
  readonly isEffective: boolean
  /** Whether the file or environment now has another value, which awaits a reload or restart. */
  readonly isPending: boolean
  readonly expected: string
  readonly description: string
}

export class Settings {
  readonly request: LoadRequest
  /** @throws ConfigError */
  readonly started: LoadedConfig
  private reloaded: LoadedConfig

  /** @throws ConfigError */
  constructor(request: LoadRequest) {
    this.request = request
    this.started = this.reloaded = loadConfig(request)
  }

  /** @param loaded configuration whose reloadable keys are in effect from now on */
  noteReload(loaded: LoadedConfig): void {
    this.reloaded = loaded
  }

  /** @returns every key outside lists of tables, in schema order */
  list(): { readonly settings: readonly Setting[]; readonly fault: string | null } {
    const { schema } = this.request
    const { next, fault } = this.readFile()
    const effective = this.tables()
    const shown = withoutSecrets(nodeOf(schema), effective)
    const settings = this.keys().map(({ path, node, effective: isEffective }): Setting => {
      const key = path.join('.')
      const hostname = String(effective['hostname'])
      return {
        key,
        value: valueAt(shown, path),
        default: node.fromHostname?.(hostname) ?? node.default,
        source: this.loadedFor(key).sources.get(key) ?? 'default',
        variable: environmentName(path),
        isReloaded: isReloaded(key),
        isEffective,
        isPending: next !== undefined && !isDeepStrictEqual(valueAt(effective, path), valueAt(next, path)),
        expected: node.expected ?? node.items?.expected ?? node.type,
        description: node.description,
      }
    })
    return { settings, fault }
  }

  /** In file notation, with every key. Contains secrets. */
  tables(): Table {
    return this.keys()
      .filter(({ path }) => isReloaded(path.join('.')))
      .reduce(
        (tables, { path }) => withValue(tables, path, valueAt(this.reloaded.tables, path)),
        this.started.tables,
      )
  }

  private keys(): KnownKey[] {
    return knownKeys(this.request.schema).filter(({ inList }) => !inList)
  }

  private loadedFor(key: string): LoadedConfig {
    return isReloaded(key) ? this.reloaded : this.started
  }

  private readFile(): { readonly next?: Table; readonly fault: string | null } {
    try {
      return { next: loadConfig(this.request).tables, fault: null }
    } catch (error) {
      return { fault: describeError(error) }
    }
  }
}
