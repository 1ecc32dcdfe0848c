/**
 * Drops root privileges in commands that create files in the data folder, which the service user must be able to open.
 *
 * Irreversible. Throws the system's error, e.g. in a container whose root may not change its user.
 */
import { statSync } from 'node:fs'

/** Switches from root to the folder's owner. Does nothing for other users, or if the folder belongs to root or does not exist. */
export function actAsOwnerOf(folder: string): void {
  if (process.geteuid?.() !== 0) return
  const owner = statSync(folder, { throwIfNoEntry: false })
  if (owner === undefined || owner.uid === 0) return
  // By number: the user may have no name. Also drops root's supplementary groups.
  process.setgroups?.([owner.gid])
  process.setgid?.(owner.gid)
  process.setuid?.(owner.uid)
}
