/** What only mail that was not composed here needs: relayed messages keep their octets. */
import t from 'tap'
import type { SmtpSession } from '../../../src/mta/smtp/smtp-session.js'
import { transact } from '../../../src/mta/smtp/smtp-transaction.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { scriptedServer } from '../../support/smtp/scripted-server.js'
import { goOn, mappedDialler, openTestSession, timeouts, type Place } from '../../support/smtp/mta.js'

const envelope = { sender: '', recipient: 'ann@example.com' }
const eightBit = Buffer.from('Subject: Grüße\r\n\r\nschöne Grüße\r\n', 'utf8')
const options = { timeouts, clock: new FakeClock(), deadline: Infinity, reset: false, signal: goOn }

function openTo(place: Place): Promise<SmtpSession> {
  const clock = new FakeClock()
  return openTestSession(clock, mappedDialler(clock, { '*': place }))
}

t.test('8-bit mail is announced where the server takes it, with the null sender as <>', async t => {
  const mx = await scriptedServer(
    t,
    `S 220 mx.example ESMTP
     C EHLO ...
     S 250-mx.example
     S 250 8BITMIME
     C MAIL FROM:<> BODY=8BITMIME
     S 250 ok
     C RCPT TO:<ann@example.com>
     S 250 ok
     C DATA
     S 354 go on
     M
     S 250 ok`,
  )
  t.match(await transact(await openTo(mx), envelope, eightBit, options), {
    accepted: true,
    stage: 'final_dot',
  })
  t.ok(mx.messages[0]?.equals(eightBit))
})

t.test('8-bit mail is not offered to a server that cannot take it', async t => {
  const mx = await scriptedServer(t, `S 220 mx.example ESMTP \n C EHLO ... \n S 250 mx.example`)
  t.match(await transact(await openTo(mx), envelope, eightBit, options), {
    accepted: false,
    stage: 'mail',
    broken: { kind: 'needs_8bitmime' },
  })
})
