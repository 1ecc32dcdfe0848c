/** Mail that the server writes to people itself. */
import { simpleParser } from 'mailparser'
import t from 'tap'
import { composeNotice, type Notice } from '../../src/mail/compose/notice.js'

const notice: Notice = {
  from: { name: 'Postroad', address: 'postmaster@mail.example.com' },
  to: 'zoe@example.net',
  subject: 'Einladung für Zoë',
  text: 'Hallo Zoë,\n\nfolge dem Link.\n',
  html: '<p>Hallo Zoë, <a href="https://mail.example.com/x?a=1&amp;b=2">folge dem Link</a>.</p>',
  messageId: '0198c0de-0000-7000-8000-000000000001@mail.example.com',
  date: Date.UTC(2026, 0, 15, 12),
}

t.test('a notice reads as it was written, in text and HTML', async t => {
  const mail = await simpleParser(await composeNotice(notice))
  t.equal(mail.from?.text, '"Postroad" <postmaster@mail.example.com>')
  t.match(mail.to, { text: 'zoe@example.net' })
  t.equal(mail.subject, notice.subject)
  t.equal(mail.text, notice.text)
  t.equal(mail.html, notice.html)
  t.equal(mail.messageId, `<${notice.messageId}>`)
  t.same(mail.date, new Date(notice.date))
  t.equal(mail.headers.get('auto-submitted'), 'auto-generated')
})

t.test('a notice is 7-bit with CRLF line endings and no long lines', async t => {
  const raw = (await composeNotice({ ...notice, text: 'ä'.repeat(5_000) })).toString('latin1')
  t.notMatch(raw, /[\x80-\xff]/)
  t.notMatch(raw, /[^\r]\n|\r[^\n]/)
  t.ok(raw.split('\r\n').every(line => line.length <= 78))
})

t.test('a notice composed again is the same', async t => {
  t.ok((await composeNotice(notice)).equals(await composeNotice(notice)))
})

t.test('a subject or name cannot add a header field', async t => {
  const from = { name: 'a\r\nBcc: eve@example.org', address: notice.from.address }
  const mail = await simpleParser(
    await composeNotice({ ...notice, from, subject: 'a\r\nBcc: eve@example.org' }),
  )
  t.equal(mail.bcc, undefined)
  t.match(mail.to, { text: 'zoe@example.net' })
})

t.test('text that looks like a file or a URL is not read', async t => {
  const mail = await simpleParser(
    await composeNotice({ ...notice, text: '/etc/passwd', html: 'https://x.example/' }),
  )
  t.match(mail.text, '/etc/passwd')
  t.match(mail.html, 'https://x.example/')
})
