/** What systemd hears of the process, by way of the program that connects its socket. */
import { spawnSync } from 'node:child_process'
import t from 'tap'
import { openServiceManager } from '../../src/world/service-manager.js'
import { until } from '../support/until.js'

t.test('it is ready, and lives, as often as the watchdog wants', async t => {
  const said: string[] = []
  const manager = openServiceManager({ descriptor: '7', watchdog: '300000' }, (descriptor, text) =>
    said.push(`${descriptor}: ${text}`),
  )
  t.same(said, [])
  manager.starting('upgrading\nREADY=1')
  t.same(said.splice(0), ['7: STATUS=upgrading READY=1\nEXTEND_TIMEOUT_USEC=3600000000'])
  manager.ready('serves\nREADY=0')
  t.same(said, ['7: READY=1\nSTATUS=serves READY=0'], 'a status says nothing else')
  await until('the watchdog is told twice', () => said.length >= 3)
  t.equal(said[1], '7: WATCHDOG=1')
  manager.stopping()
  t.ok(said.includes('7: STOPPING=1'))
})

t.test('without systemd nothing is sent', async t => {
  for (const descriptor of [undefined, '', 'x']) {
    const said: string[] = []
    const manager = openServiceManager({ descriptor, watchdog: '1' }, (_, text) => said.push(text))
    manager.starting('upgrading')
    manager.ready('serves')
    manager.stopping()
    t.same(said, [])
  }
})

t.test('the program that connects the socket becomes the service', async t => {
  const env = { PATH: process.env['PATH'] }
  const alone = spawnSync('systemd/start-notified', ['/bin/echo', 'a b'], { encoding: 'utf8', env })
  t.match(alone, { status: 0, stdout: 'a b\n' })
  const nobody = { ...env, NOTIFY_SOCKET: `${t.testdir()}/none` }
  const refused = spawnSync('systemd/start-notified', ['/bin/echo'], { encoding: 'utf8', env: nobody })
  t.match(refused, { stderr: /start-notified: connect/ })
  t.not(refused.status, 0)
})
