/** Mails of one part: plain text in its many ways, and line ends, lengths and dots at their worst. */
import { base64, mail, raw, utf8, type CorpusMail } from './build.js'

const LATIN = 'text/plain; charset=iso-8859-1'
const UTF8 = 'text/plain; charset=utf-8'
const EIGHT = { 'Content-Transfer-Encoding': '8bit' }
const QUOTED = { 'Content-Transfer-Encoding': 'quoted-printable' }

export const plainMails: readonly CorpusMail[] = [
  mail('plain ASCII', {}, ['Hello Bob,', '', 'see you at ten.', '-- ', 'Ann']),
  mail('without any MIME field', { 'MIME-Version': undefined }, ['Just text.']),
  mail('8-bit UTF-8 without any MIME field', { 'MIME-Version': undefined }, [utf8('Grüße aus Köln')]),
  mail('8-bit UTF-8 without a charset', { 'Content-Type': 'text/plain', ...EIGHT }, [utf8('Žluťoučký kůň')]),
  mail('empty body', {}, ''),
  raw('header alone', 'From: ann@example.com\r\nSubject: nothing more\r\n'),
  raw('header alone without a line end', 'From: ann@example.com\r\nSubject: nothing at all'),
  raw('smallest mail there is', 'From: ann@example.com\r\n\r\n'),
  mail('no line end at the end', {}, 'The last line ends here'),
  mail('8-bit without a line end at the end', { 'Content-Type': UTF8, ...EIGHT }, utf8('Ende: ß')),
  mail('empty lines at the end', {}, ['Text', '', '', '', '']),
  mail('empty lines only', {}, ['', '', '']),
  mail('dots at line starts', {}, ['.', '..', '.hidden', '...three', '.']),
  mail('8-bit with dots at line starts', { 'Content-Type': UTF8, ...EIGHT }, ['.', utf8('.ä'), '..', '.']),
  mail('From at a line start', {}, ['From here on', '>From there']),
  mail('a line of 998 octets', {}, ['x'.repeat(998), 'end']),
  mail('a line of 999 octets', {}, ['x'.repeat(999), 'end']),
  mail('a line of 1,200 octets with blanks', {}, ['word '.repeat(240), 'end']),
  mail('a line of 10,000 octets', {}, ['before', 'y'.repeat(10_000), 'after']),
  mail('10,000 octets of UTF-8 in a line', { 'Content-Type': UTF8, ...EIGHT }, [utf8('né '.repeat(2_500))]),
  mail('trailing white space', {}, ['blank ', 'tab\t', ' ', '\t', 'end']),
  mail('8-bit with trailing white space', { 'Content-Type': UTF8, ...EIGHT }, [
    utf8('ü '),
    'tab\t',
    ' ',
    'end ',
  ]),
  mail('ISO-8859-1 as 8bit', { 'Content-Type': LATIN, ...EIGHT }, [
    'Caf\xe9 cr\xe8me, 3 \xb0C',
    'na\xefve = \xa1ol\xe9!',
  ]),
  mail('ISO-8859-1 without a transfer encoding', { 'Content-Type': LATIN }, ['Stra\xdfe und Wei\xdf']),
  mail(
    'ISO-8859-15 as binary',
    { 'Content-Type': 'text/plain; charset=iso-8859-15', 'Content-Transfer-Encoding': 'binary' },
    ['5 \xa4'],
  ),
  mail('Shift_JIS as 8bit', { 'Content-Type': 'text/plain; charset=Shift_JIS', ...EIGHT }, [
    '\x93\xfa\x96\x7b\x8c\xea \x83\x5c\x83\x74\x83\x67',
  ]),
  mail('GB18030 as 8bit', { 'Content-Type': 'text/plain; charset=gb18030', ...EIGHT }, [
    '\xd6\xd0\xce\xc4 \xc4\xe3\xba\xc3',
  ]),
  mail('KOI8-R as 8bit', { 'Content-Type': 'text/plain; charset=koi8-r', ...EIGHT }, [
    '\xf0\xd2\xc9\xd7\xc5\xd4, \xcd\xc9\xd2!',
  ]),
  mail(
    'ISO-2022-JP, which is 7-bit',
    { 'Content-Type': 'text/plain; charset=iso-2022-jp', 'Content-Transfer-Encoding': '7bit' },
    ['\x1b$B$3$s$K$A$O\x1b(B'],
  ),
  mail('windows-1252 quotes', { 'Content-Type': 'text/plain; charset=windows-1252', ...EIGHT }, [
    '\x93Hello\x94 \x96 it\x92s \x80 5',
  ]),
  mail('8-bit labelled us-ascii', { 'Content-Type': 'text/plain; charset=us-ascii' }, [utf8('déjà vu')]),
  mail('emoji', { 'Content-Type': UTF8, ...EIGHT }, [
    utf8('\u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u{1f600}'.repeat(40)),
  ]),
  mail('format=flowed', { 'Content-Type': `${UTF8}; format=flowed; delsp=no`, ...EIGHT }, [
    utf8('Ein Absatz, der '),
    utf8('über zwei Zeilen geht.'),
    '> zitiert ',
    '> weiter',
    '-- ',
    'Ann',
  ]),
  mail('quoted-printable with a soft break at the edge', { 'Content-Type': UTF8, ...QUOTED }, [
    `${'a'.repeat(75)}=`,
    'b',
    `${'c'.repeat(72)}=3D=`,
    '=',
    '=C3=A4 =20',
    'end=',
  ]),
  mail('quoted-printable with 8-bit octets in it', { 'Content-Type': UTF8, ...QUOTED }, [
    utf8('halb =C3=A4 halb ä'),
    'a lone = sign',
    'soft =',
    'break',
  ]),
  mail('quoted-printable with long lines', { 'Content-Type': UTF8, ...QUOTED }, [
    '=C3=A4 und '.repeat(200).trimEnd(),
    'end',
  ]),
  mail('base64 in one line', { 'Content-Type': UTF8, 'Content-Transfer-Encoding': 'base64' }, [
    Buffer.from('Zeile ä\n'.repeat(300)).toString('base64'),
  ]),
  mail('base64 as usual', { 'Content-Type': UTF8, 'Content-Transfer-Encoding': 'base64' }, [
    base64(utf8('Grüße\r\n'.repeat(40))),
  ]),
  mail('uuencoded file in the text', {}, ['Here it is:', 'begin 644 cat.txt', '#0V%T', '`', 'end']),
  mail('HTML alone as 8bit', { 'Content-Type': 'text/html; charset=utf-8', ...EIGHT }, [
    utf8('<p>Schöne Grüße &amp; mehr</p>'),
  ]),
  mail('HTML in one long line', { 'Content-Type': 'text/html; charset=utf-8' }, [
    `<table>${'<tr><td>cell</td></tr>'.repeat(200)}</table>`,
  ]),
  mail('transfer encoding in odd capitals', { 'Content-Type': UTF8, 'Content-Transfer-Encoding': '8BIT' }, [
    utf8('ÄÖÜ'),
  ]),
]
