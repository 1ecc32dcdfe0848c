/**
 * Outgoing connections. The only place that opens a client socket or starts TLS on one.
 */
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls'
import type { Clock } from './clock.js'

export interface DialTarget {
  /** IP address, never a name: look-ups are the resolver's. */
  readonly address: string
  readonly port: number
  /** Source address to bind, if the operator chose one. */
  readonly localAddress?: string
  readonly timeoutMs: number
}

export interface Dialler {
  /** Resolves with a connected socket; rejects with the socket's error, or with code ETIMEDOUT. */
  connect(target: DialTarget): Promise<Socket>
  /** Starts TLS over a connected socket (STARTTLS and implicit TLS alike). Certificate trust is as the options say. */
  secure(socket: Socket, options: ConnectionOptions & { readonly timeoutMs: number }): Promise<TLSSocket>
}

export function openDialler(clock: Clock): Dialler {
  return {
    connect({ address, port, localAddress, timeoutMs }) {
      const socket = connectTcp({ host: address, port, ...(localAddress === undefined ? {} : { localAddress }) })
      // Dialogue is many small writes answered one by one; Nagle's delay would be added to each of them.
      socket.setNoDelay(true)
      return settled(clock, socket, 'connect', timeoutMs)
    },
    secure(socket, { timeoutMs, ...options }) {
      return settled(clock, connectTls({ ...options, socket }), 'secureConnect', timeoutMs)
    },
  }
}

/** Waits for the event that says the socket is usable; on error or timeout the socket is destroyed. */
function settled<S extends Socket>(clock: Clock, socket: S, ready: string, timeoutMs: number): Promise<S> {
  return new Promise((resolve, reject) => {
    const finish = (error?: Error) => {
      timer.cancel()
      socket.off('error', finish).off('close', onClose).off(ready, onReady)
      if (error === undefined) return resolve(socket)
      socket.on('error', () => {}) // an error after this one has nobody left to tell
      socket.destroy()
      reject(error)
    }
    const onReady = () => finish()
    const onClose = () => finish(Object.assign(new Error('connection closed'), { code: 'ECONNRESET' }))
    const timer = clock.after(timeoutMs, () =>
      finish(Object.assign(new Error('connection timed out'), { code: 'ETIMEDOUT' })),
    )
    socket.once('error', finish).once('close', onClose).once(ready, onReady)
  })
}
