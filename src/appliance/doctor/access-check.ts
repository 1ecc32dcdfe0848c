/**
 * Whether the service's user can open its files; for root, who can open everything.
 *
 * The service's user is that of the unit `postroad.service`, else the owner of the data folder. Access is judged by owner, group and mode of
 * each file and of the folders above it; if they deny it, the kernel decides, which knows access control lists. Paths that the unit hides
 * or mounts read-only fail as well. Changes nothing. Never throws.
 */
import { readdirSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { oidcSettings } from '../../accounts/operators/oidc/settings.js'
import type { Config } from '../../config/config.js'
import { findStat } from '../../config/findings.js'
import type { AccessKind, Account, Machine } from '../../world/machine.js'
import { type Check, fail, ok } from './check.js'

const UNIT = 'postroad.service'

interface Wanted {
  readonly path: string
  readonly kinds: readonly AccessKind[]
  /** The key that names it. */
  readonly key: string
}

const NAME = 'access'

/** Only as root: for other users the configuration checks report what they cannot open. */
export async function accessChecks(config: Config, file: string, machine: Machine): Promise<Check[]> {
  if (machine.userId() !== 0) return []
  const unit = machine.unitSettings(UNIT)
  const user = unit?.get('User')
  const account = user === undefined ? ownerOf(config.dataDir, machine) : machine.account(user)
  if (account === undefined)
    return user === undefined
      ? []
      : [
          fail(
            NAME,
            `${UNIT} runs as ${user}, an account that does not exist`,
            `create it: useradd --system ${user}`,
          ),
        ]
  const wanted = wantedFiles(config, file).filter(({ path }) => findStat(path) !== undefined)
  const found = await Promise.all(wanted.map(one => refusals(one, account, unit, machine, config.dataDir)))
  const checks = mergeAlike(found.flat())
  return checks.length > 0
    ? checks
    : [ok(NAME, `the service's user, ${account.name}, may open all ${wanted.length} files`)]
}

/** Files that one command fixes are one line: a folder copied by root has many. */
function mergeAlike(checks: readonly Check[]): Check[] {
  return checks.flatMap((check, index) => {
    const alike = checks.filter(({ fix }) => fix === check.fix)
    if (checks.findIndex(({ fix }) => fix === check.fix) !== index) return []
    return [alike.length === 1 ? check : { ...check, what: `${check.what} (and ${alike.length - 1} more)` }]
  })
}

function ownerOf(folder: string, machine: Machine): Account | undefined {
  const owner = findStat(folder)
  if (owner === undefined || owner.uid === 0) return undefined
  const { uid, gid } = owner
  return machine.account(uid) ?? { name: `user ${uid}`, uid, gid, groups: [gid] }
}

function wantedFiles(config: Config, file: string): Wanted[] {
  const { dataDir, databaseFile, tls, mta, secrets } = config
  const oidc = oidcSettings(config)
  const written = (path: string): Wanted => ({ path, kinds: ['read', 'write'], key: 'data_dir' })
  const read = (key: string, path: string): Wanted[] => (path === '' ? [] : [{ path, kinds: ['read'], key }])
  const { key } = secrets
  const wanted: Wanted[] = [
    ...read('the configuration', file),
    { path: dataDir, kinds: ['read', 'write', 'enter'], key: 'data_dir' },
    ...entriesOf(dataDir).map(written),
    ...(databaseFile === undefined ? [] : databaseEntries(databaseFile)),
    ...read('tls.cert', tls.cert),
    ...read('tls.key', tls.key),
    ...read('tls.acme_ca', tls.acmeCa),
    ...read('mta.tls_ca', mta.tlsCa),
    ...read('oidc.client_secret_file', oidc.clientSecretFile),
    ...read('oidc.ca', oidc.ca),
    ...(key !== undefined && 'file' in key ? read('secrets.key', key.file) : []),
  ]
  return wanted.filter(({ path }, index, all) => all.findIndex(one => one.path === path) === index)
}

function databaseEntries(file: string): Wanted[] {
  return [
    { path: file, kinds: ['read', 'write'], key: 'database.url' },
    { path: dirname(file), kinds: ['write', 'enter'], key: 'database.url' },
  ]
}

/** Files that root created there, by copying or by a command, are the ones that the service cannot open. */
function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder).map(name => join(folder, name))
  } catch {
    return []
  }
}

