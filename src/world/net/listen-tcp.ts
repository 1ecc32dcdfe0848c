/**
 * Incoming TCP connections: listens on an address, and starts TLS on a connection as its server.
 *
 * Called by the SMTP listeners. Knows nothing of what is spoken on a connection and keeps no list of them: whoever takes
 * one ends it. Fails: `listen` rejects with the address and the reason in words; a handshake that fails closes the
 * connection and calls nothing.
 */
import { createServer, type Socket } from 'node:net'
import { TLSSocket, type SecureContext } from 'node:tls'
import { listenOn, type ListenAddress } from './listen.js'

export type { Socket } from 'node:net'
export type { SecureContext } from 'node:tls'

export interface TcpListener {
  /** Where it really listens; tells the port when 0 was asked for. */
  readonly address: ListenAddress
  /** Takes no new connections from now on. Those taken go on; resolves when the address is free. */
  close(): Promise<void>
}

export interface SecuredSocket {
  readonly socket: Socket
  /** e.g. `TLSv1.3`. */
  readonly version: string
  /** OpenSSL's or IANA's name, e.g. `TLS_AES_256_GCM_SHA384`. */
  readonly cipher: string
}

export interface TcpServer {
  /** @throws Error naming the address, e.g. `cannot listen on 127.0.0.1:25: address already in use` */
  listen(address: ListenAddress, onConnection: (socket: Socket) => void): Promise<TcpListener>
  /**
   * Starts a handshake over a connection nobody reads from any more.
   *
   * @param onSecure called once, when TLS stands; never where the handshake fails
   * @returns the socket under TLS; it closes by itself where the handshake fails
   */
  secure(socket: Socket, context: SecureContext, onSecure: (secured: SecuredSocket) => void): Socket
}

/** Connections the system completes ahead of us; Linux cuts it at net.core.somaxconn (4096). */
const BACKLOG = 4_096

export const systemTcpServer: TcpServer = {
  async listen(address, onConnection) {
    // Half-open: who says QUIT and closes his direction still gets his answers.
    const server = createServer({ noDelay: true, allowHalfOpen: true }, onConnection)
    const bound = await listenOn(server, address, BACKLOG)
    // Running out of descriptors shows here; the server goes on when there are some again.
    server.on('error', () => {})
    let whenClosed: Promise<void> | undefined
    return {
      address: bound,
      close() {
        whenClosed ??= new Promise(resolve => server.close(() => resolve()))
        return whenClosed
      },
    }
  },

  secure(socket, context, onSecure) {
    const secured = new TLSSocket(socket, { isServer: true, secureContext: context })
    secured.once('secure', () =>
      onSecure({
        socket: secured,
        version: secured.getProtocol() ?? 'unknown',
        cipher: secured.getCipher().name,
      }),
    )
    return secured
  },
}
