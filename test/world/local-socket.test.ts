/** The socket that only the operator of this machine can reach. */
import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openHttpClient } from '../../src/world/net/fetch.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { listenLocal } from '../../src/world/net/local-socket.js'

function folder(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'postroad-socket-'))
  t.teardown(() => rmSync(path, { recursive: true }))
  return path
}

const listen = (path: string) =>
  listenLocal(path, (_request, response) => response.end('hello'), new FakeClock())

const ask = (socketPath: string) =>
  openHttpClient(new FakeClock()).request({
    method: 'GET',
    url: 'http://localhost/',
    socketPath,
    timeoutMs: 1_000,
    maxBytes: 100,
  })

t.test('the socket answers, has mode 0600, and is removed when closed', async t => {
  const path = join(folder(t), 'control.sock')
  const listener = await listen(path)
  t.equal(statSync(path).mode & 0o7777, 0o600)
  t.equal(String((await ask(path)).body), 'hello')
  await listener.close(0)
  t.notOk(existsSync(path))
  await t.rejects(ask(path), { code: 'ENOENT' })
})

t.test('a stale socket is replaced; another file is not', async t => {
  const path = join(folder(t), 'control.sock')
  const left = await listen(path)
  const next = await listen(path)
  t.equal(String((await ask(path)).body), 'hello')
  await left.close(0)
  await next.close(0)
  writeFileSync(path, 'a file')
  await t.rejects(listen(path), /control\.sock is not a socket and blocks the control socket; remove it/)
})

t.test('a world-writable folder and a path that is too long are refused', async t => {
  const open = folder(t)
  chmodSync(open, 0o777)
  await t.rejects(listen(join(open, 'control.sock')), /is writable by everybody; run chmod o-w /)
  const long = join(folder(t), 'x'.repeat(100))
  await t.rejects(listen(long), /bytes, the limit is 107; choose a shorter data_dir/)
})
