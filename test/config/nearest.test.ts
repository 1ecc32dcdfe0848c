/** Guessing what a mistyped name was meant to be. */
import t from 'tap'
import { nearestName, nearestVariable } from '../../src/config/key-names.js'

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

t.test('a variable is suggested by its words', t => {
  const known = [
    ...['POSTROAD_HTTP_LISTEN', 'POSTROAD_SUBMISSION_LISTEN', 'POSTROAD_SUBMISSION_LISTEN_TLS'],
    ...['POSTROAD_MTA_RETRY_FIRST', 'POSTROAD_MTA_RETRY_MAX', 'POSTROAD_HOSTNAME', 'POSTROAD_DATABASE_URL'],
  ]
  for (const [typed, meant] of [
    ['POSTROAD_HTTP_LISTN', 'POSTROAD_HTTP_LISTEN'],
    ['POSTROAD_RETRY_FIRST', 'POSTROAD_MTA_RETRY_FIRST'],
    ['POSTROAD_MTA_RETRY_FRIST', 'POSTROAD_MTA_RETRY_FIRST'],
    ['POSTROAD_LISTEN_SUBMISSION', 'POSTROAD_SUBMISSION_LISTEN'],
    ['POSTROAD_HOSTNAMES', 'POSTROAD_HOSTNAME'],
    ['POSTROAD_DATABASE', 'POSTROAD_DATABASE_URL'],
    // The nearest by letters would be HTTP_LISTEN, which is something else.
    ['POSTROAD_SMTP_LISTEN', undefined],
    ['POSTROAD_SMTP_USER', undefined],
    ['POSTROAD_', undefined],
  ] as const)
    t.equal(nearestVariable(typed, known), meant, typed)
  t.end()
})
