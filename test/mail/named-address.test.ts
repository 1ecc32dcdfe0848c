/** Mailboxes with display names, as clients write them. */
import t from 'tap'
import { parseNamedAddress, readImportedAddress, readNamedAddress } from '../../src/mail/named-address.js'

t.test('a mailbox is accepted with a plain, quoted or encoded name, in brackets and bare', async t => {
  for (const [text, name, address] of [
    ['Ann <ann@Example.com>', 'Ann', 'ann@example.com'],
    ['"Doe, \\"Ann\\"" <ann@example.com>', 'Doe, "Ann"', 'ann@example.com'],
    ['Jörg Müller & Söhne, Inc. <j@example.com>', 'Jörg Müller & Söhne, Inc.', 'j@example.com'],
    ['Desk: Ann <ann@example.com>', 'Desk: Ann', 'ann@example.com'],
    ["O'Brien <ann@example.com>", "O'Brien", 'ann@example.com'],
    ['Ann "Annie" Doe <ann@example.com>', 'Ann Annie Doe', 'ann@example.com'],
    ['=?utf-8?Q?J=C3=B6rg?= =?utf-8?B?IE3DvGxsZXI=?= <j@example.com>', 'Jörg Müller', 'j@example.com'],
    ['"=?utf-8?Q?J=C3=B6rg?=" <j@example.com>', 'Jörg', 'j@example.com'],
    ['"ann@other.example" <ann@example.com>', 'ann@other.example', 'ann@example.com'],
    ['ann@example.com <ann@example.com>', 'ann@example.com', 'ann@example.com'],
    ['ann@example.com (Ann)', 'Ann', 'ann@example.com'],
    ['  Ann   <  ann@bücher.example  >  ', 'Ann', 'ann@xn--bcher-kva.example'],
    ['"" <ann@example.com>', undefined, 'ann@example.com'],
    ['<ann@example.com>', undefined, 'ann@example.com'],
    [' ann@example.com\t', undefined, 'ann@example.com'],
    ['"a,b"@example.com', undefined, '"a,b"@example.com'],
    ['"Doe, Ann" <"a,<b>"@example.com>', 'Doe, Ann', '"a,<b>"@example.com'],
  ] as const)
    t.same(parseNamedAddress(text), name === undefined ? { address } : { name, address }, text)
})

t.test('several mailboxes, malformed ones and injections are rejected with the reason', async t => {
  for (const [text, reason] of [
    ['', /no @/],
    ['Ann', /no @/],
    ['Ann <>', /no @/],
    ['Ann <ann@example.com', /unclosed/],
    ['Ann <ann@example.com> x', /text after/],
    ['ann @example.com', /spaces/],
    ['a@example.com, b@example.com', /several/],
    ['a@example.com;b@example.com', /several/],
    ['a@example.com, Bob <b@example.com>', /several/],
    ['Ann <a@example.com>, <b@example.com>', /several/],
    ['"Doe, Ann" <a@example.com>, Bob <b@example.com>', /several/],
    ['ann@example.com,', /comma/],
    ['friends: ann@example.com;', /neither/],
    ['"Ann <ann@example.com>', /quote/],
    ['eve@example.com <ann@example.com>', /different address/],
    ['Ann\r\nBcc: eve@example.com <ann@example.com>', /control/],
    ['ann@example.com\n<bob@example.com>', /control/],
    ['ann@example.com\0', /control/],
    ['=?utf-8?Q?a=0D=0ABcc:?= <ann@example.com>', /control/],
    ['Ann\0 <ann@example.com>', /control/],
    [`${'x'.repeat(256)} <ann@example.com>`, /name longer/],
    ['x'.repeat(1_000_000), /longer/],
  ] as const) {
    const read = readNamedAddress(text)
    t.match('fault' in read ? read.fault : 'taken', reason, JSON.stringify(text.slice(0, 50)))
  }
})

t.test('an address in a spreadsheet may be written in angle brackets or as a mailto link', async t => {
  for (const text of [
    'ann@example.com',
    '\u00a0ann@example.com\u200b',
    '<ann@example.com>',
    'mailto:ann@example.com',
    'MAILTO:ann@example.com?subject=Hello',
    '<mailto:ann@example.com>',
  ])
    t.match(readImportedAddress(text), { address: 'ann@example.com', name: undefined }, text)
  t.match(readImportedAddress('Ann Lee <ann@example.com>'), { address: 'ann@example.com', name: 'Ann Lee' })
  t.match(readImportedAddress('mailto:ann%2Bnews@example.com'), { address: 'ann+news@example.com' })
  t.match(readImportedAddress('mailto:ann@example.com,bob@example.com'), { fault: /./ })
  t.match(readImportedAddress('mailto:%zz@example.com'), { address: '%zz@example.com' })
})
