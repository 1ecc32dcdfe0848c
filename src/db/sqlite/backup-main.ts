/**
 * Main module of the backup thread: makes one backup and ends.
 *
 * Started by `appliance/system/backups.ts`, never imported. Copying, counting and verifying read the whole database.
 */
import { describeError } from '../../core/errors.js'
import { ownThread, stepAside } from '../../world/threads.js'
import { makeBackup, requireRestorable, type BackupRequest } from './backup-file.js'

/** Messages to the parent; the last one has `isDone` or `error`. */
export interface BackupMessage {
  /** 0 to 1. */
  readonly copied?: number
  readonly isDone?: true
  /** With `isDone`: why `restore` would refuse it. */
  readonly warning?: string
  readonly error?: string
}

const thread = ownThread()
const post = (message: BackupMessage): void => thread.post(message)
stepAside()
const request = thread.options as BackupRequest
makeBackup({ ...request, onProgress: copied => post({ copied }) }).then(
  () =>
    requireRestorable(request.target).then(
      () => post({ isDone: true }),
      (error: unknown) => post({ isDone: true, warning: describeError(error) }),
    ),
  (error: unknown) => post({ error: describeError(error) }),
)
