/**
 * `postroad backup FILE`: copies the database while the server runs, and verifies the copy. `postroad restore FILE`: replaces the database
 * with a backup; its queue is held, so that nothing is sent twice.
 *
 * Backups are signed with `secrets.key`. `restore` checks the signature, then the schema, before any query of the file runs: a backup can
 * bring triggers and views, and rows that nobody wrote here.
 *
 * A backup contains the database (mail, contacts, keys; secrets are encrypted if `secrets.key` is set). It does not contain the
 * configuration, certificate files or the `secrets.key` file.
 */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import { setRestoreHold } from '../accounts/restore-hold-store.js'
import { readSecretKey } from '../accounts/secret-sealing.js'
import { eraseAgain } from '../appliance/erasure/erase.js'
import { openAppliance, requireInitialised } from '../appliance/appliance.js'
import { removeUpgradeState } from '../appliance/upgrade/upgrade-state.js'
import type { BackupView } from '../appliance/system/backup-routes.js'
import { NO_FILE_TO_BACK_UP } from '../appliance/system/backups.js'
import type { Config } from '../config/config.js'
import { AppError, describeError } from '../core/errors.js'
import { isoTime } from '../core/moments.js'
import { formatSize } from '../core/units.js'
import { VERSION } from '../core/version.js'
import {
  makeBackup,
  readBackup,
  requireFree,
  requireRestorable,
  sync,
  unpackBackup,
  type BackupFacts,
} from '../db/sqlite/backup-file.js'
import { checkBackup, octetsOfBackup } from '../db/sqlite/backup-signature.js'
import { checkBackupHeader } from '../db/sqlite/check-file.js'
import { takeServeLock } from '../db/sqlite/serve-lock.js'
import { countEntries } from '../queue/operator/queue-admin-store.js'
import { actAsOwnerOf } from '../world/process-owner.js'
import {
  drawProgress,
  endProgress,
  printResult,
  readConfig,
  type CliContext,
  type CommonOptions,
} from './context.js'
import { hasRemote, withApi, type ApiClient } from './api.js'
import { apiCommand, confirm, confirmable, type ConfirmOptions, command } from './options.js'

export function backupCommand(program: Command, context: CliContext): void {
  apiCommand(program, 'backup <file>', 'back up the database to a file; the server may be running').action(
    async (file: string, options: CommonOptions) => {
      const target = resolve(file)
      const isRemote = hasRemote(context, options)
      try {
        const facts = await (isRemote ? backUpRemote : backUpHere)(context, options, target)
        endProgress()
        const { size } = statSync(target)
        printResult(context, options, { file: target, size, ...toJson(facts) }, () =>
          [
            `${target}: ${formatSize(size)}, verified`,
            isRemote ? 'signed by the server if it has secrets.key' : signedText(context, options),
            `${facts.rows['messages'] ?? 0} messages, ${facts.rows['queue'] ?? 0} of them queued, ${facts.rows['contacts'] ?? 0} contacts`,
            'not included: the configuration, certificate files and the secrets.key file; back them up separately',
          ].join('\n'),
        )
        // The file is kept: nothing is missing in it. A remote appliance may be of another version.
        if (!isRemote) await requireRestorable(target)
      } finally {
        endProgress()
      }
    },
  )
}

function backUpHere(context: CliContext, options: CommonOptions, target: string): Promise<BackupFacts> {
  const { config } = readConfig(context, options)
  requireInitialised(config)
  return makeBackup({
    source: databaseFileOf(config),
    target,
    now: context.world.clock.now(),
    version: VERSION,
    secretKey: secretKeyOf(config),
    onProgress: done => drawProgress(done, 'copied'),
  })
}

/** @throws AppError conflict with PostgreSQL */
function databaseFileOf({ databaseFile }: Config): string {
  if (databaseFile === undefined) throw new AppError('conflict', NO_FILE_TO_BACK_UP)
  return databaseFile
}

/** @throws SecretKeyError */
function secretKeyOf({ secrets }: Config): Buffer | undefined {
  return secrets.key && readSecretKey(secrets.key)
}

function signedText(context: CliContext, options: CommonOptions): string {
  const { config } = readConfig(context, options)
  return config.secrets.key
    ? 'signed with secrets.key'
    : 'not signed, since secrets.key is not set: a change of the file cannot be detected'
}

const POLL_MS = 500

/** The remote appliance makes a backup, which is downloaded, verified here, and deleted there. */
function backUpRemote(context: CliContext, options: CommonOptions, target: string): Promise<BackupFacts> {
  requireFree(target)
  return withApi(context, options, async ({ admin }) => {
    const { name } = await admin.send<BackupView>('POST', '/backups')
    await untilMade(context, admin, name)
    const partial = `${target}.partial`
    try {
      await writeFile(partial, await admin.download(`/backups/${name}`), { mode: 0o600 })
      const facts = readBackup(partial)
      sync(partial)
      renameSync(partial, target)
      sync(dirname(target))
      return facts
    } finally {
      rmSync(partial, { force: true })
      await admin.send('DELETE', `/backups/${name}`)
    }
  })
}

async function untilMade({ world }: CliContext, admin: ApiClient, name: string): Promise<void> {
  for (;;) {
    const backup = (await admin.list<BackupView>('/backups', {}, 1_000)).find(one => one.name === name)
    if (backup?.state === 'complete') return
    if (backup?.state !== 'running')
      throw new Error(`the backup failed: ${backup?.error ?? 'it was deleted'}`)
    drawProgress(backup.progress, 'copied')
    await world.clock.sleep(POLL_MS)
  }
}

