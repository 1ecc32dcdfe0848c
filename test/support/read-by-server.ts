/** Waiting until a server in this process has read what a client of the test sent, so that what the test does next comes after it. */
import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { until } from './turns.js'

/** The server's end of each connection, by the client's address and port. */
const served = new Map<string, Socket>()

subscribe('net.server.socket', message => {
  const { socket } = message as { readonly socket: Socket }
  served.set(nameOf(socket.remoteAddress, socket.remotePort), socket)
})

/** The server's end of a connection. @throws Error if no server of this process accepts it */
export async function serverEndOf(client: Socket): Promise<Socket> {
  const find = () => served.get(nameOf(client.localAddress, client.localPort))
  await until('the server accepts the connection', () => find() !== undefined)
  return find() ?? client
}

/** Resolves once the server has read everything that was written, or the connection is closed. */
export async function readByServer(client: Socket): Promise<void> {
  if (client.destroyed) return
  const end = await serverEndOf(client)
  await until(
    'the server reads what was sent',
    () => client.destroyed || end.destroyed || end.bytesRead >= client.bytesWritten,
  )
}

/** A server that listens on IPv6 sees addresses of IPv4 as mapped ones. */
function nameOf(address: string | undefined, port: number | undefined): string {
  return `${address?.replace('::ffff:', '')} ${port}`
}
