/** Listening on every address: of IPv4 and IPv6 together, apart, and where there is no IPv6. */
import { EventEmitter, once } from 'node:events'
import { connect, createServer, type Server } from 'node:net'
import t, { type Test } from 'tap'
import { markIpv6Only, listenOn } from '../../src/world/net/listen.js'

async function answers(port: number, host: string): Promise<boolean> {
  const socket = connect(port, host)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

function openServer(t: Test): Server {
  const server = createServer(socket => socket.destroy())
  t.teardown(() => server.close())
  return server
}

t.test('[::] accepts IPv4 connections', async t => {
  const { port } = await listenOn(openServer(t), { host: '::', port: 0 }, 10)
  t.ok(await answers(port, '127.0.0.1'))
})

t.test('beside 0.0.0.0 on the same port, [::] is IPv6 only', async t => {
  t.same(
    markIpv6Only([
      { host: '::', port: 25 },
      { host: '0.0.0.0', port: 25 },
      { host: '::', port: 587 },
    ]),
    [
      { host: '::', port: 25, isIpv6Only: true },
      { host: '0.0.0.0', port: 25 },
      { host: '::', port: 587 },
    ],
  )
  const { port } = await listenOn(openServer(t), { host: '0.0.0.0', port: 0 }, 10)
  const own = await listenOn(openServer(t), { host: '::', port, isIpv6Only: true }, 10)
  t.equal(own.port, port)
})

t.test('where the machine has no IPv6, [::] is every address of IPv4', async t => {
  const asked: string[] = []
  const server = Object.assign(new EventEmitter(), {
    listen({ host }: { host: string }, done: () => void) {
      asked.push(host)
      if (host === '::') server.emit('error', Object.assign(new Error('no'), { code: 'EAFNOSUPPORT' }))
      else done()
    },
    address: () => ({ address: '0.0.0.0', family: 'IPv4', port: 25 }),
  })
  t.same(await listenOn(server as unknown as Server, { host: '::', port: 25 }, 10), {
    host: '0.0.0.0',
    port: 25,
  })
  t.same(asked, ['::', '0.0.0.0'])
  await t.rejects(listenOn(server as unknown as Server, { host: '::', port: 25, isIpv6Only: true }, 10), {
    message: /^cannot listen on :::25: /,
  })
})
