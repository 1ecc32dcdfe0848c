/**
 * Facts about this machine for `config check` and `doctor`: addresses, port holders, accounts and what they may open, systemd units.
 *
 * Reads Linux's /proc, /etc/passwd, /etc/group and the unit files of systemd below `root`. Changes nothing and sends nothing.
 * Fails: never; what the system does not say, or hides from this user, is absent.
 */
import { execFile } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { readdirSync, readFileSync } from 'node:fs'
import { readdir, readlink } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { ipVersion } from './net/ip-address.js'

export interface PortHolder {
  /** Where it listens; `0.0.0.0` and `::` are every address. */
  readonly address: string
  /** Absent if /proc hides it from this user. */
  readonly process?: { readonly pid: number; readonly program: string }
}

export interface Account {
  readonly name: string
  readonly uid: number
  readonly gid: number
  /** All groups, including the primary one. */
  readonly groups: readonly number[]
}

export type AccessKind = 'read' | 'write' | 'enter'

export interface Machine {
  /** IPv4 and IPv6, without zones; undefined if the system does not say, e.g. for a service that may not open netlink sockets. */
  addresses(): readonly string[] | undefined
  /** Source address for a destination; undefined without a route. Sends nothing. */
  sourceFor(destination: string): Promise<string | undefined>
  /** Sockets listening on a TCP port; undefined if the system does not tell. */
  portHolders(port: number): Promise<readonly PortHolder[] | undefined>
  /** Effective user id of this process; undefined on systems without users. */
  userId(): number | undefined
  /** By name or number. */
  account(user: string | number): Account | undefined
  /** Asks the kernel, which knows access control lists; undefined where only root could ask, or nothing to ask with is installed. */
  mayAccess(account: Account, path: string, kind: AccessKind): Promise<boolean | undefined>
  /** `[Service]` of the unit with this name and its drop-ins; the last value of a key counts. Undefined without such a unit. */
  unitSettings(unit: string): ReadonlyMap<string, string> | undefined
}

const UNIT_FOLDERS = [
  '/lib/systemd/system',
  '/usr/lib/systemd/system',
  '/usr/local/lib/systemd/system',
  '/run/systemd/system',
  '/etc/systemd/system',
]
const ASK_MS = 2_000
const TEST_FLAGS = { read: '-r', write: '-w', enter: '-x' } as const

/** @param root of the files read; tests use another one */
export function openMachine(root = '/'): Machine {
  const text = (path: string) => {
    try {
      return readFileSync(join(root, path), 'utf8')
    } catch {
      return undefined
    }
  }
  return {
    addresses: ownAddresses,
    sourceFor,
    async portHolders(port) {
      const tables = ['proc/net/tcp', 'proc/net/tcp6'].map(text)
      if (tables.every(table => table === undefined)) return undefined
      const sockets = tables.flatMap(table => listeningSockets(table ?? '', port))
      const owners = sockets.length === 0 ? new Map<string, number>() : await socketOwners(root)
      return sockets.map(({ address, inode }) => {
        const pid = owners.get(inode)
        const program = pid === undefined ? undefined : text(`proc/${pid}/comm`)?.trim()
        return pid === undefined || program === undefined
          ? { address }
          : { address, process: { pid, program } }
      })
    },
    userId: () => process.geteuid?.(),
    account: user => findAccount(text('etc/passwd') ?? '', text('etc/group') ?? '', user),
    mayAccess: ({ name }, path, kind) => askKernel(name, path, TEST_FLAGS[kind]),
    unitSettings(unit) {
      const folders = UNIT_FOLDERS.filter(folder => text(join(folder, unit)) !== undefined)
      const file = folders.at(-1)
      if (file === undefined) return undefined
      const dropIns = UNIT_FOLDERS.flatMap(folder => entriesOf(join(root, folder, `${unit}.d`)))
      return serviceSettings([text(join(file, unit)) ?? '', ...dropIns])
    },
  }

  /** Drop-ins apply in the order of their names, whatever their folder. */
  function entriesOf(folder: string): string[] {
    try {
      const names = readdirSync(folder).filter(name => name.endsWith('.conf'))
      return names.sort().map(name => readFileSync(join(folder, name), 'utf8'))
    } catch {
      return []
    }
  }
}

function ownAddresses(): string[] | undefined {
  try {
    return Object.values(networkInterfaces()).flatMap(all => (all ?? []).map(({ address }) => address))
  } catch {
    return undefined
  }
}

