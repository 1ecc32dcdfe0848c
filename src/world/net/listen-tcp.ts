/**
 * TCP listener of the SMTP servers, and server-side TLS on its connections.
 *
 * Keeps no list of connections; the caller closes them. `listen` rejects with an error that names the address and the reason; a failed
 * handshake closes the connection.
 */
import { createServer, type Socket } from 'node:net'
import { TLSSocket, type SecureContext } from 'node:tls'
import { listenOn, type ListenAddress } from './listen.js'
import type { ProxyProtocol } from './proxy-protocol.js'

export type { Socket } from 'node:net'
export type { SecureContext } from 'node:tls'

export interface TcpListener {
  /** The actual address, with the chosen port for port 0. */
  readonly address: ListenAddress
  /** Stops accepting; existing connections continue. Resolves once the address is free. */
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
  /**
   * @param proxyProtocol reads the headers of load balancers; sockets then show the client's address
   * @throws Error naming the address, e.g. `cannot listen on 127.0.0.1:25: address already in use`
   */
  listen(
    address: ListenAddress,
    onConnection: (socket: Socket) => void,
    proxyProtocol?: ProxyProtocol,
  ): Promise<TcpListener>
  /**
   * Starts a TLS handshake on a connection nobody else reads from.
   *
   * @param onSecure called once the handshake is complete; never if it fails
   * @returns the TLS socket, which closes if the handshake fails
   */
  secure(socket: Socket, context: SecureContext, onSecure: (secured: SecuredSocket) => void): Socket
}

/** Linux limits it to net.core.somaxconn (4096). */
const BACKLOG = 4_096

export const systemTcpServer: TcpServer = {
  async listen(address, onConnection, proxyProtocol) {
    // Half-open: a client that closes its side after QUIT still gets its replies.
    const server = createServer({ noDelay: true, allowHalfOpen: true }, onConnection)
    proxyProtocol?.guard(server)
    const bound = await listenOn(server, address, BACKLOG)
    // E.g. out of file descriptors; the server keeps listening.
    server.on('error', () => {})
    let whenClosed: Promise<void> | undefined
    return {
      address: bound,
      close() {
        whenClosed ??= new Promise(resolve => server.close(() => resolve()))
        proxyProtocol?.endPending()
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
