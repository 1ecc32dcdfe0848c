/** Guessing what a mistyped name was meant to be. */
import t from 'tap'
import { nearestName } from '../../src/config/key-names.js'

t.test('a wrong, missing or extra letter and a swap of neighbours are typing errors', async t => {
  for (const typed of ['first', 'fxrst', 'fist', 'firstt', 'frist', 'FIRST'])
    t.equal(nearestName(typed, ['max', 'first', 'factor']), 'first', typed)
})

t.test('the nearest name is found, the first of equally near ones', async t => {
  t.equal(nearestName('lsiten', ['hostname', 'listen', 'listen_tls']), 'listen')
  t.equal(nearestName('mas', ['max', 'mail']), 'max')
})

t.test('what is too far away or absurdly long is no guess', async t => {
  t.equal(nearestName('quarantine', ['listen', 'hostname']), undefined)
  t.equal(nearestName('xy', ['mx']), undefined)
  t.equal(nearestName('a'.repeat(100_000), ['a'.repeat(100)]), undefined)
})
