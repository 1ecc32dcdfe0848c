/** Certification authorities of the operator's own (`mta.tls_ca`): believed beside the usual ones, by nobody who does not name them. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:tls'
import t from 'tap'
import { openDialler } from '../../src/world/net/dial.js'
import { egressPolicyFor } from '../../src/world/net/egress-policy.js'
import { systemClock } from '../../src/world/time/clock.js'
import { certificate } from '../support/smtp/scripted-server.js'

t.test('only certificates of a configured authority are trusted', async t => {
  const server = createServer(certificate, socket => socket.resume().on('error', () => {}))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const egress = egressPolicyFor({ allowPrivate: true })
  const isBelieved = async (authorities?: string) => {
    const dialler = openDialler(systemClock, egress, authorities)
    const timeoutMs = 10_000
    const socket = await dialler.connect({
      address: '127.0.0.1',
      port,
      timeoutMs,
      namedBy: 'operator',
    } as never)
    const secured = await dialler.secure(socket, {
      servername: 'mx.example',
      host: 'mx.example',
      minVersion: 'TLSv1.2',
      rejectUnauthorized: false,
      timeoutMs,
    })
    const { authorized } = secured
    secured.destroy()
    return authorized
  }
  t.equal(await isBelieved(certificate.cert.toString()), true)
  t.equal(await isBelieved(), false)
})
