/** Header text in raw 8-bit octets that no label explains, as old programs and scripts submit it. */
import { simpleParser } from 'mailparser'
import t from 'tap'
import { idsOf, openSubmissionTest } from '../../support/smtp/submission.js'

/** In the given charset; the message itself says that its text is UTF-8. */
function mail(charset: 'utf8' | 'latin1'): Buffer {
  const lines = [
    'From: Jörg Müller <app@sender.test>',
    'Reply-To: Büro <desk@sender.test>',
    'To: "Zoë" <bob@one.test>, Åsa <asa@one.test>',
    'Subject: Grüße',
    'X-Abteilung: Einkäufe',
    'MIME-Version: 1.0',
    'Content-Type: multipart/mixed; boundary=b',
    '',
    '--b',
    'Content-Type: text/plain; charset=utf-8',
    '',
    'Hello.',
    '--b',
    'Content-Type: application/pdf; name="Übersicht.pdf"',
    'Content-Disposition: attachment; filename="Übersicht.pdf"',
    'Content-Description: Übersicht für März',
    '',
    'x',
    '--b--',
    '',
  ]
  return Buffer.from(lines.join('\r\n'), charset)
}

const office = openSubmissionTest(t).then(async test => {
  await test.addDomain()
  return test
})

// proves: decisions: Added after a day's work > Undeclared 8-bit header text by
t.test(
  'raw 8-bit text in any header field arrives as it was meant, whether UTF-8 or Windows-1252',
  async t => {
    const { postroad, loggedIn, caught } = await office
    const client = await loggedIn()
    for (const charset of ['utf8', 'latin1'] as const) {
      const [id = ''] = idsOf(await client.submit(mail(charset)))
      const { raw } = await caught(id)
      t.notMatch(raw.toString('latin1'), /[^\x00-\x7f]/, 'all of it is ASCII now') // eslint-disable-line no-control-regex -- ASCII is meant
      const read = await simpleParser(raw)
      t.equal(read.subject, 'Grüße')
      t.equal(read.from?.text, '"Jörg Müller" <app@sender.test>')
      t.equal(read.replyTo?.text, '"Büro" <desk@sender.test>')
      t.match(read.to, { text: '"Zoë" <bob@one.test>, "Åsa" <asa@one.test>' })
      t.equal(read.headers.get('x-abteilung'), '=?UTF-8?Q?Eink=C3=A4ufe?=')
      t.match(read.attachments, [{ filename: 'Übersicht.pdf' }])
      const log = (await postroad.get('/api/v1/email', { key: postroad.key })).body.data as {
        message_id: string
        subject: string
      }[]
      t.match(
        log.find(one => one.message_id === id),
        { subject: 'Grüße' },
        'the message log shows it',
      )
    }
  },
)

t.test('Windows-1252 quotes, dashes and the euro sign in a subject survive', async t => {
  const { loggedIn, caught } = await office
  const client = await loggedIn()
  for (const type of ['text/plain; charset=utf-8', 'text/plain; charset=us-ascii', 'text/plain']) {
    const text = `From: app@sender.test\r\nSubject: \x93Sale\x94 \x96 5 \x80\r\nContent-Type: ${type}\r\n\r\nHello.\r\n`
    const [id = ''] = idsOf(await client.submit(Buffer.from(text, 'latin1')))
    t.equal((await simpleParser((await caught(id)).raw)).subject, '“Sale” – 5 €', type)
  }
})
