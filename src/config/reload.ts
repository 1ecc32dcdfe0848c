/**
 * Reload (SIGHUP): which keys take effect without a restart, and which differ between two configurations.
 *
 * `serve` logs changed keys, by name only since values can be secret, and those that need a restart. `server.ts` must apply each key of
 * `RELOADED_KEYS`. Pure.
 */
import { isDeepStrictEqual } from 'node:util'
import { isTable, type Table } from './read-tables.js'

/** Keys and sections; a section stands for all its keys. */
export const RELOADED_KEYS = [
  'log',
  'limits.disk_reserve',
  'http.anonymous_rate_limit',
  'http.connections',
  'http.connections_per_address',
  'submission.trusted_networks',
  'submission.sessions',
  'submission.sessions_per_address',
  'submission.max_recipients',
  'submission.login_failures',
  'submission.login_lockout',
  'inbound.relay_trusted',
  'inbound.sessions',
  'inbound.sessions_per_address',
  'inbound.connections_per_minute',
  'inbound.max_recipients',
  'inbound.greeting_delay',
  'webhooks',
  'mta.routes',
  'mta.sites',
  'mta.timeouts',
  'mta.tls_ca',
  'mta.port',
  'mta.source_addresses',
  'mta.source_pools',
  'mta.connections_per_destination',
  'mta.connection_messages',
  'mta.connection_idle',
  'mta.mta_sts',
  'mta.allow_private',
] as const

/** @param key dotted, positions in lists included or not */
export function isReloaded(key: string): boolean {
  return RELOADED_KEYS.some(one => key === one || key.startsWith(`${one}.`))
}

/** @param before, after in file notation, with every key */
export function changedKeys(before: Table, after: Table, path: readonly string[] = []): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names].flatMap(name => {
    const [was, is] = [before[name], after[name]]
    if (isTable(was) && isTable(is)) return changedKeys(was, is, [...path, name])
    return isDeepStrictEqual(was, is) ? [] : [[...path, name].join('.')]
  })
}
