/**
 * Main module of the checkpoint thread.
 *
 * Started by `checkpointer.ts`, never imported. Uses passive checkpoints, which neither wait for locks nor block anyone.
 */
import BetterSqlite from 'better-sqlite3'
import { describeError } from '../../core/errors.js'
import { ownThread } from '../../world/threads.js'
import { sqliteCode } from '../faults/storage-fault.js'
import type { CheckpointAnswer, CheckpointOptions } from './checkpointer.js'

const thread = ownThread()
const handle = new BetterSqlite((thread.options as CheckpointOptions).file, { fileMustExist: true })
// Syncs the log first and the database file afterwards, so that power loss never loses data.
handle.pragma('synchronous = FULL')

thread.listen(() => {
  let answer: CheckpointAnswer = {}
  try {
    handle.pragma('wal_checkpoint(PASSIVE)')
  } catch (error) {
    // Another process is checkpointing.
    if (!sqliteCode(error)?.startsWith('SQLITE_BUSY')) answer = { error: describeError(error) }
  }
  thread.post(answer)
})
