/** Signed and encrypted mails, 7-bit as they should be and 8-bit as they should not. */
import { base64, mail, part, parts, utf8, type CorpusMail } from './build.js'

const PGP_SIGNATURE = part(
  ['Content-Type: application/pgp-signature; name=signature.asc'],
  '-----BEGIN PGP SIGNATURE-----\r\n\r\niQEzBAEBCAAdFiEE\r\n=abcd\r\n-----END PGP SIGNATURE-----',
)
const SMIME_SIGNATURE = part(
  ['Content-Type: application/pkcs7-signature; name=smime.p7s', 'Content-Transfer-Encoding: base64'],
  base64('\x30\x80\x06\x09'.repeat(40)),
)
const SIGNED_BY_PGP =
  'multipart/signed; micalg=pgp-sha256; protocol="application/pgp-signature"; boundary=sig'
const SIGNED_BY_SMIME =
  'multipart/signed; protocol="application/pkcs7-signature"; micalg=sha-256; boundary="sig"'
const eightBit = part(
  ['Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: 8bit'],
  utf8('Geprüfte Grüße '),
)
const quoted = part(
  ['Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: quoted-printable'],
  'Gepr=C3=BCfte Gr=C3=BC=C3=9Fe=20',
)
const signed7 = parts('sig', quoted, PGP_SIGNATURE)
const signed8 = parts('sig', eightBit, PGP_SIGNATURE)
const smime7 = parts('sig', quoted, SMIME_SIGNATURE)
const encrypted = parts(
  'enc',
  part(['Content-Type: application/pgp-encrypted'], 'Version: 1'),
  part(
    ['Content-Type: application/octet-stream'],
    '-----BEGIN PGP MESSAGE-----\r\n\r\nhQEMA\r\n-----END PGP MESSAGE-----',
  ),
)
const longSigned = parts('sig', part(['Content-Type: text/plain'], 'z'.repeat(1_200)), PGP_SIGNATURE)

export const protectedMails: readonly CorpusMail[] = [
  mail('signed with PGP', { 'Content-Type': SIGNED_BY_PGP }, signed7, [signed7]),
  mail(
    'signed with S/MIME',
    { 'Content-Type': SIGNED_BY_SMIME },
    `This is an S/MIME signed message\r\n${smime7}`,
    [smime7],
  ),
  mail(
    'signed with PGP, raw UTF-8 subject',
    { 'Content-Type': SIGNED_BY_PGP, Subject: utf8('Geprüft') },
    signed7,
    [signed7],
  ),
  mail(
    'signed with PGP although 8-bit',
    { 'Content-Type': SIGNED_BY_PGP, 'Content-Transfer-Encoding': '8bit' },
    signed8,
    [signed8],
  ),
  mail('signed with PGP with a long line', { 'Content-Type': SIGNED_BY_PGP }, longSigned, [longSigned]),
  mail(
    'a signed part beside an 8-bit footer',
    { 'Content-Type': 'multipart/mixed; boundary=list' },
    parts(
      'list',
      part([`Content-Type: ${SIGNED_BY_PGP}`], signed7),
      part(['Content-Type: text/plain; charset=utf-8'], utf8('Fuß der Liste')),
    ),
    [signed7],
  ),
  mail(
    'an 8-bit signed message forwarded beside 8-bit text',
    { 'Content-Type': 'multipart/mixed; boundary=fw', 'Content-Transfer-Encoding': '8bit' },
    parts(
      'fw',
      part(
        ['Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: 8bit'],
        utf8('Schau, für dich'),
      ),
      part(
        ['Content-Type: message/rfc822', 'Content-Transfer-Encoding: 8bit'],
        part(['From: cy@example.org', 'MIME-Version: 1.0', `Content-Type: ${SIGNED_BY_PGP}`], signed8),
      ),
    ),
    [signed8],
  ),
  mail(
    'encrypted with PGP',
    { 'Content-Type': 'multipart/encrypted; protocol="application/pgp-encrypted"; boundary=enc' },
    encrypted,
    [encrypted],
  ),
  mail(
    'encrypted with S/MIME',
    {
      'Content-Type': 'application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m',
      'Content-Transfer-Encoding': 'base64',
      'Content-Disposition': 'attachment; filename=smime.p7m',
    },
    `${base64('\x30\x82\x01'.repeat(90))}\r\n`,
  ),
  mail(
    'encrypted with S/MIME as binary',
    {
      'Content-Type': 'application/x-pkcs7-mime; smime-type=enveloped-data; name=smime.p7m',
      'Content-Transfer-Encoding': 'binary',
      'Content-Disposition': 'attachment; filename=smime.p7m',
    },
    '\x30\x82\x01\x00\xff\xfe',
  ),
  mail('PGP in the text', {}, [
    '-----BEGIN PGP MESSAGE-----',
    '',
    'hQEMA5',
    '=aaaa',
    '-----END PGP MESSAGE-----',
  ]),
  mail(
    'signed in the text, as 8bit',
    { 'Content-Type': 'text/plain; charset=utf-8', 'Content-Transfer-Encoding': '8bit' },
    [
      '-----BEGIN PGP SIGNED MESSAGE-----',
      'Hash: SHA256',
      '',
      utf8('Für dich'),
      '-----BEGIN PGP SIGNATURE-----',
      '',
      'iQEz',
      '-----END PGP SIGNATURE-----',
    ],
  ),
  mail(
    'signed with DKIM by another party',
    { 'DKIM-Signature': 'v=1; a=rsa-sha256; d=example.com; s=k; h=from;\r\n bh=abc=; b=def=' },
    ['Hi'],
  ),
]