/** Connecting a UDP socket selects the source address without sending anything. */
function sourceFor(destination: string): Promise<string | undefined> {
  // A name would trigger a lookup.
  if (ipVersion(destination) === 0) return Promise.resolve(undefined)
  return new Promise(resolve => {
    const socket = createSocket(ipVersion(destination) === 6 ? 'udp6' : 'udp4')
    const finish = (address?: string) => {
      socket.removeAllListeners().on('error', () => {})
      socket.close()
      resolve(address)
    }
    socket.once('error', () => finish())
    socket.once('connect', () => finish(socket.address().address))
    socket.connect(53, destination)
  })
}

/** TCP_LISTEN in /proc/net/tcp. */
const LISTENING = '0A'

/** @param table of proc_pid_net(5): `sl local_address rem_address st ... uid timeout inode` */
function listeningSockets(table: string, port: number): { address: string; inode: string }[] {
  return table.split('\n').flatMap(line => {
    const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/)
    const [address = '', digits = ''] = local.split(':')
    return state === LISTENING && Number.parseInt(digits, 16) === port
      ? [{ address: addressOfHex(address), inode }]
      : []
  })
}

/** Each 32-bit word is little-endian. */
function addressOfHex(hex: string): string {
  const octets = (hex.match(/.{8}/g) ?? []).flatMap(word =>
    (word.match(/../g) ?? []).reverse().map(octet => Number.parseInt(octet, 16)),
  )
  if (octets.length === 4) return octets.join('.')
  const groups = Array.from(
    { length: 8 },
    (_, at) => ((octets[2 * at] ?? 0) << 8) | (octets[2 * at + 1] ?? 0),
  )
  if (groups.every(group => group === 0)) return '::'
  return groups.map(group => group.toString(16)).join(':')
}

/** Process ids by socket inode, as far as this user may see them. */
async function socketOwners(root: string): Promise<Map<string, number>> {
  const owners = new Map<string, number>()
  const processes = (await readdir(join(root, 'proc')).catch(() => [])).filter(name => /^\d+$/.test(name))
  for (const pid of processes) {
    const folder = join(root, 'proc', pid, 'fd')
    for (const name of await readdir(folder).catch(() => [])) {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(await readlink(join(folder, name)).catch(() => '')) ?? []
      if (inode !== undefined && !owners.has(inode)) owners.set(inode, Number(pid))
    }
  }
  return owners
}

function findAccount(passwd: string, group: string, user: string | number): Account | undefined {
  const isIt =
    typeof user === 'number'
      ? (_: string, uid: string) => Number(uid) === user
      : (name: string) => name === user
  for (const line of passwd.split('\n')) {
    const [name = '', , uid = '', gid = ''] = line.split(':')
    if (name === '' || !isIt(name, uid)) continue
    const others = group.split('\n').flatMap(entry => {
      const [, , number = '', members = ''] = entry.split(':')
      return members.split(',').includes(name) ? Number(number) : []
    })
    return { name, uid: Number(uid), gid: Number(gid), groups: [Number(gid), ...others] }
  }
  return undefined
}

/** As that account, with all its groups. */
function askKernel(name: string, path: string, flag: string): Promise<boolean | undefined> {
  if (process.geteuid?.() !== 0) return Promise.resolve(undefined)
  return new Promise(resolve => {
    execFile('runuser', ['-u', name, '--', 'test', flag, path], { timeout: ASK_MS }, error => {
      if (error === null) resolve(true)
      // `test` exits with 1 for "no"; any other code means it did not run.
      else resolve(error.code === 1 ? false : undefined)
    })
  })
}

/** Keys whose values accumulate; an empty value clears them. */
const LISTS = new Set(['StateDirectory', 'ReadWritePaths'])

function serviceSettings(files: readonly string[]): Map<string, string> {
  const settings = new Map<string, string>()
  for (const file of files) {
    let section = ''
    for (const line of file.split('\n')) {
      section = /^\[(\w+)\]/.exec(line)?.[1] ?? section
      const [, key, value = ''] = /^(\w+)=(.*)$/.exec(line) ?? []
      if (section !== 'Service' || key === undefined) continue
      const before = LISTS.has(key) && value.trim() !== '' ? settings.get(key) : undefined
      settings.set(key, `${before === undefined ? '' : `${before} `}${value.trim()}`)
    }
  }
  return settings
}
