/**
 * Configuration keys that take effect on reload (SIGHUP), without a restart.
 *
 * Used by `serve`, which logs changed keys and those that need a restart, and by the reference generator. `server.ts` must apply each
 * key listed here.
 */

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
