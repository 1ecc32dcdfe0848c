/** Dot-stuffing and 8-bit transport. */
import t from 'tap'
import type { SmtpSession } from '../../../src/mta/smtp/smtp-session.js'
import { encodeData, findBareLineEnd, transact } from '../../../src/mta/smtp/smtp-transaction.js'
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

t.test('8-bit mail is declared if the server supports it, with the null sender as <>', async t => {
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
    failure: { kind: 'needs_8bitmime' },
  })
})

const encode = (text: string) => encodeData(Buffer.from(text, 'latin1')).toString('latin1')

t.test('only dots at line starts are doubled', async t => {
  t.equal(encode('.a\r\nb.c\r\n..d\r\n.\r\n'), '..a\r\nb.c\r\n...d\r\n..\r\n.\r\n')
})

t.test('dots on consecutive lines are all doubled', async t => {
  t.equal(encode('.\r\n.\r\n.\r\n'), '..\r\n..\r\n..\r\n.\r\n')
})

t.test('a message ending in CRLF gets no extra line', async t => {
  t.equal(encode('a\r\n'), 'a\r\n.\r\n')
})

t.test('an unterminated last line is terminated', async t => {
  t.equal(encode('a'), 'a\r\n.\r\n')
})

t.test('an empty message is only the final dot', async t => {
  t.equal(encode(''), '.\r\n')
})

t.test('a bare CR or LF is found anywhere', async t => {
  const find = (text: string) => findBareLineEnd(Buffer.from(text, 'latin1'))
  t.equal(find('a\r\nb\r\n\r\nc'), undefined)
  t.equal(find(''), undefined)
  t.equal(find('\na'), 0)
  t.equal(find('a\nb\r\n'), 1)
  t.equal(find('a\r\nb\rc'), 4)
  t.equal(find('a\r'), 1)
  t.equal(find('a\r\r\n'), 1)
  t.equal(find('a\r\n\nb'), 3)
  t.equal(find('x\r\n\n.\r\n'), 3)
})
