/** Relayed mail of every shape gets its additions or stays unchanged, however hostile. */
import t from 'tap'
import { valuesOf } from '../../src/content/rendering/mail-plan.js'
import type { Merging } from '../../src/content/rendering/merging.js'
import { planRelayed } from '../../src/content/rendering/relayed-plan.js'
import { trackedUrls } from '../../src/content/tracking/followed-url.js'
import { openLinkKeys } from '../../src/mail/links/link-keys.js'
import { LinkPartCache } from '../../src/mail/links/click-link.js'
import { linksOf } from '../../src/mail/links/links.js'
import { toSevenBit } from '../../src/mail/relay/seven-bit.js'
import { mimeCorpus } from '../support/mime-corpus/corpus.js'

const KEYS = openLinkKeys([{ version: 1, secret: Buffer.alloc(32, 1) }])
const PUBLIC = 'https://mail.example.com'
const MESSAGE = {
  workspaceId: '01900000-0000-7000-8000-00000000000a',
  messageId: '01900000-0000-7000-8000-000000000001',
  recipient: 'ann@x.example',
}
const BRAND = {
  companyName: 'Vögel 鳥 & Co',
  companyAddress: 'Hauptstraße 9',
  attribution: true,
  timezone: 'UTC',
}
const MERGING: Merging = { brand: BRAND, hasFooter: true, tracking: { opens: true, clicks: {} } }
const links = linksOf(KEYS, PUBLIC, MESSAGE)
const tracking = trackedUrls({
  ...MESSAGE,
  links,
  parts: new LinkPartCache(KEYS),
  publicUrl: PUBLIC,
  parameters: {},
})
const own = {
  values: valuesOf(MERGING, {}, MESSAGE.recipient, 0, links, tracking),
  unsubscribeFields: () => 'List-Unsubscribe: <https://mail.example.com/u/x>\r\n',
}

function finished(message: Buffer): Buffer {
  return Buffer.concat(
    planRelayed(message, MERGING, false).map(piece => (Buffer.isBuffer(piece) ? piece : piece(own))),
  )
}

t.test('every mail of the corpus can be decorated and stays 7-bit', t => {
  let changed = 0
  for (const { name, message } of mimeCorpus) {
    const done = finished(message)
    if (!done.equals(message)) changed += 1
    if (!done.equals(message)) t.ok(done.length > message.length / 3, name)
    let isConvertible = true
    try {
      toSevenBit(message)
    } catch {
      isConvertible = false
    }
    if (isConvertible) t.doesNotThrow(() => toSevenBit(done), name)
  }
  t.ok(changed > 10)
  t.end()
})

t.test('endless, malformed and excessive parts are left unchanged', t => {
  const head = 'From: a@b.test\r\nMIME-Version: 1.0\r\n'
  const nested = Array.from(
    { length: 80 },
    (_, at) => `Content-Type: multipart/mixed; boundary=b${at}\r\n\r\n--b${at}\r\n`,
  )
  for (const message of [
    `${head}${nested.join('')}Content-Type: text/html\r\n\r\n<p>x</p>\r\n`,
    `${head}Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--b\r\n\r\nx\r\n'.repeat(5_000)}--b--\r\n`,
    `${head}Content-Type: multipart/mixed; boundary=b\r\n\r\nno parts\r\n`,
    `${head}Content-Type: multipart/alternative; boundary=b\r\n\r\n--b`,
    `${head}Content-Type: text/html; charset=utf-16\r\nContent-Transfer-Encoding: base64\r\n\r\nAAAAA\r\n`,
    `${head}Content-Type: text/html\r\nContent-Transfer-Encoding: x-uuencode\r\n\r\nbegin 644 x\r\n`,
    `${head}Content-Type: message/rfc822\r\n\r\n${head}Content-Type: text/html\r\n\r\n<p>x</p>\r\n`,
    `${head}Content-Type: text/calendar\r\n\r\nBEGIN:VCALENDAR\r\n`,
    'From: a@b.test\r\nContent-Type: image/png\r\n\r\n',
  ])
    t.equal(finished(Buffer.from(message)).toString(), message, message.slice(0, 120))
  t.end()
})

t.test('the first of several texts is the mail; files do not count', t => {
  const part = (type: string, body: string, ...fields: string[]) =>
    `--b\r\nContent-Type: ${type}\r\n${fields.map(field => `${field}\r\n`).join('')}\r\n${body}\r\n`
  const head = 'From: a@b.test\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n'
  const anchor = '<a href="http://a.test/">a</a>'
  const file = part('text/html; name=page.html', anchor, 'Content-Disposition: inline')
  const note = part('text/plain', 'note', 'Content-Disposition: attachment')
  const done = finished(
    Buffer.from(
      `${head}${note}${part('text/html', anchor)}${file}${part('text/html', anchor)}${part('text/plain', 'list')}--b--\r\n`,
    ),
  ).toString()
  t.ok(done.includes(note) && done.includes(file) && done.endsWith(`${part('text/plain', 'list')}--b--\r\n`))
  t.equal(done.match(/Sent with Postroad/g)?.length, 1)
  t.equal(done.match(/\/o\//g)?.length, 1)
  t.equal(done.match(/\/c\//g)?.length, 2)
  t.ok(done.indexOf('/o/') < done.indexOf('name=page.html'))
  t.end()
})
