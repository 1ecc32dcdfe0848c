/**
 * A listening socket that only this machine's operator can reach: a Unix socket in a folder of ours.
 *
 * Opened by the composition root for the command line. Whoever may open the file may do everything behind it, so its mode is
 * 0600 from the moment it is there and its folder must not be open to others. Nothing is looked up, no port is taken, and no
 * web page can reach it. Fails: rejects with an Error that says what to change.
 */
import { chmodSync, lstatSync, rmSync, statSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { dirname } from 'node:path'
import type { Clock } from '../time/clock.js'

/** Octets of `sun_path` without the NUL at its end: Linux has 108. What is longer would be cut off without a word. */
const LONGEST_PATH = 107

const WRITABLE_BY_OTHERS = 0o002

export interface LocalListener {
  readonly path: string
  /** Takes no new connections, waits for requests under way, cuts what is left after `graceMs`, and removes the socket. */
  close(graceMs: number): Promise<void>
}

/**
 * Replaces a socket that lies there: call it only where no other process can be listening (it holds a lock on the folder).
 *
 * @param path of the socket; its folder exists
 */
export async function listenLocal(
  path: string,
  handler: RequestListener,
  clock: Clock,
): Promise<LocalListener> {
  checkLength(path)
  checkFolder(dirname(path))
  removeStale(path)
  const server = createServer(handler)
  await new Promise<void>((resolve, reject) => {
    server.once('error', error => reject(new Error(`cannot listen on ${path}: ${error.message}`)))
    // The file is made within the call: at no moment has it another mode.
    const before = process.umask(0o177)
    try {
      server.listen(path, resolve)
    } finally {
      process.umask(before)
    }
  })
  chmodSync(path, 0o600)
  return {
    path,
    async close(graceMs) {
      const cut = clock.after(graceMs, () => server.closeAllConnections())
      await new Promise<void>(resolve => {
        // Node removes the file.
        server.close(() => resolve())
        server.closeIdleConnections()
      })
      cut.cancel()
    },
  }
}

function checkLength(path: string): void {
  const octets = Buffer.byteLength(path)
  if (octets > LONGEST_PATH)
    throw new Error(
      `the path of the control socket is too long: ${path} has ${octets} octets, and a socket's may have ${LONGEST_PATH}; ` +
        'choose a shorter data_dir',
    )
}

function checkFolder(folder: string): void {
  const { mode, uid } = statSync(folder)
  const own = process.geteuid?.() ?? uid
  if (uid !== own && uid !== 0)
    throw new Error(
      `${folder} belongs to another user (${uid}): chown it to the user that the server runs as`,
    )
  if ((mode & WRITABLE_BY_OTHERS) !== 0)
    throw new Error(`${folder} can be written to by everybody: chmod o-w ${folder}`)
}

/** Of a server that was killed. */
function removeStale(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return
  if (!found.isSocket()) throw new Error(`${path} is in the way of the control socket: remove it`)
  rmSync(path)
}
