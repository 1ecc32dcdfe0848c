/** Passwords of operators: PHC strings that only the password matches. */
import t from 'tap'
import { Passwords } from '../../../src/accounts/operators/password.js'
import { SeededRandom } from '../../../src/world/fake-random.js'

t.test('a password matches its own hash only', async t => {
  const passwords = new Passwords(new SeededRandom())
  const stored = await passwords.hash('correct horse battery')
  t.match(stored, /^\$scrypt\$ln=16,r=8,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
  t.equal(await passwords.matches(stored, 'correct horse battery'), true)
  t.equal(await passwords.matches(stored, 'Correct horse battery'), false)
  t.equal(await passwords.matches(stored, ''), false)
})

t.test('the same password is stored differently each time', async t => {
  const passwords = new Passwords(new SeededRandom())
  t.not(await passwords.hash('correct horse battery'), await passwords.hash('correct horse battery'))
})

t.test('a password matches in whichever Unicode form it is typed', async t => {
  const passwords = new Passwords(new SeededRandom())
  const stored = await passwords.hash('Schöne Grüße'.normalize('NFC'))
  t.equal(await passwords.matches(stored, 'Schöne Grüße'.normalize('NFD')), true)
})

t.test('an account without a password matches none', async t => {
  const passwords = new Passwords(new SeededRandom())
  t.equal(await passwords.matches(undefined, ''), false)
  t.equal(await passwords.matches(undefined, 'correct horse battery'), false)
})

t.test('a hash made with a lower cost still matches and is reported as outdated', async t => {
  const passwords = new Passwords(new SeededRandom())
  // RFC 7914 §12: "pleaseletmein", salt "SodiumChloride", N 16384, r 8, p 1; the first 32 octets.
  const salt = Buffer.from('SodiumChloride').toString('base64').replace(/=+$/, '')
  const hash = Buffer.from('7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2', 'hex')
  const stored = `$scrypt$ln=14,r=8,p=1$${salt}$${hash.toString('base64').replace(/=+$/, '')}`
  t.equal(await passwords.matches(stored, 'pleaseletmein'), true)
  t.equal(passwords.isOutdated(stored), true)
  t.equal(passwords.isOutdated(await passwords.hash('correct horse battery')), false)
})

t.test('of many sign-ins at once some are refused at once, so that memory stays bounded', async t => {
  const passwords = new Passwords(new SeededRandom(), { ln: 4, r: 8, p: 1 })
  const stored = await passwords.hash('correct horse battery')
  const results = await Promise.allSettled(
    Array.from({ length: 80 }, () => passwords.matches(stored, 'correct horse battery')),
  )
  const refused = results.filter(({ status }) => status === 'rejected')
  t.equal(refused.length, 29)
  t.match(refused[0], { reason: { code: 'unavailable', retryAfterMs: 5_000 } })
  t.equal(results.filter(one => one.status === 'fulfilled' && one.value).length, 51)
})

t.test('a refused first sign-in does not keep later ones out', async t => {
  const passwords = new Passwords(new SeededRandom(), { ln: 4, r: 8, p: 1 })
  const many = Array.from({ length: 80 }, () => passwords.hash('correct horse battery'))
  await t.rejects(passwords.matches(undefined, 'correct horse battery'), { code: 'unavailable' })
  await Promise.allSettled(many)
  t.equal(await passwords.matches(undefined, 'correct horse battery'), false)
})
