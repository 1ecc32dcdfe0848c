import t from 'tap'
import {
  addressDomain,
  asciiDomain,
  normalizedAddress,
  parseAddress,
  readAddress,
} from '../../src/mail/address.js'

t.test('a plain address keeps its local part and gets its domain lower-cased', async t => {
  t.same(parseAddress('Ann.Lee+news@Example.COM'), {
    local: 'Ann.Lee+news',
    domain: 'example.com',
    address: 'Ann.Lee+news@example.com',
    needsSmtpUtf8: false,
  })
})

t.test('an internationalized domain is converted to A-labels', async t => {
  t.match(parseAddress('ann@BÜCHER.example'), { address: 'ann@xn--bcher-kva.example', needsSmtpUtf8: false })
  t.match(parseAddress('ann@例え。テスト'), { domain: 'xn--r8jz45g.xn--zckzah' })
  t.match(parseAddress('ann@XN--bcher-kva.example'), { domain: 'xn--bcher-kva.example' })
})

t.test('a non-ASCII local part needs SMTPUTF8', async t => {
  t.match(parseAddress('jörg@example.com'), { local: 'jörg', needsSmtpUtf8: true })
  t.match(parseAddress('"jörg"@example.com'), { local: '"jörg"', needsSmtpUtf8: true })
})

t.test('quoted local parts may contain what dot-atoms may not', async t => {
  t.match(parseAddress('"a@b,c;"@example.com'), { local: '"a@b,c;"', domain: 'example.com' })
  t.match(parseAddress('"a\\"b"@example.com'), { local: '"a\\"b"' })
})

const refused: Readonly<Record<string, string>> = {
  'nothing at all': '',
  'no @': 'ann.example.com',
  'no local part': '@example.com',
  'no domain': 'ann@',
  'two dots in a row': 'a..b@example.com',
  'a dot at the start': '.ann@example.com',
  'a dot at the end': 'ann.@example.com',
  'a second @': 'ann@bob@example.com',
  'a display name': 'Ann <ann@example.com>',
  'angle brackets': '<ann@example.com>',
  'a list': 'ann@example.com,bob@example.com',
  'a space': 'an n@example.com',
  'a space inside quotes': '"an n"@example.com',
  'a line break': 'ann@example.com\r\nBcc: eve@example.com',
  'a line break inside quotes': '"a\r\nb"@example.com',
  NUL: 'ann\0@example.com',
  DEL: 'ann\x7f@example.com',
  'a no-break space': 'ann\u00a0@example.com',
  'a zero-width space': 'ann\u200b@example.com',
  'a C1 control': 'ann\u0085@example.com',
  'half a surrogate pair': 'ann\ud800@example.com',
  'an unfinished quote': '"ann@example.com',
  'a bare quote': 'a"b@example.com',
  'a comment': 'ann(x)@example.com',
  'an address literal': 'user@[127.0.0.1]',
  'an IPv6 literal': 'user@[IPv6:::1]',
  'an IP address as domain': 'user@127.0.0.1',
  'an IP address in full-width digits': 'user@１２７.0.0.1',
  'a trailing dot': 'ann@example.com.',
  'an empty label': 'ann@example..com',
  'a hyphen at the start of a label': 'ann@-example.com',
  'a hyphen at the end of a label': 'ann@example-.com',
  'an underscore in the domain': 'ann@exam_ple.com',
  'an underscore beside a U-label': 'ann@exam_ple.bücher.example',
  'percent-encoding in the domain': 'ann@exam%70le.com',
  'a broken A-label': 'ann@xn--a.com',
  'a single label': 'root@localhost',
}
for (const [what, text] of Object.entries(refused))
  t.test(`an address with ${what} is rejected`, async t => {
    t.equal(parseAddress(text), undefined)
    t.match(readAddress(text), { fault: /\w/ })
  })

