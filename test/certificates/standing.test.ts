import t from 'tap'
import { certificateStanding } from '../../src/certificates/standing.js'
import type { TlsCertificate } from '../../src/world/tls/tls-certificate.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'

const DAY = 86_400_000

function faultWith(daysLeft: number, lifetimeDays = 90): string | undefined {
  const clock = new FakeClock()
  const expiresAt = clock.now() + daysLeft * DAY
  const validFrom = expiresAt - lifetimeDays * DAY
  return certificateStanding({ isSelfSigned: false, expiresAt, validFrom } as TlsCertificate, clock).fault
}

t.test(
  'a certificate with more than two weeks left has no fault, one with less says how many days',
  async t => {
    t.equal(faultWith(14.1), undefined)
    t.equal(faultWith(9.5), 'the certificate expires in 9 days')
  },
)

t.test('a certificate that has ended says so', async t => {
  t.equal(faultWith(-1), 'the certificate has expired')
})

t.test('one of six days has no fault on its third, and one on its last', async t => {
  t.equal(faultWith(3, 6), undefined)
  t.match(faultWith(0.5, 6), /expires in 0 days/)
})
