/**
 * Outgoing TCP connections for the SMTP client; the only place that opens a client socket or starts TLS on one.
 *
 * Takes addresses, never names, and enforces the egress policy unless the operator named the host. Leaves judging certificates to the
 * caller. Rejects with the socket's error or code ETIMEDOUT, ABORT_ERR or EADDRNOTPUBLIC; the socket is destroyed then.
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
  /** IP address, never a name. */
  readonly address: string
  readonly port: number
  /** Source address to bind. */
  readonly localAddress?: string
  readonly timeoutMs: number
  /** Aborts while connecting; no effect afterwards. */
  readonly signal?: AbortSignal
}

export interface SecureOptions extends ConnectionOptions {
  readonly timeoutMs: number
  /** Aborts the handshake; no effect afterwards. */
  readonly signal?: AbortSignal
}

export interface Dialler {
  /** Resolves with a connected socket. */
  connect(target: DialTarget): Promise<Socket>
  /** Starts TLS on a connected socket, for STARTTLS and implicit TLS. */
  secure(socket: Socket, options: SecureOptions): Promise<TLSSocket>
}

/** @param authorities PEM of additional trusted certificate authorities; may be empty */
export function openDialler(clock: Clock, egress: EgressPolicy = PUBLIC_ONLY, authorities = ''): Dialler {
  const trust = trustStore(authorities)
  return {
    async connect({ address, port, localAddress, timeoutMs, signal, ...named }) {
      assertAllowed(egress, named, address)
      const socket = connectTcp({
        host: address,
        port,
        ...(localAddress === undefined ? {} : { localAddress }),
      })
      // SMTP is many small writes, each answered; Nagle's algorithm would delay each.
      socket.setNoDelay(true)
      return whenUsable(clock, socket, 'connect', timeoutMs, signal)
    },
    async secure(socket, { timeoutMs, signal, ...options }) {
      try {
        return await whenUsable(
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

/** Waits for the event that makes the socket usable; destroys the socket on error, timeout or abort. */
function whenUsable<S extends Socket>(
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
      socket.on('error', () => {}) // later errors have no listener
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

/** One context per minimum TLS version, because parsing the CA list takes milliseconds. */
function trustStore(authorities: string) {
  const contexts = new Map<string, SecureContext>()
  return ({ minVersion = DEFAULT_MIN_VERSION }: Pick<SecureOptions, 'minVersion'>) => {
    if (authorities === '') return {}
    const secureContext =
      contexts.get(minVersion) ?? createSecureContext({ ca: [...rootCertificates, authorities], minVersion })
    contexts.set(minVersion, secureContext)
    return { secureContext }
  }
}
