/** Mails of several parts: alternatives, attachments, messages in messages, boundaries that mislead. */
import { ALL_OCTETS, base64, mail, part, parts, utf8, type CorpusMail } from './build.js'

const text8 = part(
  ['Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: 8bit'],
  utf8('Grüße\r\naus Köln'),
)
const html8 = part(
  ['Content-Type: text/html; charset=utf-8', 'Content-Transfer-Encoding: 8bit'],
  utf8('<p>Grüße<br>aus Köln</p>'),
)
const text7 = part(['Content-Type: text/plain'], 'Just text')
const binary = part(
  [
    'Content-Type: application/octet-stream',
    'Content-Disposition: attachment; filename=all.bin',
    'Content-Transfer-Encoding: 8bit',
  ],
  ALL_OCTETS,
)
const image = part(
  [
    'Content-Type: image/png; name=dot.png',
    'Content-Transfer-Encoding: base64',
    'Content-Disposition: inline; filename=dot.png',
    'Content-ID: <dot@example.com>',
  ],
  base64('\x89PNG\x1a'.repeat(60)),
)
const forwarded = [
  'From: Cy <cy@example.org>',
  utf8('Subject: Früher'),
  'To: ann@example.com',
  'MIME-Version: 1.0',
]
const multipart = (type: string, more: Readonly<Record<string, string>> = {}) => ({
  'Content-Type': `multipart/${type}`,
  ...more,
})
const EIGHT = { 'Content-Transfer-Encoding': '8bit' }

/** Twelve multiparts within each other, 8-bit text in the innermost. */
function deep(level: number): string {
  const inner = level === 0 ? text8 : deep(level - 1)
  return part(
    [`Content-Type: multipart/mixed; boundary=level-${level}`, 'Content-Transfer-Encoding: 8bit'],
    parts(`level-${level}`, inner),
  )
}

