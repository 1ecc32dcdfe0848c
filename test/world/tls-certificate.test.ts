/** The certificate that is shown, while its files are exchanged: what is taken over, and what never is. */
import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { watchCertificate } from '../../src/certificates/watch-certificate.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { makeCertificateKey } from '../../src/world/tls/certificate-request.js'
import { subjectAltNames } from '../../src/world/tls/der.js'
import { signCertificate } from '../../src/world/tls/self-signed-certificate.js'
import { openTlsCertificate } from '../../src/world/tls/tls-certificate.js'

const DAY = 86_400_000
const NAME = 'mail.example.com'
const NOW = Date.parse('2026-03-01T00:00:00Z')
const never = new AbortController().signal

async function makePair(name: string, from: number, until: number) {
  const { publicKey, privateKey } = await makeCertificateKey()
  const cert = signCertificate({
    subject: name,
    issuer: name,
    publicKey: publicKey.export({ type: 'spki', format: 'der' }),
    extensions: [subjectAltNames([name])],
    from,
    until,
    signer: privateKey,
  })
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string }
}

async function shown(t: Test, days = 90, name = NAME) {
  const folder = t.testdir()
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem'), hostname: NAME }
  const write = ({ cert, key }: { cert: string; key: string }) => {
    // As renewing tools do it: beside, and then in its place.
    writeFileSync(join(folder, 'new'), cert)
    renameSync(join(folder, 'new'), files.cert)
    writeFileSync(join(folder, 'new'), key)
    renameSync(join(folder, 'new'), files.key)
  }
  const first = await makePair(name, NOW - DAY, NOW + days * DAY)
  write(first)
  const [clock, log] = [new FakeClock(NOW), new FakeLog()]
  const certificate = await openTlsCertificate(files, clock)
  const job = watchCertificate({ clock, log, certificate })
  return { files, write, first, clock, log, certificate, look: () => job.run(never) }
}

t.test('renewed files are loaded automatically and logged once', async t => {
  const { write, certificate, look, log } = await shown(t)
  await look()
  t.same(log.lines, [])
  const next = await makePair(NAME, NOW - DAY, NOW + 180 * DAY)
  write(next)
  await look()
  await look()
  t.same(certificate.pair(), next)
  t.match(log.lines, [{ level: 'info', event: 'certificate reloaded' }])
  t.equal(log.lines.length, 1)
})

t.test('a redirected symlink is noticed, as certbot uses them', async t => {
  const { files, certificate, look, first } = await shown(t)
  const next = await makePair(NAME, NOW - DAY, NOW + 180 * DAY)
  for (const kind of ['cert', 'key'] as const) {
    writeFileSync(`${files[kind]}.2`, next[kind])
    rmSync(files[kind])
    symlinkSync(`${files[kind]}.2`, files[kind])
  }
  await look()
  t.not(certificate.pair().cert, first.cert)
})

t.test('a mismatched pair is logged once, and loaded once it matches', async t => {
  const { files, first, certificate, look, log } = await shown(t)
  const next = await makePair(NAME, NOW - DAY, NOW + 180 * DAY)
  writeFileSync(files.cert, next.cert)
  await look()
  await look()
  t.same(certificate.pair(), first)
  t.match(log.lines, [
    { level: 'error', event: 'certificate reload failed', fields: { error: /cannot be used/ } },
  ])
  t.equal(log.lines.length, 1)
  t.notMatch(JSON.stringify(log.lines), /BEGIN/)
  writeFileSync(files.key, next.key)
  await look()
  t.same(certificate.pair(), next)
})

t.test('a mismatched, expired or not yet valid certificate never replaces a valid one', async t => {
  const { write, first, certificate, look, log, files } = await shown(t)
  for (const [name, from, until, reason] of [
    ['other.example.com', NOW - DAY, NOW + 90 * DAY, /is not for mail\.example\.com/],
    [NAME, NOW - 90 * DAY, NOW - DAY, /until/],
    [NAME, NOW + DAY, NOW + 90 * DAY, /valid from/],
  ] as const) {
    write(await makePair(name, from, until))
    await look()
    t.same(certificate.pair(), first)
    t.match(log.lines.at(-1)?.fields['error'], reason)
    await t.rejects(certificate.reload(), { message: reason })
  }
  rmSync(files.cert)
  await look()
  t.same(certificate.pair(), first, 'nor do files that are gone')
})

t.test('an invalid certificate is replaced by another invalid or by a valid one', async t => {
  const { write, certificate, look } = await shown(t, 90, 'old.example.com')
  const other = await makePair('smtp.example.com', NOW - DAY, NOW + 100 * DAY)
  write(other)
  await look()
  t.same(certificate.pair(), other)
  const right = await makePair(NAME, NOW - DAY, NOW + 100 * DAY)
  write(right)
  await look()
  t.same(certificate.pair(), right)
})

t.test('expiry is logged daily from two weeks before, until renewed', async t => {
  const { write, clock, look, log } = await shown(t, 40)
  await look()
  t.same(log.lines, [])
  await clock.advance(27 * DAY)
  for (let hours = 0; hours < 48; hours++) {
    await look()
    await clock.advance(DAY / 24)
  }
  t.match(log.lines, [
    {
      level: 'warn',
      event: 'certificate check failed',
      fields: { fault: 'the certificate expires in 13 days' },
    },
    {
      level: 'warn',
      event: 'certificate check failed',
      fields: { fault: 'the certificate expires in 12 days' },
    },
  ])
  await clock.advance(20 * DAY)
  await look()
  t.match(log.lines.at(-1), {
    event: 'certificate check failed',
    fields: { fault: 'the certificate has expired' },
  })
  const told = log.lines.length
  write(await makePair(NAME, NOW, clock.now() + 90 * DAY))
  await look()
  t.match(log.lines.slice(told), [{ event: 'certificate reloaded' }])
  t.equal(log.lines.length, told + 1)
})
