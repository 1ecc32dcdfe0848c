/**
 * Outgoing connections. The only place that opens a client socket or starts TLS on one.
 *
 * Called by the SMTP client. Never looks a name up, never decides whether a certificate will do: it tells what it found; never
 * calls an address that the egress policy refuses (`egress-policy.ts`) unless the operator named it.
 * Fails: rejects with the socket's error, with code ETIMEDOUT, ABORT_ERR or EADDRNOTPUBLIC; the socket is then destroyed.
 */
import { connect as connectTcp, type Socket } from 'node:net'
import {
  connect as connectTls,
  createSecureContext,
  DEFAULT_MIN_VERSION,
  rootCertificates,
  type ConnectionOptions,
  type SecureContext,
  type TLSSocket,
} from 'node:tls'
import type { Clock } from '../time/clock.js'
import { assertAllowed, PUBLIC_ONLY, type Named, type EgressPolicy } from './egress-policy.js'

export type { Socket } from 'node:net'
export type { TLSSocket } from 'node:tls'

export interface DialTarget extends Named {
  /** IP address, never a name: look-ups are the resolver's. */
  readonly address: string
  readonly port: number
  /** Source address to bind, if the operator chose one. */
  readonly localAddress?: string
  readonly timeoutMs: number
  /** Gives up before the connection stands; afterwards it has no effect. */
  readonly signal?: AbortSignal
}

export interface SecureOptions extends ConnectionOptions {
  readonly timeoutMs: number
  /** Gives up before the handshake is done; afterwards it has no effect. */
  readonly signal?: AbortSignal
}

export interface Dialler {
  /** Resolves with a connected socket. */
  connect(target: DialTarget): Promise<Socket>
  /** Starts TLS over a connected socket (STARTTLS and implicit TLS alike). Certificate trust is as the options say. */
  secure(socket: Socket, options: SecureOptions): Promise<TLSSocket>
}

/** @param authorities PEM of certification authorities that are believed beside the usual ones; empty for none */
export function openDialler(clock: Clock, egress: EgressPolicy = PUBLIC_ONLY, authorities = ''): Dialler {
  const trust = trustIn(authorities)
  return {
    async connect({ address, port, localAddress, timeoutMs, signal, ...named }) {
      assertAllowed(egress, named, address)
      const socket = connectTcp({
        host: address,
        port,
        ...(localAddress === undefined ? {} : { localAddress }),
      })
      // Dialogue is many small writes answered one by one; Nagle's delay would be added to each of them.
      socket.setNoDelay(true)
      return settled(clock, socket, 'connect', timeoutMs, signal)
    },
    async secure(socket, { timeoutMs, signal, ...options }) {
      try {
        return await settled(
          clock,
          connectTls({ ...options, ...trust(options), socket }),
          'secureConnect',
          timeoutMs,
          signal,
        )
      } catch (error) {
        socket.destroy()
        throw error
      }
    },
  }
}

/** Waits for the event that says the socket is usable; on error, timeout or abort the socket is destroyed. */
function settled<S extends Socket>(
  clock: Clock,
  socket: S,
  ready: string,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<S> {
  return new Promise((resolve, reject) => {
    const finish = (error?: Error) => {
      timer.cancel()
      signal?.removeEventListener('abort', onAbort)
      socket.off('error', finish).off('close', onClose).off(ready, onReady)
      if (error === undefined) {
        resolve(socket)
        return
      }
      socket.on('error', () => {}) // an error after this one has nobody left to tell
      socket.destroy()
      reject(error)
    }
    const onReady = () => finish()
    const onClose = () => finish(coded('connection closed', 'ECONNRESET'))
    const onAbort = () => finish(coded('given up', 'ABORT_ERR'))
    const timer = clock.after(timeoutMs, () => finish(coded('connection timed out', 'ETIMEDOUT')))
    socket.once('error', finish).once('close', onClose).once(ready, onReady)
    signal?.addEventListener('abort', onAbort, { once: true })
    if (signal?.aborted === true) onAbort()
  })
}

function coded(message: string, code: string): Error {
  return Object.assign(new Error(message), { code })
}

/** Made once for each oldest version: reading a hundred authorities takes some milliseconds. */
function trustIn(authorities: string) {
  const contexts = new Map<string, SecureContext>()
  return ({ minVersion = DEFAULT_MIN_VERSION }: Pick<SecureOptions, 'minVersion'>) => {
    if (authorities === '') return {}
    const secureContext =
      contexts.get(minVersion) ?? createSecureContext({ ca: [...rootCertificates, authorities], minVersion })
    contexts.set(minVersion, secureContext)
    return { secureContext }
  }
}
