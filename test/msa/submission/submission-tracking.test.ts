/** Footer and tracking of mail that comes finished: what is added where it is asked for, and what stays as it came. */
import { simpleParser } from 'mailparser'
import { createTransport, type SendMailOptions } from 'nodemailer'
import t from 'tap'
import { dkimVerdicts, dkimZone } from '../../support/dkim.js'
import { idsOf, letter, openSubmissionTest } from '../../support/smtp/submission.js'

/** One for all tests; its domain signs. */
const office = openSubmissionTest(t).then(async test => {
  const zone = dkimZone(await test.addDomain())
  const settings = ['company_name=Käse & Co', 'company_address=Hauptstraße 1, Köln']
  await test.postroad.json('workspace', 'set', test.postroad.workspaceId, ...settings)
  return {
    ...test,
    /** Sends octets as they are. */
    send: async (message: string | Buffer, to: string | string[] = 'ann@one.test') => {
      const client = await test.loggedIn()
      const reply = await client.submit(message, { to, mail: 'BODY=8BITMIME' })
      const mails = await Promise.all(
        idsOf(reply).map(async id => {
          const { raw, header, body } = await test.caught(id)
          const verdicts = await dkimVerdicts(raw, zone)
          return { ...(await simpleParser(raw)), raw, header, body, verdicts }
        }),
      )
      return { reply, mails, mail: mails[0]! }
    },
  }
})

const BOTH = ['X-Postroad-Track: opens,clicks', 'X-Postroad-Footer: yes'] as const

/** A part without what was put into it: URLs of links as they were, neither pixel nor footer. */
function withoutAdditions(html: string): string {
  return html
    .replace(/<img src="https:[^"]+\/o\/[^>]*>/, '')
    .replace(/<table role="presentation"[^]*?Sent with Postroad<\/td><\/tr><\/table>/, '')
    .replace(/href="https:[^"]+\/c\/[^".]+\.([^"]+)"/g, (_, part: string) => {
      const octets = Buffer.from(part, 'base64url')
      return `href="${octets.subarray(octets.indexOf('http')).toString()}"`
    })
}

async function composed(options: SendMailOptions): Promise<Buffer> {
  const transport = createTransport({ streamTransport: true, buffer: true, newline: 'windows' })
  const { message } = await transport.sendMail({ from: 'app@sender.test', to: 'ann@one.test', ...options })
  return message as Buffer
}

t.test('html gets links, pixel and footer; everything else stays to the octet', async t => {
  const { send } = await office
  const html =
    '<html lang="de"><head><style>a > b { color: red }</style></head><body>\r\n<p>Grüße  </p>\r\n' +
    '<a href="http://shop.test/a?b=1">x</a> <a href="mailto:a@b.test">m</a><!-- </body> -->\r\n</body></html>'
  const message = await composed({
    subject: 'Angebot',
    headers: { 'X-Postroad-Track': 'opens,clicks', 'X-Postroad-Footer': 'yes', 'X-Order': '7' },
    text: 'Grüße\r\nhttp://shop.test/a',
    html: html.replace('</p>', '<img src="cid:logo"></p>'),
    attachments: [
      { filename: 'logo.png', content: Buffer.from('89504e47', 'hex'), cid: 'logo' },
      { filename: 'page.html', content: '<body><a href="http://x.test/">y</a></body>' },
      {
        filename: 'old.eml',
        contentType: 'message/rfc822',
        content: 'Subject: x\r\nContent-Type: text/html\r\n\r\n<a href="http://x.test/">y</a></body>\r\n',
      },
    ],
  })
  const { mail } = await send(message)
  t.match(mail.verdicts, ['sender.test rsa-sha256 pass'])
  t.notMatch(mail.header, /X-Postroad-(Track|Footer)/i)
  t.match(mail.header, 'X-Order: 7\r\n')
  t.match(mail.header, /^List-Unsubscribe: <https:[^>]+\/u\/[^>]+>,\s+<mailto:unsubscribe\+/m)
  t.match(mail.header, 'List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n')
  const written = String(mail.html)
  t.match(written, /href="https:[^"]+\/c\//)
  t.match(written, 'href="mailto:a@b.test"')
  t.match(
    written,
    /K&#228;se &amp; Co, Hauptstra&#223;e 1, K&#246;ln<br>.*Abmelden[^]*<img src="https:[^"]+\/o\/[^>]+><\/body>/,
  )
  t.match(
    mail.text,
    /^Grüße\nhttp:\/\/shop\.test\/a\n\nAbmelden: https:[^\n]+\/u\/[^\n]+\n[^]*Käse & Co, Hauptstraße 1, Köln\nSent with Postroad/,
  )
  t.match(mail.attachments.map(({ filename }) => filename).sort(), ['logo.png', 'page.html'])
  t.match(
    String(mail.attachments.find(({ filename }) => filename === 'page.html')?.content),
    'href="http://x.test/"',
  )

  const parts = (text: string) => text.split(/^----[^\r]+\r\n/m)
  const [before, after] = [parts(String(message)), parts(mail.raw.toString('latin1'))]
  const isRead = (part: string) =>
    /^Content-Type: (multipart\/(rel|alt)|text\/(plain|html); charset)/.test(part)
  t.strictSame(
    after.slice(1).filter(part => !isRead(part)),
    before.slice(1).filter(part => !isRead(part)),
    'pictures, attachments and a message in the message',
  )
  t.equal(before.filter(isRead).length, 4)
})

