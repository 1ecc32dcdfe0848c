/**
 * Whom this process acts as.
 *
 * Called by commands that make files in the data folder: what root makes there the service could not open. Rights once given up
 * are given up for good. Fails: as the system does, e.g. in a container whose root may not become anybody else.
 */
import { statSync } from 'node:fs'

/** Of root makes the user whose folder it is; of anybody else, and where the folder is root's or not there, nothing. */
export function actAsOwnerOf(folder: string): void {
  if (process.geteuid?.() !== 0) return
  const owner = statSync(folder, { throwIfNoEntry: false })
  if (owner === undefined || owner.uid === 0) return
  // By number, since it need not have a name; the other groups of root go with this.
  process.setgroups?.([owner.gid])
  process.setgid?.(owner.gid)
  process.setuid?.(owner.uid)
}