export const nestedMails: readonly CorpusMail[] = [
  mail('alternatives as 8bit', multipart('alternative; boundary=alt', EIGHT), parts('alt', text8, html8)),
  mail(
    'alternatives with AMP',
    multipart('alternative; boundary=alt'),
    parts(
      'alt',
      text7,
      part(['Content-Type: text/x-amp-html; charset=utf-8'], utf8('<html ⚡4email><p>Grüße</p></html>')),
      html8,
    ),
  ),
  mail('only one of two parts is 8-bit', multipart('mixed; boundary=m', EIGHT), parts('m', text7, text8)),
  mail('a binary attachment declared 8bit', multipart('mixed; boundary=m', EIGHT), parts('m', text7, binary)),
  mail(
    'a binary attachment without an encoding',
    multipart('mixed; boundary=m'),
    parts(
      'm',
      text7,
      part(
        ['Content-Type: application/zip', 'Content-Disposition: attachment; filename=a.zip'],
        'PK\x03\x04\x00\xff\xfe\x00',
      ),
    ),
  ),
  mail(
    'an attachment in base64 beside 8-bit text',
    multipart('mixed; boundary=m'),
    parts(
      'm',
      text8,
      part(
        [
          'Content-Type: application/pdf',
          'Content-Disposition: attachment; filename=a.pdf',
          'Content-Transfer-Encoding: base64',
        ],
        base64('%PDF'.repeat(100)),
      ),
    ),
  ),
  mail(
    'an inline image',
    multipart('related; type="text/html"; boundary=rel'),
    parts(
      'rel',
      part(
        ['Content-Type: text/html; charset=utf-8', 'Content-Transfer-Encoding: 8bit'],
        utf8('<p>für <img src="cid:dot@example.com"></p>'),
      ),
      image,
    ),
  ),
  mail(
    'mixed, related and alternative within each other',
    multipart('mixed; boundary=m', EIGHT),
    parts(
      'm',
      part(
        ['Content-Type: multipart/related; boundary=r', 'Content-Transfer-Encoding: 8bit'],
        parts(
          'r',
          part(
            ['Content-Type: multipart/alternative; boundary=a', 'Content-Transfer-Encoding: 8bit'],
            parts('a', text8, html8),
          ),
          image,
        ),
      ),
      binary,
    ),
  ),
  mail(
    'a calendar invitation',
    multipart('alternative; boundary=c'),
    parts(
      'c',
      text7,
      part(
        ['Content-Type: text/calendar; charset=utf-8; method=REQUEST', 'Content-Transfer-Encoding: 8bit'],
        utf8(
          'BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nSUMMARY:Frühstück\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n',
        ),
      ),
    ),
  ),
  mail(
    'parts in four charsets',
    multipart('mixed; boundary=m'),
    parts(
      'm',
      part(['Content-Type: text/plain; charset=iso-8859-1'], 'Caf\xe9'),
      part(['Content-Type: text/plain; charset=koi8-r'], '\xf0\xd2\xc9\xd7\xc5\xd4'),
      part(['Content-Type: text/plain; charset=shift_jis'], '\x93\xfa\x96\x7b'),
      part(['Content-Type: text/plain; charset=gb18030'], '\xd6\xd0\xce\xc4'),
    ),
  ),
  mail(
    'a text attachment without a charset',
    multipart('mixed; boundary=m'),
    parts(
      'm',
      text7,
      part(
        ['Content-Type: text/csv', 'Content-Disposition: attachment; filename=a.csv'],
        utf8('Straße;Köln\r\n'),
      ),
    ),
  ),
  mail(
    'a forwarded message as 8bit',
    multipart('mixed; boundary=m', EIGHT),
    parts(
      'm',
      text7,
      part(
        ['Content-Type: message/rfc822', 'Content-Transfer-Encoding: 8bit'],
        part(
          [...forwarded, 'Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: 8bit'],
          utf8('Ältere Grüße\r\n'),
        ),
      ),
    ),
  ),
  mail(
    'a message is all there is',
    { 'Content-Type': 'message/rfc822', ...EIGHT },
    part([...forwarded, 'Content-Type: text/plain; charset=iso-8859-1'], '\xc4lter\r\n'),
  ),
  mail(
    'a forwarded message of several parts',
    multipart('mixed; boundary=m'),
    parts(
      'm',
      text7,
      part(
        ['Content-Type: message/rfc822'],
        part([...forwarded, 'Content-Type: multipart/mixed; boundary=n'], parts('n', text8, binary)),
      ),
    ),
  ),
  {
    ...mail(
      'a digest',
      multipart('digest; boundary=d'),
      parts(
        'd',
        part([], part([...forwarded, 'Content-Type: text/plain; charset=utf-8'], utf8('Erstens: ä'))),
        part([], part(['From: cy@example.org', 'Subject: second'], 'Zweitens')),
      ),
    ),
    isMisreadByMailparser: true,
  },
  mail(
    'a boundary that begins like another',
    multipart('mixed; boundary=edge'),
    parts(
      'edge',
      part(['Content-Type: multipart/alternative; boundary=edge-inner'], parts('edge-inner', text8, html8)),
      part(
        ['Content-Type: text/plain; charset=utf-8'],
        utf8('--edgy\r\n--edge-\r\n --edge\r\nnäh\r\n--edge-inner-no'),
      ),
    ),
  ),
  mail(
    'the outer boundary begins like the inner one',
    multipart('mixed; boundary=edge-outer'),
    parts(
      'edge-outer',
      part(['Content-Type: multipart/alternative; boundary=edge'], parts('edge', text8, html8)),
      text8,
    ),
  ),
  mail(
    'preamble and epilogue',
    multipart('mixed; boundary=m'),
    `You should not see this.\r\n${parts('m', text8)}Nor this.\r\n`,
  ),
  mail(
    '8-bit preamble and epilogue',
    multipart('mixed; boundary=m'),
    `${utf8('Für alte Programme')}\r\n${parts('m', text8)}${utf8('Schluß')}\r\n`,
  ),
  mail('no closing delimiter', multipart('mixed; boundary=m'), `--m\r\n${text8}\r\n--m\r\n${html8}\r\n`),
  {
    ...mail(
      'an inner multipart that is not closed',
      multipart('mixed; boundary=m'),
      `--m\r\nContent-Type: multipart/alternative; boundary=i\r\n\r\n--i\r\n${text8}\r\n--i\r\n${html8}\r\n--m\r\n${binary}\r\n--m--\r\n`,
    ),
    isMisreadByMailparser: true,
  },
  mail(
    'delimiters with white space behind them',
    multipart('mixed; boundary=m'),
    `--m  \r\n${text8}\r\n--m\t\r\n${binary}\r\n--m-- \r\n`,
  ),
  mail(
    'empty parts',
    multipart('mixed; boundary=m'),
    `--m\r\n\r\n--m\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n\r\n--m\r\n${text8}\r\n--m--\r\n`,
  ),
  mail(
    'long lines in one part',
    multipart('mixed; boundary=m'),
    parts('m', part(['Content-Type: text/html'], `<p>${'word '.repeat(300)}</p>`), text7),
  ),
  mail(
    'an attachment in one line of base64',
    multipart('mixed; boundary=m'),
    parts(
      'm',
      text7,
      part(
        [
          'Content-Type: application/pdf',
          'Content-Disposition: attachment; filename=a.pdf',
          'Content-Transfer-Encoding: base64',
        ],
        Buffer.from('%PDF'.repeat(500)).toString('base64'),
      ),
    ),
  ),
  mail(
    'twelve levels deep',
    { 'Content-Type': 'multipart/mixed; boundary=top', ...EIGHT },
    parts('top', deep(11)),
  ),
  mail(
    'a delivery report with 8-bit text',
    multipart('report; report-type=delivery-status; boundary=m'),
    parts(
      'm',
      text8,
      part(
        ['Content-Type: message/delivery-status'],
        'Reporting-MTA: dns; mx.example\r\n\r\nFinal-Recipient: rfc822; bob@example.net\r\nAction: failed\r\nStatus: 5.1.1\r\n',
      ),
      part(['Content-Type: text/rfc822-headers'], 'Subject: Hi\r\n'),
    ),
  ),
]