t.test('each recipient has individual links', async t => {
  const { send } = await office
  const { mails } = await send(
    letter(...BOTH, 'MIME-Version: 1.0', 'Content-Type: text/html').replace(
      'Hello.',
      '<a href="https://a.test/">a</a>',
    ),
    ['ann@one.test', 'bob@two.test'],
  )
  const links = mails.map(({ body }) => body.match(/https:\/\/[^"\s]+\/[cuop]\/[^"\s]+/g) ?? [])
  t.strictSame(
    links.map(({ length }) => length),
    [4, 4],
  )
  t.equal(new Set(links.flat()).size, 8)
  for (const { verdicts } of mails) t.match(verdicts, ['sender.test rsa-sha256 pass'])
})

t.test('nothing is added that was not requested', async t => {
  const { send } = await office
  const html = '<body><a href="http://a.test/">a</a></body>'
  const sent = async (...fields: string[]) =>
    (await send(letter(...fields, 'MIME-Version: 1.0', 'Content-Type: text/html').replace('Hello.', html)))
      .mail
  t.equal((await sent()).body, `${html}\r\n`)
  t.equal((await sent('X-Postroad-Track: none', 'X-Postroad-Footer: no')).body, `${html}\r\n`)
  const opens = await sent('X-Postroad-Track: opens')
  t.match(opens.body, /^<body><a href="http:\/\/a\.test\/">a<\/a><img src="https:[^>]+><\/body>\r\n$/)
  t.notMatch(opens.header, /^List-Unsubscribe/m)
  t.match(
    (await sent('X-Postroad-Track: clicks')).body,
    /^<body><a href="https:[^"]+\/c\/[^"]+">a<\/a><\/body>\r\n$/,
  )
  const footed = await sent('X-Postroad-Footer: yes')
  t.match(footed.body, /^<body><a href="http:\/\/a\.test\/">a<\/a><table/)
  t.notMatch(footed.body, '<img')
})

t.test('charsets and transfer encodings stay what they are', async t => {
  const { send } = await office
  const latin = Buffer.from('<p>Käse für 5 Pfund: £</p><a href="http://a.test/">ä</a>', 'latin1')
  const chinese = Buffer.from(
    '3c703ec4e3bac33c2f703e813081303c6120687265663d22687474703a2f2f612e746573742f223e323c2f613e',
    'hex',
  )
  const japanese = Buffer.from('<p>\x1b$B$"$$\x1b(B</p><a href="http://a.test/">x</a>', 'latin1')
  const wide = Buffer.from('<p>Grüße €</p><a href="http://a.test/">x</a>', 'utf16le')
  for (const [charset, octets] of [
    ['iso-8859-1', latin],
    ['GB18030', chinese],
    ['iso-2022-jp', japanese],
    ['utf-16le', wide],
    ['utf-8', Buffer.from('<p>Grüße €</p><a href="http://a.test/">x</a>')],
  ] as const)
    for (const encoding of ['8bit', 'base64', 'quoted-printable']) {
      if (encoding !== 'base64' && charset === 'utf-16le') continue
      const body =
        encoding === 'base64'
          ? octets.toString('base64')
          : encoding === '8bit'
            ? octets.toString('latin1')
            : octets
                .toString('latin1')
                .replace(
                  /[^\x21-\x3c\x3e-\x7e]/g,
                  one => `=${one.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`,
                )
      const { mail } = await send(
        Buffer.from(
          `From: app@sender.test\r\nSubject: x\r\n${BOTH.join('\r\n')}\r\nMIME-Version: 1.0\r\nContent-Type: text/html; charset=${charset}\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${body}\r\n`,
          'latin1',
        ),
      )
      const label = `${charset} as ${encoding}`
      const expected = new TextDecoder(charset).decode(octets)
      t.equal(withoutAdditions(String(mail.html)).trimEnd(), expected, label)
      t.match(mail.html, 'K&#228;se &amp; Co', label)
      if (encoding !== '8bit') t.match(mail.header, `Content-Transfer-Encoding: ${encoding}`, label)
      t.match(mail.verdicts, ['sender.test rsa-sha256 pass'], label)
    }
})

t.test('plain text gets the footer in its own charset, and in UTF-8 where that lacks a letter', async t => {
  const { send } = await office
  const text = async (charset: string, octets: Buffer) => {
    const type = `MIME-Version: 1.0\r\nContent-Type: text/plain; charset=${charset}; format=flowed`
    const head = `From: app@sender.test\r\nSubject: x\r\nX-Postroad-Footer: yes\r\n${type}\r\n\r\n`
    return (await send(Buffer.concat([Buffer.from(head), octets, Buffer.from('\r\n')]))).mail
  }
  for (const [charset, octets, says, kept] of [
    ['iso-8859-1', Buffer.from('Grüße', 'latin1'), 'Grüße', 'iso-8859-1'],
    ['us-ascii', Buffer.from('Hello'), 'Hello', 'utf-8'],
    ['utf-8', Buffer.from('Grüße'), 'Grüße', 'utf-8'],
    ['koi8-r', Buffer.from([0xd0, 0xd2, 0xc9]), 'при', 'utf-8'],
    ['gb18030', Buffer.from('c4e3bac3', 'hex'), '你好', 'gb18030|utf-8'],
  ] as const) {
    const mail = await text(charset, octets)
    t.match(
      mail.text,
      new RegExp(
        `^${says}\\n\\nUnsubscribe: https:[^]+\\nKäse & Co, Hauptstraße 1, Köln\\nSent with Postroad\\n?$`,
      ),
      charset,
    )
    t.match(mail.header, new RegExp(`charset="?(${kept})"?`, 'i'), charset)
    t.match(mail.header, 'format=flowed')
  }
})

t.test(
  'a managed link of the author is filled in, and what has all it needs gets no second footer',
  async t => {
    const { send } = await office
    const type = ['MIME-Version: 1.0', 'Content-Type: text/html; charset=us-ascii']
    const html =
      '<p>{{first_name}} {{#if</p><a href="{{unsubscribe_url}}">out</a> {{company_name}}, {{ company_address }}'
    const { mail } = await send(
      letter(...BOTH, 'List-Unsubscribe: <https://old.test/>', ...type).replace('Hello.', html),
    )
    t.match(
      mail.body,
      /^<p>\{\{first_name\}\} \{\{#if<\/p><a href="https:[^"]+\/u\/[^"]+">out<\/a> K&#228;se &amp; Co, Hauptstra&#223;e 1, K&#246;ln/,
    )
    t.equal(mail.header.match(/^List-Unsubscribe:/gm)?.length, 1)
    t.notMatch(mail.header, 'old.test')
    t.equal(mail.body.match(/\/u\//g)?.length, 1)
    const kept = await send(letter('X-Postroad-Track: opens', ...type).replace('Hello.', html))
    t.match(kept.mail.body, html, 'without the footer it is nobody else’s')
  },
)

t.test('what its author signed or encrypted stays to the octet, and the reply says so', async t => {
  const { send } = await office
  const page = '<body><a href="http://a.test/">a</a></body>\r\n'
  const armour =
    '-----BEGIN PGP SIGNED MESSAGE-----\r\nHash: SHA512\r\n\r\nHello\r\n-----BEGIN PGP SIGNATURE-----\r\n\r\nx\r\n-----END PGP SIGNATURE-----\r\n'
  const signed = `--s\r\nContent-Type: text/html\r\n\r\n${page}--s\r\nContent-Type: application/pgp-signature\r\n\r\nx\r\n--s--\r\n`
  for (const [type, body] of [
    ['multipart/signed; protocol="application/pgp-signature"; boundary=s', signed],
    ['multipart/encrypted; protocol="application/pgp-encrypted"; boundary=s', signed],
    [
      'multipart/mixed; boundary=m',
      `--m\r\nContent-Type: multipart/signed; boundary=s\r\n\r\n${signed}\r\n--m\r\nContent-Type: text/plain\r\n\r\nlist\r\n--m--\r\n`,
    ],
    ['application/pkcs7-mime; smime-type=signed-data', 'MIIB\r\n'],
    ['text/plain', armour],
    [
      'multipart/alternative; boundary=m',
      `--m\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\n${Buffer.from(armour).toString('base64').replace(/.{76}/g, '$&\r\n')}\r\n--m\r\nContent-Type: text/html\r\n\r\n${page}\r\n--m--\r\n`,
    ],
  ] as const) {
    const { mail, reply } = await send(
      letter(...BOTH, 'MIME-Version: 1.0', `Content-Type: ${type}`).replace('Hello.\r\n', body),
    )
    t.equal(mail.body, body, type)
    t.notMatch(mail.header, /^List-Unsubscribe/m, type)
    t.match(reply, /signed or encrypted by its author, so no footer or tracking was added/, type)
  }
})

t.test('a click and an opening of such a mail are counted', async t => {
  const { postroad, send } = await office
  const html = '<a href="http://a.test/x?y=1&amp;z=2">a</a>'
  const { mail, reply } = await send(
    letter(...BOTH, 'MIME-Version: 1.0', 'Content-Type: text/html').replace('Hello.', html),
  )
  const [click = '', pixel = ''] = [/\/c\/[^"]+/, /\/o\/[^"]+/].map(one => one.exec(mail.body)?.[0] ?? '')
  const followed = await fetch(`http://127.0.0.1:${postroad.addresses.http[0]?.port}${click}`, {
    redirect: 'manual',
  })
  t.equal(followed.headers.get('location'), 'http://a.test/x?y=1&z=2')
  t.equal((await fetch(`http://127.0.0.1:${postroad.addresses.http[0]?.port}${pixel}`)).status, 200)
  t.equal(idsOf(reply).length, 1)
})
