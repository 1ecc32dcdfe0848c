/**
 * The configuration as the program uses it: decoded, derived, complete.
 *
 * Made by the loader from `Settings`; `server.ts` hands each part what it needs of it. Durations are ms, sizes bytes.
 * What a key means stands in `schema.ts` and is not repeated here.
 */
import { join } from 'node:path'
import type { BackoffPolicy } from '../core/backoff.js'
import type { LogLevel } from '../world/log.js'
import { addedSections, type Settings } from './schema/schema.js'
import type { SecretKeySource } from './schema/secret-key.js'
import type { HostAndPort } from './schema/values.js'

export type TlsPolicy = 'none' | 'opportunistic' | 'require' | 'verify'

export interface Config {
  readonly hostname: string
  readonly dataDir: string
  /** Without trailing slash. */
  readonly publicUrl: string
  readonly shutdownGraceMs: number
  readonly http: {
    readonly listen: readonly HostAndPort[]
    /** Per minute and client address; 0 = unlimited. */
    readonly anonymousRateLimit: number
    readonly connections: number
    readonly connectionsPerAddress: number
  }
  readonly submission: {
    readonly listen: readonly HostAndPort[]
    readonly listenTls: readonly HostAndPort[]
    readonly requireTls: boolean
    readonly trustedNetworks: readonly { readonly network: string; readonly key: string }[]
    readonly sessions: number
    readonly sessionsPerAddress: number
    readonly maxRecipients: number
    readonly loginFailures: number
    readonly loginLockoutMs: number
  }
  readonly inbound: {
    readonly listen: readonly HostAndPort[]
    readonly keepMs: number
    readonly forwardTo: string | undefined
    readonly keepSizeBytes: number
    readonly messageSizeBytes: number
    readonly unsignedMessageSizeBytes: number
    /** Mail without a token of ours; 0 = no limit. */
    readonly unsigned: {
      readonly mailsPerMinute: number
      readonly octetsPerHour: number
      readonly octetsPerHourInAll: number
    }
    readonly greetingDelayMs: number
    /** 0 = no limit. */
    readonly connectionsPerMinute: number
    readonly sessions: number
    readonly sessionsPerAddress: number
    readonly maxRecipients: number
  }
  /** Paths of PEM files; empty for none. */
  readonly tls: { readonly cert: string; readonly key: string }
  /** `sqlite:` and the path of the file, already joined to the data folder. */
  readonly databaseUrl: string
  /** Undefined: secrets stand in the database as they are. */
  readonly secrets: { readonly key: SecretKeySource | undefined }
  readonly mta: MtaConfig
  readonly dns: {
    /** Empty: the system's. */
    readonly servers: readonly HostAndPort[]
    readonly timeoutMs: number
    readonly dkimZone: string
    readonly listen: readonly HostAndPort[]
  }
  readonly webhooks: { readonly allowNetworks: readonly string[] }
  readonly limits: {
    readonly messageSizeBytes: number
    /** Free space below which new mail is refused; 0 = none. */
    readonly diskReserveBytes: number
  }
  /** By key, in ms; 0 = for ever. */
  readonly retention: Readonly<Record<string, number>>
  /** By name, decoded; for the resources that declare some. */
  readonly sections: Readonly<Record<string, unknown>>
  readonly log: { readonly level: LogLevel }
}

export interface MtaConfig {
  readonly sharedAddress: string | undefined
  readonly returnPathDomain: string
  /** 0 = one per core. */
  readonly workers: number
  readonly capture: boolean
  readonly port: number
  readonly sourceAddresses: readonly string[]
  readonly sourcePools: readonly { readonly workspace: string; readonly addresses: readonly string[] }[]
  readonly connections: number
  readonly connectionsPerDestination: number
  readonly connectionMessages: number
  readonly connectionIdleMs: number
  readonly mtaSts: boolean
  readonly allowPrivate: boolean
  readonly routes: readonly RouteConfig[]
  readonly sites: readonly SiteConfig[]
  readonly retry: BackoffPolicy & { readonly expireMs: number }
  readonly timeouts: MtaTimeouts
}

export interface RouteConfig {
  /** Lower case: a domain, `*.domain` (names below it, not itself) or `*`. */
  readonly domain: string
  readonly host: string
  readonly port: number
  readonly tls: TlsPolicy
  /** Both given, or neither. */
  readonly credentials:
    | { readonly username: string; readonly password: string; readonly isPasswordForUnverified: boolean }
    | undefined
}

export interface SiteConfig {
  /** Patterns like a route's; exactly one of `mx` and `domain` is given. */
  readonly mx: string | undefined
  readonly domain: string | undefined
  readonly tls: Exclude<TlsPolicy, 'none'>
  /** 0 = no limit. */
  readonly connections: number
  readonly messagesPerMinute: number
}

