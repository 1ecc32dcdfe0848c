/**
 * Applies a reloaded configuration to the running server; keys that cannot be reloaded keep their value.
 *
 * Part of the composition root. `config/reload.ts` lists the keys for the operator; this applies them. Pure.
 */
import type { Config } from '../config/config.js'

/** @param start configuration at server start @param next configuration as reloaded */
export function applyReload(start: Config, next: Config): Config {
  const { submission, inbound, http, mta } = next
  return {
    ...start,
    log: next.log,
    webhooks: next.webhooks,
    limits: { ...start.limits, diskReserveBytes: next.limits.diskReserveBytes },
    http: {
      ...start.http,
      anonymousRateLimit: http.anonymousRateLimit,
      connections: http.connections,
      connectionsPerAddress: http.connectionsPerAddress,
    },
    submission: {
      ...submission,
      listen: start.submission.listen,
      listenTls: start.submission.listenTls,
      requireTls: start.submission.requireTls,
    },
    inbound: {
      ...start.inbound,
      relayTrusted: inbound.relayTrusted,
      sessions: inbound.sessions,
      sessionsPerAddress: inbound.sessionsPerAddress,
      connectionsPerMinute: inbound.connectionsPerMinute,
      maxRecipients: inbound.maxRecipients,
      greetingDelayMs: inbound.greetingDelayMs,
    },
    mta: {
      ...mta,
      sharedAddress: start.mta.sharedAddress,
      returnPathDomain: start.mta.returnPathDomain,
      workers: start.mta.workers,
      capture: start.mta.capture,
      connections: start.mta.connections,
      retry: start.mta.retry,
    },
  }
}
