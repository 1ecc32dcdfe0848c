/** What a person reads in a mail, also in one written to confuse. */
import t from 'tap'
import { readMailContent } from '../../../src/mail/mime/mail-content.js'

const mail = (lines: readonly string[]) => Buffer.from(lines.join('\r\n'))

t.test('text, HTML, images inside it and attachments are told apart', async t => {
  const content = readMailContent(
    mail([
      'From: =?utf-8?q?J=C3=B6rg?= <j@one.test>',
      'Subject: A long',
      ' subject',
      'Content-Type: multipart/mixed; boundary=a',
      '',
      '--a',
      'Content-Type: multipart/alternative; boundary=b',
      '',
      '--b',
      'Content-Type: text/plain; charset=utf-8',
      'Content-Transfer-Encoding: quoted-printable',
      '',
      'Gr=C3=BC=C3=9Fe',
      '--b',
      'Content-Type: text/html; charset=iso-8859-1',
      'Content-Transfer-Encoding: base64',
      '',
      Buffer.from('<img src="cid:logo@x"><img src="cid:none">Gr\xfc\xdfe', 'latin1').toString('base64'),
      '--b--',
      '--a',
      'Content-Type: image/png; name="logo.png"',
      'Content-Transfer-Encoding: base64',
      'Content-ID: <logo@x>',
      '',
      'iVBORw0KGgo=',
      '--a',
      'Content-Type: text/plain',
      "Content-Disposition: attachment; filename*=UTF-8''na%C3%AFve%0d%0a.txt",
      '',
      'not the text',
      '--a--',
      '',
    ]),
  )
  t.same(content.headers.slice(0, 2), [
    { name: 'From', value: 'Jörg <j@one.test>' },
    { name: 'Subject', value: 'A long subject' },
  ])
  t.equal(content.text, 'Grüße')
  t.equal(content.html, '<img src="data:image/png;base64,iVBORw0KGgo="><img src="cid:none">Grüße')
  t.match(content.attachments, [
    { fileName: 'logo.png', mediaType: 'image/png', isInline: true },
    { fileName: 'naïve.txt', mediaType: 'text/plain', isInline: false, size: 12 },
  ])
})

t.test('mail without a header or with a broken one is its text', async t => {
  t.match(readMailContent(Buffer.from('just text')), { text: 'just text', html: undefined, attachments: [] })
  t.match(readMailContent(Buffer.alloc(0)), { headers: [], html: undefined })
  t.match(readMailContent(mail(['Content-Type: multipart/mixed; boundary=x', '', 'no parts'])), {
    text: 'no parts',
  })
})

t.test('an image named many times does not grow the page without end', async t => {
  const image = 'A'.repeat(1_000_000)
  const content = readMailContent(
    mail([
      'Content-Type: multipart/related; boundary=a',
      '',
      '--a',
      'Content-Type: text/html',
      '',
      '<img src="cid:i">'.repeat(10_000),
      '--a',
      'Content-Type: image/png',
      'Content-ID: <i>',
      'Content-Transfer-Encoding: base64',
      '',
      image,
      '--a--',
    ]),
  )
  t.ok((content.html ?? '').length < 40_000_000)
})
