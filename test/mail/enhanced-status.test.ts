/** Enhanced status codes as servers write them. */
import t from 'tap'
import { formatEnhancedStatus, readEnhancedStatus } from '../../src/mail/enhanced-status.js'

t.test('the code at the start of a reply is parsed', async t => {
  t.same(readEnhancedStatus('5.1.1 User unknown'), { class: 5, subject: 1, detail: 1 })
  t.same(readEnhancedStatus('4.7.500'), { class: 4, subject: 7, detail: 500 })
  t.same(readEnhancedStatus('4.16.55 [TS01] deferred'), { class: 4, subject: 16, detail: 55 })
  t.same(readEnhancedStatus(' 2.0.0 (ok)'), { class: 2, subject: 0, detail: 0 })
})

t.test('the first line with a code counts', async t => {
  t.same(readEnhancedStatus('mx.example says\r\n5.7.1 no\r\n5.1.1 never'), {
    class: 5,
    subject: 7,
    detail: 1,
  })
})

t.test('a code inside a sentence is ignored', async t => {
  t.equal(readEnhancedStatus('remote said: 550 5.1.1 User unknown'), undefined)
  t.equal(readEnhancedStatus('sorry, no mailbox here by that name. (#5.1.1)'), undefined)
})

t.test('addresses, versions and invalid classes are not codes', async t => {
  for (const text of ['5.1.1.4 is blocked', '3.1.1 what', '5.1 no', '5.1.1234', '15.1.1', ''])
    t.equal(readEnhancedStatus(text), undefined, text)
})

t.test('formatting reverses parsing', async t => {
  for (const code of ['2.0.0', '4.2.2', '5.7.26', '5.999.999']) {
    const status = readEnhancedStatus(code)
    t.equal(status && formatEnhancedStatus(status), code)
  }
})
