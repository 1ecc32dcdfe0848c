/**
 * How this machine and the appliance on it stand: configuration, disk, clock, ports, the server, its jobs.
 *
 * Called by `postroad doctor`. Changes nothing. Fails: never.
 */
import type { Appliance } from '../../appliance/appliance.js'
import { findRestoreHold } from '../../accounts/restore-hold-store.js'
import type { Config } from '../../config/config.js'
import { describeError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import { isServing } from '../../db/sqlite/serve-lock.js'
import { countSetAside } from '../../events/set-aside-store.js'
import { lastEventAt } from '../../events/store.js'
import { listJobs } from '../../scheduler/job-store.js'
import type { Resolver } from '../../world/dns/dns.js'
import type { Dialler } from '../../world/net/dial.js'
import { ipVersion } from '../../world/net/ip-address.js'
import type { ListenAddress } from '../../world/net/listen.js'
import type { World } from '../../world/world.js'
import { findConfigFaults } from '../config-findings.js'
import { fail, ok, warn, type Check } from './check.js'

/** A host that takes everybody's mail, to find out whether port 25 leads out of here. */
export const PROBE_DOMAIN = 'gmail.com'
const CONNECT_MS = 10_000
const GIGABYTE = 1_000_000_000
/** Events are written by this machine's own clock. */
const CLOCK_TOLERANCE_MS = 5_000

export function configChecks(config: Config, file: string, now: number): Check[] {
  const findings = findConfigFaults({ config, file, now })
  if (findings.length === 0) return [ok('config', `${file}: right, and nothing in it that will hurt`)]
  return findings.map(({ severity, path, what, mend }) =>
    (severity === 'fault' ? fail : warn)(path === '' ? 'config' : path, what, mend),
  )
}

export async function diskCheck({ limits, dataDir }: Config, { disk }: Pick<World, 'disk'>): Promise<Check> {
  const reserve = limits.diskReserveBytes
  try {
    const free = await disk.freeSpace(dataDir)
    const text = `${(free / GIGABYTE).toFixed(1)} GB are free where ${dataDir} is`
    const mend = 'make room, or lower [retention]'
    if (free <= reserve) return fail('disk', `${text}: new mail is refused`, mend)
    return free <= 3 * reserve ? warn('disk', text, mend) : ok('disk', text)
  } catch (error) {
    return fail('disk', describeError(error), `look at ${dataDir}`)
  }
}

export async function stateChecks({ config, database: { reader }, world }: Appliance): Promise<Check[]> {
  const now = world.clock.now()
  const serving = isServing(config.dataDir)
  const lastAt = (await lastEventAt(reader)) ?? 0
  const heldSince = await findRestoreHold(reader)
  const setAside = await countSetAside(reader)
  const failed = (await listJobs(reader)).filter(
    ({ failedAt, endedAt }) => failedAt !== null && failedAt === endedAt,
  )
  return [
    ok('schema', 'the database has the schema of this version'),
    serving
      ? ok('server', 'it runs')
      : fail('server', 'it does not run', 'systemctl start postroad, or postroad serve'),
    lastAt > now + CLOCK_TOLERANCE_MS
      ? fail(
          'clock',
          `it is ${isoTime(now)}, but events were written at ${isoTime(lastAt)}`,
          'set the clock by NTP',
        )
      : ok('clock', `it is ${isoTime(now)}; no event is from the future`),
    ...(heldSince === undefined
      ? []
      : [
          warn(
            'hold',
            `nothing is sent since the restore of ${isoTime(heldSince)}`,
            'postroad queue release --all',
          ),
        ]),
    setAside === 0
      ? ok('events', 'none is set aside')
      : warn('events', `${setAside} are set aside: what should have followed did not`, 'postroad event list'),
    failed.length === 0
      ? ok('jobs', 'the last run of each was right')
      : warn('jobs', `the last run failed of ${failed.map(({ name }) => name).join(', ')}`, 'postroad jobs'),
  ]
}

/** Whether the server answers where it should, and whether port 25 leads out. */
export async function portChecks(
  config: Config,
  { dialler }: Pick<World, 'dialler'>,
  resolver: Resolver,
): Promise<Check[]> {
  const { inbound, submission, http, dns } = config
  const own = [
    ...http.listen.map(address => ({ name: 'port http', address })),
    ...http.listenTls.map(address => ({ name: 'port https', address })),
    ...http.publicListen.map(address => ({ name: 'port public', address })),
    ...http.publicListenTls.map(address => ({ name: 'port public_tls', address })),
    ...http.redirectListen.map(address => ({ name: 'port redirect', address })),
    ...submission.listen.map(address => ({ name: 'port submission', address })),
    ...submission.listenTls.map(address => ({ name: 'port submission_tls', address })),
    ...inbound.listen.map(address => ({ name: 'port inbound', address })),
    ...dns.listen.map(address => ({ name: 'port dns', address })),
  ]
  const checks = await Promise.all(own.map(({ name, address }) => ownPortCheck(name, address, dialler)))
  return [...checks, await outgoingCheck(config, dialler, resolver)]
}

async function ownPortCheck(name: string, { host, port }: ListenAddress, dialler: Dialler): Promise<Check> {
  const address = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  const where = `${host}:${port}`
  if (port === 0) return ok(name, `${where}: any free port`)
  const fault = await dial(dialler, address, port)
  return fault === undefined
    ? ok(name, `${where} answers from here; whether it does from outside, a firewall decides`)
    : fail(name, `${where} does not answer: ${fault}`, 'look at the log of the server')
}

async function outgoingCheck({ mta }: Config, dialler: Dialler, resolver: Resolver): Promise<Check> {
  const name = 'port 25 out'
  if (mta.capture) return ok(name, 'mail is kept in the local inbox (mta.capture)')
  const route = mta.routes.find(({ domain }) => domain === '*')
  if (route) {
    const fault = await dial(dialler, await addressOf(route.host, resolver), route.port)
    const where = `${route.host}:${route.port}`
    return fault === undefined
      ? ok(name, `the route for all mail, ${where}, answers`)
      : fail(name, `the route for all mail, ${where}: ${fault}`, 'look at mta.routes and that host')
  }
  const hosts = await resolver.mx(PROBE_DOMAIN)
  const [mx] = hosts.kind === 'found' ? hosts.records : []
  const found = mx && (await resolver.ipv4(mx.exchange))
  const [address] = found?.kind === 'found' ? found.records : []
  if (mx === undefined || address === undefined)
    return warn(name, `name servers do not answer for ${PROBE_DOMAIN}`, 'look at dns.servers and the network')
  const fault = await dial(dialler, address, mta.port)
  return fault === undefined
    ? ok(name, `${mx.exchange} answers`)
    : fail(
        name,
        `${mx.exchange} [${address}] cannot be reached: ${fault}`,
        'many providers block port 25: ask yours to open it, or set a route with a relay for all mail',
      )
}

/** Of a name the first that DNS knows; the name itself where nobody knows it. */
async function addressOf(host: string, resolver: Resolver): Promise<string> {
  if (ipVersion(host) !== 0) return host
  const found = await resolver.ipv4(host)
  return (found.kind === 'found' ? found.records[0] : undefined) ?? host
}

/** @returns what went wrong */
async function dial(dialler: Dialler, address: string, port: number): Promise<string | undefined> {
  try {
    const socket = await dialler.connect({ namedBy: 'operator', address, port, timeoutMs: CONNECT_MS })
    socket.destroy()
    return undefined
  } catch (error) {
    return describeError(error)
  }
}
