/** Everything that comes from outside the program, in one value that the entry point makes and tests replace. */
import { systemClock, type Clock } from './time/clock.js'
import { openDialler, type Dialler } from './net/dial.js'
import { openResolver } from './dns/dns-client.js'
import { systemDisk, type Disk } from './disk.js'
import type { Resolver } from './dns/dns.js'
import { systemTcpServer, type TcpServer } from './net/listen-tcp.js'
import { openMachine, type Machine } from './machine.js'
import { openLog, type Log } from './log.js'
import { systemRandom, type Random } from './random.js'
import { systemLookup, type SystemLookup } from './dns/host-lookup.js'

/** RFC 7914 §2: N is 2 to the power of `ln`. */
export interface ScryptCost {
  readonly ln: number
  readonly r: number
  readonly p: number
}

export interface World {
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly disk: Disk
  readonly dialler: Dialler
  readonly tcpServer: TcpServer
  readonly systemLookup: SystemLookup
  readonly machine: Machine
  /** Cost of hashing passwords with scrypt. Tests, whose passwords are no secret, set a low one. */
  readonly passwordCost?: ScryptCost
  /** Time after which building one message or rendering is ended, ms. Tests set one that a large message exceeds. */
  readonly taskLimitMs?: number
  /** @param servers as `ip:port`; empty for the system's @param signal aborts its lookups */
  openResolver(servers: readonly string[], timeoutMs: number, signal?: AbortSignal): Resolver
}

/** @param journalStream `$JOURNAL_STREAM`, where systemd has set it */
export function systemWorld(journalStream?: string): World {
  return {
    clock: systemClock,
    random: systemRandom,
    log: openLog({ level: 'info', journalStream }),
    disk: systemDisk,
    dialler: openDialler(systemClock),
    tcpServer: systemTcpServer,
    systemLookup,
    machine: openMachine(),
    openResolver: (servers, timeoutMs, signal) =>
      openResolver({ servers, timeoutMs, signal, clock: systemClock, random: systemRandom }),
  }
}
