/** TXT records in zone files. */
import t from 'tap'
import { zoneLine } from '../../src/deliverability/domains/dns-records.js'

t.test('a short record is one string', async t => {
  t.equal(
    zoneLine({ name: '_dmarc.x.example', value: 'v=DMARC1; p="none"' }, 3_600),
    '_dmarc.x.example. 3600 IN TXT "v=DMARC1; p=\\"none\\""',
  )
})

t.test('a record over 255 octets is split, and joins to the original', async t => {
  const value = `v=DKIM1; k=rsa; p=${'A'.repeat(392)}`
  const line = zoneLine({ name: 's._domainkey.x.example', value }, 60)
  t.match(line, /^s\._domainkey\.x\.example\. 60 IN TXT \( "[^"]{255}" "[^"]+" \)$/)
  t.equal([...line.matchAll(/"([^"]*)"/g)].map(([, text]) => text).join(''), value)
})

t.test('non-printable octets are written as decimals', async t => {
  t.equal(zoneLine({ name: 'x', value: 'a\tü' }, 1), 'x. 1 IN TXT "a\\009\\195\\188"')
})
