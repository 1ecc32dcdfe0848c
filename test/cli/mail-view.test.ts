/** A mail as people read it, and its parts as files: nothing that a stranger wrote leaves its place. */
import { readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { safeName, saveParts, shownView, viewMail, viewToJson } from '../../src/cli/mail/mail-view.js'

function mail(...lines: readonly string[]): Buffer {
  return Buffer.from(lines.join('\r\n'))
}

const LETTER = mail(
  'From: =?utf-8?Q?J=C3=B6rg?= <joerg@example.com>',
  'To: ann@example.net',
  'Subject: =?utf-8?Q?red_=1B[31m?=',
  'Date: Mon, 5 Jan 2026 07:08:09 +0100',
  'Content-Type: multipart/mixed; boundary=b',
  '',
  '--b',
  'Content-Type: text/plain; charset=utf-8',
  '',
  'Hello \u009b31m',
  '--b',
  'Content-Type: text/html',
  '',
  '<p>Hello</p>',
  '--b',
  'Content-Type: application/pdf; name="../../etc/passwd"',
  'Content-Disposition: attachment; filename="../../etc/passwd"',
  'Content-Transfer-Encoding: base64',
  '',
  'UERG',
  '--b--',
  '',
)

t.test('header, text and attachments are shown, without control characters', async t => {
  const shown = shownView(await viewMail(LETTER))
  t.match(shown, /^From: Jörg <joerg@example\.com>$|^From: "Jörg" <joerg@example\.com>$/m)
  t.match(shown, /^Subject: red \?\[31m$/m)
  t.match(shown, /^Hello \?31m$/m)
  t.match(shown, /^1 +\S*passwd +application\/pdf +3$/m)
  t.notMatch(shown, /\p{Cc}(?<!\n)/u)
  t.match(viewToJson(await viewMail(LETTER)), {
    html: /<p>Hello<\/p>/,
    attachments: [{ content_type: 'application/pdf', size: 3 }],
  })
})

t.test('an HTML-only mail is shown as text', async t => {
  t.match(
    shownView(await viewMail(mail('Content-Type: text/html', '', '<p>Hello <b>Ann</b></p>'))),
    /Hello Ann/,
  )
})

t.test('parts are saved inside the folder and nothing is overwritten', async t => {
  const folder = join(t.testdir({}), 'new', 'folder')
  const view = await viewMail(LETTER)
  const saved = await saveParts(view, folder)
  t.same(readdirSync(folder), ['01-etc_passwd', 'body.html', 'text.txt'])
  t.equal(saved.length, 3)
  t.equal(readFileSync(join(folder, '01-etc_passwd'), 'latin1'), 'PDF')
  await t.rejects(saveParts(view, folder), { code: 'conflict', message: /text\.txt already exists/ })
  const other = t.testdir({ mine: 'keep' })
  symlinkSync(join(other, 'mine'), join(other, 'text.txt'))
  await t.rejects(saveParts(view, other), { code: 'conflict' })
  t.equal(readFileSync(join(other, 'mine'), 'utf8'), 'keep', 'what a link leads to')
})

t.test('file names never contain a path', t => {
  t.equal(safeName('Grüße 2026.pdf'), 'Grüße_2026.pdf')
  t.equal(safeName('../..'), 'attachment')
  t.equal(safeName('.bashrc'), 'bashrc')
  t.equal(safeName('-rf'), 'rf')
  t.equal(safeName('C:\\x\u202egpj.exe'), 'C_x_gpj.exe')
  t.ok(safeName(`${'x'.repeat(500)}.pdf`).endsWith('.pdf'))
  t.ok(Buffer.byteLength(safeName('漢'.repeat(500))) <= 200)
  t.end()
})

t.test('a mail beyond the limits is not parsed', async t => {
  const many = `Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--b\r\n\r\nx\r\n'.repeat(2_000)}--b--\r\n`
  await t.rejects(viewMail(Buffer.from(many)), { code: 'validation_error', message: /1000 parts; use --raw/ })
})