t.test('lengths are counted in octets, and one beyond the limit is rejected', async t => {
  t.ok(parseAddress(`${'a'.repeat(64)}@example.com`))
  t.match(readAddress(`${'a'.repeat(65)}@example.com`), { fault: /64 octets/ })
  t.ok(parseAddress(`${'ö'.repeat(32)}@example.com`))
  t.match(readAddress(`${'ö'.repeat(33)}@example.com`), { fault: /64 octets/ })
  t.ok(parseAddress(`a@${'b'.repeat(63)}.com`))
  t.notOk(parseAddress(`a@${'b'.repeat(64)}.com`))
  const longDomain = `${'b'.repeat(62)}.${'c'.repeat(62)}.${'d'.repeat(59)}.com`
  t.equal(parseAddress(`${'a'.repeat(64)}@${longDomain}`)?.address.length, 254)
  t.match(readAddress(`${'a'.repeat(64)}@x${longDomain}`), { fault: /254 octets/ })
  t.match(readAddress('a'.repeat(1_000_000)), { fault: /254 octets/ })
})

t.test('a domain that exceeds the limit as A-labels is rejected', async t => {
  const label = 'ü'.repeat(20)
  const text = `${'a'.repeat(60)}@${Array(7).fill(label).join('.')}.example`
  t.ok(text.length <= 254)
  t.notOk(parseAddress(text))
})

t.test('a single-label domain is accepted if allowed', async t => {
  t.match(parseAddress('root@LOCALHOST', { allowSingleLabel: true }), { domain: 'localhost' })
  t.equal(asciiDomain('intranet', { allowSingleLabel: true }), 'intranet')
  t.equal(asciiDomain('', { allowSingleLabel: true }), undefined)
})

t.test('two spellings of one mailbox compare as equal', async t => {
  t.equal(normalizedAddress('Ann@Example.COM'), 'ann@example.com')
  t.equal(normalizedAddress('"Ann"@example.com'), 'ann@example.com')
  t.equal(normalizedAddress('ann@BÜCHER.example'), 'ann@xn--bcher-kva.example')
  t.equal(normalizedAddress('JO\u0308RG@example.com'), normalizedAddress('j\u00f6rg@example.com'))
  t.equal(normalizedAddress('"a,b"@example.com'), '"a,b"@example.com')
  t.equal(normalizedAddress(' @Example.com '), '@example.com')
  t.equal(normalizedAddress('@BÜCHER.example.'), '@xn--bcher-kva.example')
  t.equal(normalizedAddress('@XN--bcher-kva.example'), '@xn--bcher-kva.example')
  t.equal(normalizedAddress('Ann@bücher。example。'), 'ann@xn--bcher-kva.example')
  t.equal(normalizedAddress('@'), '@')
})

t.test('the domain of an address follows its last @', async t => {
  t.equal(addressDomain('"a@b"@Example.com'), 'example.com')
  t.equal(addressDomain('nobody'), '')
})

/** As text pasted from web pages, spreadsheets and mail programs carries it. */
const SURROUNDINGS = [
  ' ',
  '\t',
  '\n',
  '\r\n',
  '\u00a0',
  '\u200b',
  '\u200e',
  '\u202a',
  '\u2060',
  '\u3000',
  '\ufeff',
]

t.test('white space around an address is no part of it, visible or not', async t => {
  for (const around of SURROUNDINGS)
    for (const text of [
      `${around}ann@example.com`,
      `ann@example.com${around}`,
      `${around}ann@example.com${around}`,
    ]) {
      t.match(readAddress(text), { address: 'ann@example.com' }, JSON.stringify(text))
      t.equal(normalizedAddress(text), 'ann@example.com', JSON.stringify(text))
    }
  t.equal(normalizedAddress('\u00a0@Example.com\u200b'), '@example.com')
})

t.test('a control character is rejected even at the end of an address', async t => {
  for (const control of ['\0', '\x07', '\x1b', '\x7f', '\u0085'])
    t.match(
      readAddress(`ann@example.com${control}`),
      { fault: /control characters/ },
      JSON.stringify(control),
    )
})
