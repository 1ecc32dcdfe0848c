/** One-time codes against the vectors of RFC 6238, and their single use. */
import t from 'tap'
import {
  base32,
  fromBase32,
  hashRecoveryCode,
  matchTotp,
  newRecoveryCodes,
  newTotpSecret,
  totpCode,
  totpUrl,
} from '../../../src/accounts/operators/totp.js'
import { SeededRandom } from '../../../src/world/fake-random.js'

const SECRET = Buffer.from('12345678901234567890')

t.test('codes are those of RFC 6238, appendix B', async t => {
  const codes = [59, 1_111_111_109, 1_111_111_111, 1_234_567_890, 2_000_000_000, 20_000_000_000].map(
    seconds => totpCode(SECRET, Math.floor(seconds / 30)),
  )
  t.same(codes, ['287082', '081804', '050471', '005924', '279037', '353130'])
})

t.test('a code is accepted one step early or late, and no further', async t => {
  const at = 1_111_111_111_000
  const step = Math.floor(at / 30_000)
  const accepted = [-2, -1, 0, 1, 2].map(offset => matchTotp(SECRET, totpCode(SECRET, step + offset), at, 0))
  t.same(accepted, [undefined, step - 1, step, step + 1, undefined])
})

t.test('a code used once is refused, and so are earlier ones', async t => {
  const at = 1_111_111_111_000
  const step = Math.floor(at / 30_000)
  t.equal(matchTotp(SECRET, totpCode(SECRET, step), at, step), undefined)
  t.equal(matchTotp(SECRET, totpCode(SECRET, step - 1), at, step), undefined)
  t.equal(matchTotp(SECRET, totpCode(SECRET, step + 1), at, step), step + 1)
})

t.test('text that is no code is refused and throws nothing', async t => {
  for (const text of ['', '28708', '2870822', 'äöüßéè', '٢٨٧٠٨٢', '287082\n'])
    t.equal(matchTotp(SECRET, text, 59_000, 0), undefined, JSON.stringify(text))
})

t.test('a secret is read back from its base32', async t => {
  const secret = newTotpSecret(new SeededRandom())
  t.equal(base32(secret).length, 32)
  t.same(fromBase32(base32(secret)), secret)
  t.equal(base32(Buffer.from('foobar')), 'MZXW6YTBOI', 'RFC 4648 §10')
  for (const text of ['', 'MZXW6', base32(secret).toLowerCase(), `${base32(secret)}A`])
    t.equal(fromBase32(text), undefined)
})

t.test('the URL for authenticator apps names issuer and account', async t => {
  const url = new URL(totpUrl(SECRET, 'mail.example.com', 'ann+x@example.com'))
  t.equal(decodeURIComponent(url.pathname), '/mail.example.com:ann+x@example.com')
  t.same(Object.fromEntries(url.searchParams), {
    secret: base32(SECRET),
    issuer: 'mail.example.com',
    digits: '6',
    period: '30',
  })
})

t.test('ten recovery codes, all different, are recognised however they are typed', async t => {
  const codes = newRecoveryCodes(new SeededRandom())
  t.equal(new Set(codes).size, 10)
  for (const code of codes) {
    t.match(code, /^(?:[A-Z2-7]{4}-){3}[A-Z2-7]{4}$/)
    t.equal(hashRecoveryCode(` ${code.toLowerCase().replaceAll('-', ' ')}`), hashRecoveryCode(code))
  }
})
