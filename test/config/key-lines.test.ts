/** A fault names the line of its key. */
import t from 'tap'
import { lineOfKey } from '../../src/config/faults.js'

const TEXT = `hostname = "mail.example.com"
motto = """
hostname = "no key"
[http]
"""

[http]  # the API
listen = ["127.0.0.1:8025"]
[mta]
retry.first = "5m"
[[mta.routes]]
domain = "one.example"
[[mta.routes]]
domain = "two.example"
host = "nowhere"
["http".  "more"]
'odd' = 1
`

t.test('keys are found in sections, lists of tables and dotted names, not inside strings', async t => {
  t.equal(lineOfKey(TEXT, 'hostname'), 1)
  t.equal(lineOfKey(TEXT, 'http.listen'), 8)
  t.equal(lineOfKey(TEXT, 'http.listen.0'), 8, 'an entry of a list')
  t.equal(lineOfKey(TEXT, 'mta.retry.first'), 10)
  t.equal(lineOfKey(TEXT, 'mta.routes.0.domain'), 12)
  t.equal(lineOfKey(TEXT, 'mta.routes.1.host'), 15)
  t.equal(lineOfKey(TEXT, 'mta.routes.0.host'), 11, 'what is missing is missed in its table')
  t.equal(lineOfKey(TEXT, 'http.more.odd'), 17)
  t.equal(lineOfKey(TEXT, 'nothing.such'), undefined)
})
