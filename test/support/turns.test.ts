/** What "nothing happened" rests on in other tests: that rest is not taken for granted. */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import t from 'tap'
import { nextTurn, pauseFor } from '../../src/world/time/clock.js'
import { comeToRest } from './turns.js'

t.test('work in turns, pauses and file access has ended when everything is idle', async t => {
  let isOver = false
  const work = async () => {
    for (let turn = 0; turn < 200; turn += 1) await nextTurn()
    for (let pause = 0; pause < 5; pause += 1) await pauseFor(8)
    await readFile('package.json')
    await pauseFor(20)
    isOver = true
  }
  void work()
  await comeToRest()
  t.ok(isOver)
})

t.test('where a socket is open nothing can be said', async t => {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  await t.rejects(comeToRest(), /TCPServerWrap/)
  await new Promise(resolve => server.close(resolve))
})
