/**
 * The program of the thread that brings the write-ahead log over into the database file.
 *
 * Started by `checkpointer.ts`, never imported. Never waits for a lock and never makes anybody wait: a passive checkpoint
 * takes what nobody reads any more.
 */
import BetterSqlite from 'better-sqlite3'
import { describeError } from '../../core/errors.js'
import { ownThread } from '../../world/threads.js'
import { sqliteCode } from '../sqlite/storage-fault.js'
import type { CheckpointAnswer, CheckpointOptions } from './checkpoint-protocol.js'

const thread = ownThread()
const handle = new BetterSqlite((thread.options as CheckpointOptions).file, { fileMustExist: true })
// Of the log before, and of the database file after: nothing is lost whenever the power fails.
handle.pragma('synchronous = FULL')

thread.listen(() => {
  let answer: CheckpointAnswer = {}
  try {
    handle.pragma('wal_checkpoint(PASSIVE)')
  } catch (error) {
    // Another process is at it already.
    if (!sqliteCode(error)?.startsWith('SQLITE_BUSY')) answer = { error: describeError(error) }
  }
  thread.post(answer)
})
