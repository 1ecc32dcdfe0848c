/** Guessing what a mistyped name was meant to be. */
import t from 'tap'
import { editDistance, nearestName } from '../../src/config/nearest.js'

t.test('a swap of neighbours counts as one error, like a missing, extra or wrong letter', async t => {
  t.equal(editDistance('first', 'first'), 0)
  t.equal(editDistance('frist', 'first'), 1)
  t.equal(editDistance('fist', 'first'), 1)
  t.equal(editDistance('firstt', 'first'), 1)
  t.equal(editDistance('fxrst', 'first'), 1)
  t.equal(editDistance('', 'max'), 3)
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