async function refusals(
  { path, kinds, key }: Wanted,
  account: Account,
  unit: ReadonlyMap<string, string> | undefined,
  machine: Machine,
  folder: string,
): Promise<Check[]> {
  const hidden = unit && hiddenBy(unit, path, kinds.includes('write'))
  if (hidden !== undefined)
    return [
      fail(
        NAME,
        `${path} (${key}) ${hidden}`,
        `move it below /var/lib/postroad or /etc/postroad, or change the unit: systemctl edit ${UNIT}`,
      ),
    ]
  for (const kind of kinds) {
    const barrier = findBarrier(path, kind, account)
    if (barrier === undefined || (await machine.mayAccess(account, path, kind)) === true) continue
    const { uid, gid, mode } = findStat(barrier) ?? { uid: 0, gid: 0, mode: 0 }
    const owner = machine.account(uid)?.name ?? `user ${uid}`
    const rights = (mode & 0o7777).toString(8).padStart(4, '0')
    return [
      fail(
        NAME,
        `${account.name}, the user of the service, may not ${kind} ${path} (${key}): ${barrier === path ? 'it' : barrier} belongs to ${owner}, group ${gid}, mode ${rights}`,
        fixFor({ path, barrier, key }, account, folder),
      ),
    ]
  }
  return []
}

function fixFor(
  { path, barrier, key }: { readonly path: string; readonly barrier: string; readonly key: string },
  { name, gid }: Account,
  dataDir: string,
): string {
  if (key === 'data_dir') return `chown -R ${name}: ${dataDir}`
  if (key === 'database.url') return `chown -R ${name}: ${barrier}`
  if (barrier !== path)
    return `copy it to a folder of the service (docs/tls.md), or: setfacl -m u:${name}:x ${barrier}`
  return key === 'the configuration'
    ? `chown root:${gid} ${path} && chmod 0640 ${path}`
    : `chown ${name} ${path}, or: setfacl -m u:${name}:r ${path}`
}

/** @returns the file or the folder above it that forbids access, judged by owner, group and mode */
function findBarrier(path: string, kind: AccessKind, account: Account): string | undefined {
  const real = realPath(path)
  const folders = [...new Set([...foldersAbove(path), ...foldersAbove(real)])].sort()
  return (
    folders.find(folder => !isAllowed(folder, 'enter', account)) ??
    (isAllowed(path, kind, account) ? undefined : path)
  )
}

function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

function foldersAbove(path: string): string[] {
  const above = dirname(path)
  return above === path ? [above] : [...foldersAbove(above), above]
}

const BITS = { read: 4, write: 2, enter: 1 } as const

function isAllowed(path: string, kind: AccessKind, { uid, groups }: Account): boolean {
  const stat = findStat(path)
  if (stat === undefined || uid === 0) return true
  const shift = stat.uid === uid ? 6 : groups.includes(stat.gid) ? 3 : 0
  return ((stat.mode >> shift) & BITS[kind]) !== 0
}

const HOMES = ['/home', '/root', '/run/user']
const TEMPORARY = ['/tmp', '/var/tmp']

/** @returns how the unit keeps the path from the service (systemd.exec(5)) */
function hiddenBy(unit: ReadonlyMap<string, string>, path: string, isWritten: boolean): string | undefined {
  const isBelow = (folders: readonly string[]) =>
    folders.some(folder => path === folder || path.startsWith(`${folder}/`))
  const home = unit.get('ProtectHome')
  if (home !== undefined && /^(yes|true|1|on|tmpfs)$/.test(home) && isBelow(HOMES))
    return `is hidden from the service: the unit has ProtectHome=${home}`
  if (/^(yes|true|1|on)$/.test(unit.get('PrivateTmp') ?? '') && isBelow(TEMPORARY))
    return 'is hidden from the service: the unit has PrivateTmp=yes'
  const writable = [
    ...(unit.get('StateDirectory') ?? '').split(' ').map(name => `/var/lib/${name}`),
    ...(unit.get('ReadWritePaths') ?? '').split(' ').map(name => name.replace(/^[-+]+/, '')),
    ...HOMES,
    ...TEMPORARY,
    '/dev',
    '/proc',
    '/sys',
  ].filter(folder => folder !== '' && folder !== '/var/lib/')
  return isWritten && unit.get('ProtectSystem') === 'strict' && !isBelow(writable)
    ? 'is read-only for the service: the unit has ProtectSystem=strict'
    : undefined
}