/** RFC 5321 §4.5.3.2; what each one covers stands in the schema. */
export interface MtaTimeouts {
  readonly attemptMs: number
  readonly connectMs: number
  readonly greetingMs: number
  readonly ehloMs: number
  readonly starttlsMs: number
  readonly mailMs: number
  readonly rcptMs: number
  readonly dataMs: number
  readonly blockMs: number
  readonly finalDotMs: number
  readonly quitMs: number
}

export function toConfig(settings: Settings): Config {
  const { hostname, data_dir: dataDir, http, submission, inbound, tls, dns } = settings
  return {
    hostname,
    dataDir,
    publicUrl: settings.public_url ?? `https://${hostname}`,
    shutdownGraceMs: settings.shutdown_grace,
    http: {
      listen: http.listen,
      anonymousRateLimit: http.anonymous_rate_limit,
      connections: http.connections,
      connectionsPerAddress: http.connections_per_address,
    },
    submission: {
      listen: submission.listen,
      listenTls: submission.listen_tls,
      requireTls: submission.require_tls,
      trustedNetworks: submission.trusted_networks,
      sessions: submission.sessions,
      sessionsPerAddress: submission.sessions_per_address,
      maxRecipients: submission.max_recipients,
      loginFailures: submission.login_failures,
      loginLockoutMs: submission.login_lockout,
    },
    inbound: {
      listen: inbound.listen,
      keepMs: inbound.keep,
      forwardTo: inbound.forward_to,
      keepSizeBytes: inbound.keep_size,
      messageSizeBytes: inbound.message_size,
      unsignedMessageSizeBytes: inbound.unsigned_message_size,
      unsigned: {
        mailsPerMinute: inbound.unsigned_per_minute,
        octetsPerHour: inbound.unsigned_size_per_hour,
        octetsPerHourInAll: inbound.unsigned_size_per_hour_in_all,
      },
      greetingDelayMs: inbound.greeting_delay,
      connectionsPerMinute: inbound.connections_per_minute,
      sessions: inbound.sessions,
      sessionsPerAddress: inbound.sessions_per_address,
      maxRecipients: inbound.max_recipients,
    },
    tls,
    databaseUrl: `sqlite:${locationIn(dataDir, settings.database.url.location)}`,
    secrets: { key: settings.secrets.key },
    mta: toMtaConfig(settings.mta, hostname),
    dns: {
      servers: dns.servers,
      timeoutMs: dns.timeout,
      dkimZone: dns.dkim_zone ?? `dkim.${hostname}`,
      listen: dns.listen,
    },
    webhooks: { allowNetworks: settings.webhooks.allow_networks },
    limits: {
      messageSizeBytes: settings.limits.message_size,
      diskReserveBytes: settings.limits.disk_reserve,
    },
    retention: settings.retention,
    sections: addedSections(settings),
    log: settings.log,
  }
}

function toMtaConfig(mta: Settings['mta'], hostname: string): MtaConfig {
  const { retry, timeouts } = mta
  return {
    sharedAddress: mta.shared_address,
    returnPathDomain: mta.return_path_domain ?? `bounce.${hostname}`,
    workers: mta.workers,
    capture: mta.capture,
    port: mta.port,
    sourceAddresses: mta.source_addresses,
    sourcePools: mta.source_pools,
    connections: mta.connections,
    connectionsPerDestination: mta.connections_per_destination,
    connectionMessages: mta.connection_messages,
    connectionIdleMs: mta.connection_idle,
    mtaSts: mta.mta_sts,
    allowPrivate: mta.allow_private,
    routes: mta.routes.map(({ username, password, password_without_verification: word, ...route }) => ({
      ...route,
      credentials: username === '' ? undefined : { username, password, isPasswordForUnverified: word },
    })),
    sites: mta.sites.map(({ messages_per_minute: messagesPerMinute, ...site }) => ({
      ...site,
      messagesPerMinute,
    })),
    retry: { firstMs: retry.first, factor: retry.factor, maxMs: retry.max, expireMs: retry.expire },
    timeouts: {
      attemptMs: timeouts.attempt,
      connectMs: timeouts.connect,
      greetingMs: timeouts.greeting,
      ehloMs: timeouts.ehlo,
      starttlsMs: timeouts.starttls,
      mailMs: timeouts.mail,
      rcptMs: timeouts.rcpt,
      dataMs: timeouts.data,
      blockMs: timeouts.block,
      finalDotMs: timeouts.final_dot,
      quitMs: timeouts.quit,
    },
  }
}

function locationIn(dataDir: string, file: string): string {
  return file.startsWith('/') ? file : join(dataDir, file)
}
