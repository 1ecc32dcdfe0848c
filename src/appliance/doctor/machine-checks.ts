/**
 * Checks of this machine and the appliance: configuration, disk, clock, server, jobs, keys of trusted networks.
 *
 * Used by `postroad doctor`. Never changes anything, never throws.
 */
import { existsSync } from 'node:fs'
import type { Appliance } from '../appliance.js'
import { findKey, type FoundKey } from '../../accounts/key-store.js'
import { unknownWorkspaces } from '../../accounts/operators/oidc/group-roles.js'
import { oidcSettings } from '../../accounts/operators/oidc/settings.js'
import { findRestoreHold } from '../../accounts/restore-hold-store.js'
import type { Config } from '../../config/config.js'
import { describeError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import { roughSize } from '../../core/units.js'
import { inspectSchema } from '../../db/migrate.js'
import { countSetAside } from '../../events/set-aside-store.js'
import { lastEventAt } from '../../events/store.js'
import { listJobs } from '../../scheduler/job-store.js'
import type { World } from '../../world/world.js'
import { listUpgradeCopies } from '../upgrade/upgrade-copies.js'
import { readUpgradeState } from '../upgrade/upgrade-state.js'
import { findConfigFaults, type FindingsRequest } from './config-findings.js'
import { fail, ok, warn, type Check } from './check.js'

const GIGABYTE = 1_000_000_000
/** Events are written by this machine's own clock. */
const CLOCK_TOLERANCE_MS = 5_000

export function configChecks(request: FindingsRequest): Check[] {
  const findings = findConfigFaults(request)
  if (findings.length === 0) return [ok('config', `${request.file} has no errors or warnings`)]
  return findings.map(({ severity, outage, path, what, fix }) =>
    (severity === 'fault' || outage ? fail : warn)(path === '' ? 'config' : path, what, fix),
  )
}

export async function diskCheck({ limits, dataDir }: Config, { disk }: Pick<World, 'disk'>): Promise<Check> {
  const reserve = limits.diskReserveBytes
  try {
    const free = await disk.freeSpace(dataDir)
    const text = `${(free / GIGABYTE).toFixed(1)} GB are free on the disk of ${dataDir}`
    const fix = 'free disk space, or shorten [retention]'
    if (free <= reserve) return fail('disk', `${text}: new mail is refused`, fix)
    return free <= 3 * reserve ? warn('disk', text, fix) : ok('disk', text)
  } catch (error) {
    return fail('disk', describeError(error), `check ${dataDir}`)
  }
}

/** It may have been changed since the server started. */
export async function schemaCheck({ database: { reader, dialect } }: Appliance): Promise<Check> {
  const { fault, foreign } = await inspectSchema(reader, dialect)
  if (fault) return fail('schema', fault.what, fault.fix)
  const more = foreign.length === 0 ? '' : `, and what Postroad did not create: ${foreign.join(', ')}`
  return ok('schema', `the database has the schema of this version${more}`)
}

/** While another process upgrades the database, or after one was interrupted. Only meaningful if the schema is older. */
export function upgradeCheck({ dataDir }: Config, isRunning: boolean): Check | undefined {
  const state = readUpgradeState(dataDir)
  if (!state) return undefined
  const { version, startedAt, migration, applied, total, copied, copy } = state
  const place =
    migration === null
      ? `copying the database (${Math.floor(100 * copied)} %)`
      : `migration ${Math.min(applied + 1, total)} of ${total} (${migration})`
  if (isRunning)
    return warn(
      'upgrade',
      `the database is being upgraded to version ${version} since ${isoTime(startedAt)}: ${place}`,
      'wait until it is done; nothing is accepted meanwhile',
    )
  return fail(
    'upgrade',
    `the upgrade to version ${version} of ${isoTime(startedAt)} was interrupted: ${place}`,
    `start the server: it continues${copy !== null && existsSync(copy) ? `; the copy from before is ${copy}` : ''}`,
  )
}

function upgradeCopiesCheck({ databaseFile }: Config): Check[] {
  if (databaseFile === undefined) return []
  const copies = listUpgradeCopies(databaseFile)
  if (copies.length === 0) return []
  const octets = copies.reduce((sum, copy) => sum + copy.octets, 0)
  const listed = copies.map(({ file, octets: size }) => `${file} (${roughSize(size)})`).join(', ')
  return [
    ok(
      'upgrade_copies',
      `copies from before upgrades take ${roughSize(octets)}: ${listed}; delete them if not needed`,
    ),
  ]
}

export async function stateChecks(appliance: Appliance): Promise<Check[]> {
  const {
    database: { reader },
    world,
  } = appliance
  const now = world.clock.now()
  const lastAt = (await lastEventAt(reader)) ?? 0
  const heldSince = await findRestoreHold(reader)
  const setAside = await countSetAside(reader)
  const failed = (await listJobs(reader)).filter(
    ({ failedAt, endedAt }) => failedAt !== null && failedAt === endedAt,
  )
  return [
    lastAt > now + CLOCK_TOLERANCE_MS
      ? fail(
          'clock',
          `it is ${isoTime(now)}, but events were written at ${isoTime(lastAt)}`,
          'set the clock by NTP',
        )
      : ok('clock', `it is ${isoTime(now)}; no event is later than that`),
    ...(heldSince === undefined
      ? []
      : [
          warn(
            'hold',
            `nothing has been sent since the restore at ${isoTime(heldSince)}`,
            'postroad queue release --all',
          ),
        ]),
    setAside === 0
      ? ok('events', 'every event was processed')
      : warn(
          'events',
          `${setAside} could not be processed and are set aside`,
          'see them: postroad event list',
        ),
    failed.length === 0
      ? ok('jobs', 'the last run of each job succeeded')
      : warn(
          'jobs',
          `the last run failed: ${failed.map(({ name }) => name).join(', ')}`,
          'see the errors: postroad jobs',
        ),
    ...upgradeCopiesCheck(appliance.config),
    ...(await trustedNetworkChecks(appliance)),
    ...(await roleMappingChecks(appliance)),
  ]
}

export function serverCheck(isServing: boolean): Check {
  return isServing
    ? ok('server', 'the server is running')
    : fail('server', 'the server is not running', 'systemctl start postroad, or postroad serve')
}

/** Keys in `submission.trusted_networks`: without a valid one, mail from devices there is rejected with 530. */
async function trustedNetworkChecks({ config, database: { reader } }: Appliance): Promise<Check[]> {
  const name = 'submission.trusted_networks'
  const { trustedNetworks } = config.submission
  const checks = await Promise.all(
    trustedNetworks.map(async ({ network, key }) => {
      const fault = keyFault(await findKey(reader, { id: key }))
      return fault === undefined
        ? []
        : fail(
            name,
            `${network}: the key ${key} ${fault}: mail from there is refused`,
            'create one: postroad key create --workspace ID --name NAME --permissions smtp:send, and set key to its id',
          )
    }),
  )
  const faulty = checks.flat()
  if (trustedNetworks.length === 0 || faulty.length > 0) return faulty
  return [ok(name, `the keys of ${trustedNetworks.map(({ network }) => network).join(', ')} are valid`)]
}

/** Workspaces in `oidc.roles`. */
async function roleMappingChecks({ config, database: { reader } }: Appliance): Promise<Check[]> {
  const name = 'oidc.roles'
  const { issuer, roles } = oidcSettings(config)
  if (issuer === undefined) return []
  const unknown = await unknownWorkspaces(reader, roles)
  return unknown.length === 0
    ? [ok(name, 'the workspaces of all roles exist')]
    : [
        fail(
          name,
          `no workspace ${unknown.join(', ')}: its roles are not given`,
          'set workspace to an id or name that postroad workspace list prints',
        ),
      ]
}

function keyFault(found: FoundKey | undefined): string | undefined {
  if (!found) return 'does not exist'
  const { revokedAt, permissions } = found.key
  if (revokedAt !== null) return `was revoked ${isoTime(revokedAt)}`
  if (!found.hasWorkspace) return 'belongs to a workspace that was removed'
  return permissions.includes('*') || permissions.includes('smtp:send')
    ? undefined
    : 'lacks the permission smtp:send'
}
