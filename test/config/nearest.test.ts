/** Guessing what a mistyped name was meant to be. */
import t from 'tap'
import { nearestName } from '../../src/config/key-names.js'

t.test('a wrong, missing or extra letter and swapped neighbours count as typos', async t => {
  for (const typed of ['first', 'fxrst', 'fist', 'firstt', 'frist', 'FIRST'])
    t.equal(nearestName(typed, ['max', 'first', 'factor']), 'first', typed)
})

t.test('the nearest name is suggested, the first of equally near ones', async t => {
  t.equal(nearestName('lsiten', ['hostname', 'listen', 'listen_tls']), 'listen')
  t.equal(nearestName('mas', ['max', 'mail']), 'max')
})

t.test('names that are too different or too long are not suggested', async t => {
  t.equal(nearestName('quarantine', ['listen', 'hostname']), undefined)
  t.equal(nearestName('xy', ['mx']), undefined)
  t.equal(nearestName('a'.repeat(100_000), ['a'.repeat(100)]), undefined)
})
