/** Mails whose headers are the hard part: raw charsets, long lists, odd folding, groups, names of files. */
import { mail, parts, part, raw, utf8, type CorpusMail } from './build.js'

const many = Array.from({ length: 200 }, (_, index) => `Reader ${index} <reader${index}@example.net>`)
const bare = Array.from({ length: 200 }, (_, index) => `reader${index}@example.net`)
const koi = { 'Content-Type': 'text/plain; charset=koi8-r', 'Content-Transfer-Encoding': '8bit' }

export const headerMails: readonly CorpusMail[] = [
  mail(
    'raw UTF-8 subject and names',
    { Subject: utf8('Grüße und Küsse'), From: utf8('Jürgen Groß <ann@example.com>') },
    ['Hi'],
  ),
  mail('raw UTF-8 quoted name with a comma', { From: utf8('"Groß, Jürgen" <ann@example.com>') }, ['Hi']),
  mail('raw UTF-8 in a long subject', { Subject: utf8('Überraschung '.repeat(60)) }, ['Hi']),
  {
    ...mail(
      'raw ISO-8859-1 subject',
      {
        Subject: 'Caf\xe9',
        'Content-Type': 'text/plain; charset=iso-8859-1',
        'Content-Transfer-Encoding': '8bit',
      },
      ['Cr\xe8me'],
    ),
    subject: 'Café',
  },
  mail(
    'encoded-words',
    {
      Subject: '=?utf-8?Q?Gr=C3=BC=C3=9Fe?= =?iso-8859-1?Q?_aus_K=F6ln?=',
      From: '=?utf-8?B?SsO8cmdlbg==?= <ann@example.com>',
    },
    ['Hi'],
  ),
  mail('an encoded-word beside raw UTF-8', { Subject: utf8('=?utf-8?Q?Gr=C3=BC=C3=9Fe?= aus Köln') }, ['Hi']),
  mail('raw UTF-8 domain', { To: utf8('Bob <bob@bücher.example>') }, ['Hi']),
  mail('200 recipients, folded', { To: many.join(',\r\n ') }, ['Hi']),
  mail('200 recipients in one line', { To: many.join(', ') }, ['Hi']),
  mail('200 recipients without white space', { To: bare.join(',') }, ['Hi']),
  mail(
    'a group',
    { To: 'Friends: bob@example.net, "Cy, Jr." <cy@example.org>;', Cc: 'undisclosed-recipients:;' },
    ['Hi'],
  ),
  mail('a group with raw UTF-8', { To: utf8('Bücherfreunde: Björn <bob@example.net>, cy@example.org;') }, [
    'Hi',
  ]),
  mail(
    'folded with tabs',
    { Subject: 'a long\r\n\tsubject with\r\n\t tabs', References: '<1@a.example>\r\n\t<2@b.example>' },
    ['Hi'],
  ),
  mail('no subject', { Subject: undefined }, ['Hi']),
  mail('empty subject', { Subject: '' }, ['Hi']),
  mail('a subject of 2,000 characters', { Subject: 'many words '.repeat(180).trim() }, ['Hi']),
  mail('a subject of 1,500 characters without a blank', { Subject: 'x'.repeat(1_500) }, ['Hi']),
  mail(
    'references without white space',
    { References: Array.from({ length: 60 }, (_, index) => `<${index}.20260105@mail.example.com>`).join('') },
    ['Hi'],
  ),
  raw(
    'several Received fields',
    'Received: from a by b; Mon, 5 Jan 2026 07:08:09 +0000\r\nReceived: from c by a;\r\n\tMon, 5 Jan 2026 07:08:08 +0000\r\nFrom: ann@example.com\r\nTo: bob@example.net\r\nSubject: Relayed\r\n\r\nHi\r\n',
  ),
  raw(
    'names in odd capitals and without a blank',
    'FROM:ann@example.com\r\nto:bob@example.net\r\nsUBJECT:tight\r\nmime-version:1.0\r\n\r\nHi\r\n',
  ),
  mail(
    'addresses with comments',
    { From: 'ann@example.com (Ann Example)', To: 'Bob (the other one) <bob@example.net>' },
    ['Hi'],
  ),
  mail('an unknown field with raw UTF-8', { 'X-Department': utf8('Einkäufer'), Comments: utf8('schöner') }, [
    'Hi',
  ]),
  {
    ...mail('KOI8-R in body and subject', { Subject: '\xf0\xd2\xc9\xd7\xc5\xd4', ...koi }, [
      '\xf0\xd2\xc9\xd7\xc5\xd4',
    ]),
    subject: 'Привет',
  },
  mail(
    'RFC 2231 file name',
    { 'Content-Type': 'multipart/mixed; boundary=b1' },
    parts(
      'b1',
      part(['Content-Type: text/plain; charset=utf-8'], utf8('Anbei Bücher')),
      part(
        [
          "Content-Type: application/pdf; name*=utf-8''B%C3%BCcher.pdf",
          "Content-Disposition: attachment; filename*0*=utf-8''B%C3%BC; filename*1*=cher.pdf",
          'Content-Transfer-Encoding: base64',
        ],
        'JVBERg==',
      ),
    ),
  ),
  mail(
    'raw UTF-8 file name',
    { 'Content-Type': 'multipart/mixed; boundary="b 1"' },
    parts(
      'b 1',
      part(['Content-Type: text/plain'], 'See file'),
      part(
        [
          utf8('Content-Type: application/pdf; name="Übersicht März.pdf"'),
          utf8('Content-Disposition: attachment; filename="Übersicht März.pdf"'),
          'Content-Transfer-Encoding: base64',
        ],
        'JVBERg==',
      ),
    ),
  ),
  mail(
    'a boundary over two lines',
    { 'Content-Type': 'multipart/mixed;\r\n\tcharset="utf-8";\r\n\tboundary="----=_Part_1_2.3"' },
    parts(
      '----=_Part_1_2.3',
      part(['Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: 8bit'], utf8('für dich')),
    ),
  ),
]
