/**
 * The control socket: a Unix socket only the operator of this machine can open.
 *
 * Whoever can open it has full control, so it is created with mode 0600 and its folder must not be writable by others. No network or
 * web page can reach it. Rejects with an error that says what to change.
 */
import { chmodSync, lstatSync, rmSync, statSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { dirname } from 'node:path'
import type { Clock } from '../time/clock.js'

/** `sun_path` on Linux without its NUL; longer paths would be truncated silently. */
const MAX_PATH_BYTES = 107

const WRITABLE_BY_OTHERS = 0o002

export interface LocalListener {
  readonly path: string
  /** Stops accepting, waits for requests in progress, closes the rest after `graceMs` and removes the socket. */
  close(graceMs: number): Promise<void>
}

/**
 * Replaces an existing socket, so call it only while holding the lock on the data folder.
 *
 * @param path its folder must exist
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
    // listen() creates the file synchronously, so it never has another mode.
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
        server.close(() => resolve())
        server.closeIdleConnections()
      })
      cut.cancel()
    },
  }
}

function checkLength(path: string): void {
  const octets = Buffer.byteLength(path)
  if (octets > MAX_PATH_BYTES)
    throw new Error(
      `the path of the control socket is too long: ${path} has ${octets} bytes, the limit is ${MAX_PATH_BYTES}; ` +
        'choose a shorter data_dir',
    )
}

function checkFolder(folder: string): void {
  const { mode, uid } = statSync(folder)
  const own = process.geteuid?.() ?? uid
  if (uid !== own && uid !== 0)
    throw new Error(`${folder} belongs to another user (${uid}); chown it to the user the server runs as`)
  if ((mode & WRITABLE_BY_OTHERS) !== 0)
    throw new Error(`${folder} is writable by everybody; run chmod o-w ${folder}`)
}

/** Left by a server that was killed. */
function removeStale(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return
  if (!found.isSocket()) throw new Error(`${path} is not a socket and blocks the control socket; remove it`)
  rmSync(path)
}