export function restoreCommand(program: Command, context: CliContext): void {
  confirmable(
    command(
      program,
      'restore <file>',
      'replace the database with a backup (the server must be stopped)',
    ).option(
      '--unsigned',
      'also a backup whose signature is missing, wrong or of another secrets.key: only if you know where the file was since it was made',
    ),
  ).action(async (file: string, options: RestoreOptions) => {
    const { config } = readConfig(context, options)
    const secretKey = secretKeyOf(config)
    const check = (path: string) => checkSignature(path, file, secretKey, options.unsigned === true)
    check(file)
    await requireRestorable(file)
    const facts = readBackup(file)
    const databaseFile = databaseFileOf(config)
    const isThere = (statSync(databaseFile, { throwIfNoEntry: false })?.size ?? 0) > 0
    if (isThere)
      await confirm(
        context,
        options,
        `This replaces the database in ${config.dataDir} with the backup of ${isoTime(facts.madeAt)}. The current database is kept under another name.`,
      )
    // Opened as root: the owner of the data folder may not be able to read the backup.
    const source = openSync(resolve(file), 'r')
    actAsOwnerOf(config.dataDir)
    mkdirSync(dirname(databaseFile), { recursive: true, mode: 0o700 })
    mkdirSync(config.dataDir, { recursive: true, mode: 0o700 })
    const lock = takeServeLock(config.dataDir)
    const copy = `${databaseFile}.restoring`
    try {
      removeDatabase(copy)
      copyOctets(source, copy)
      // Again, since the file itself may have changed meanwhile.
      truncateSync(copy, check(copy))
      unpackBackup(copy)
      const waiting = await prepare(context, { ...config, databaseFile: copy })
      const kept = setAside(context, databaseFile)
      sync(copy)
      renameSync(copy, databaseFile)
      sync(dirname(databaseFile))
      // Of the database that is set aside.
      removeUpgradeState(config.dataDir)
      const json = { success: true, held: true, former: kept ?? null, ...toJson(facts) }
      printResult(context, options, json, () =>
        [
          `restored the backup of ${isoTime(facts.madeAt)}`,
          ...(kept === undefined ? [] : [`the previous database is ${kept}`]),
          `the queue is held: nothing is sent until you run \`postroad queue release --all\`${waiting ? '; review it first: postroad queue list' : ''}`,
        ].join('\n'),
      )
    } finally {
      closeSync(source)
      removeDatabase(copy)
      lock[Symbol.dispose]()
    }
  })
}

interface RestoreOptions extends ConfirmOptions {
  readonly unsigned?: boolean
}

/** @param named the file that errors name @returns octets of the database in it @throws Error unless it may be restored */
function checkSignature(
  path: string,
  named: string,
  secretKey: Buffer | undefined,
  mayBeUnsigned: boolean,
): number {
  if (!existsSync(path)) throw new Error(`there is no file ${named}`)
  checkBackupHeader(path)
  const descriptor = openSync(path, 'r')
  try {
    return mayBeUnsigned ? octetsOfBackup(descriptor) : checkBackup(descriptor, secretKey).octets
  } catch (error) {
    throw new Error(
      `${named}: ${describeError(error)}; if you know that nobody changed it, restore it with --unsigned`,
      { cause: error },
    )
  } finally {
    closeSync(descriptor)
  }
}

function removeDatabase(file: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true })
}

const COPIED_AT_ONCE = 1 << 20

function copyOctets(source: number, target: string): void {
  const octets = Buffer.allocUnsafe(COPIED_AT_ONCE)
  const copy = openSync(target, 'wx', 0o600)
  try {
    for (let read; (read = readSync(source, octets)) > 0;) writeFileSync(copy, octets.subarray(0, read))
  } finally {
    closeSync(copy)
  }
}

/**
 * Migrates the copy, erases again everyone erased since the backup, checks that its secrets can be decrypted, and holds its queue. @returns
 * whether mail is queued
 */
async function prepare(context: CliContext, config: Config): Promise<boolean> {
  const appliance = await openAppliance({ config, world: context.world, mayMigrate: true })
  try {
    const { database, world } = appliance
    await database.write(tx => setRestoreHold(tx.db, world.clock.now()))
    await eraseAgain({ database, clock: world.clock, dataDir: config.dataDir })
    return (await countEntries(database.reader, {}, 1)) > 0
  } finally {
    // Closing the last connection checkpoints the log into the file.
    await appliance[Symbol.asyncDispose]()
  }
}

/** @returns path of the previous database; undefined if there was none */
function setAside({ world }: CliContext, file: string): string | undefined {
  if (!existsSync(file)) return undefined
  const former = `${file}.before-restore-${isoTime(world.clock.now()).replace(/[:.]/g, '-')}`
  // The log first: a database without its log is consistent as of its last checkpoint; a log without its database is useless.
  for (const end of ['-wal', '-shm', '']) if (existsSync(file + end)) renameSync(file + end, former + end)
  return former
}

function toJson(facts: BackupFacts) {
  return { made_at: isoTime(facts.madeAt), version: facts.version, schema: facts.schema, rows: facts.rows }
}
