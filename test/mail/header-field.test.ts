import t from 'tap'
import { hasHeaderBreak, stripTags } from '../../src/mail/mime/write-header-field.js'
import { assertLinear } from '../support/count-steps.js'

t.test('every control character but TAB is found in a header value', async t => {
  for (let code = 0; code < 0x20; code++)
    t.equal(hasHeaderBreak(`a${String.fromCharCode(code)}b`), code !== 0x09, `U+${code.toString(16)}`)
  t.equal(hasHeaderBreak('a\x7fb'), true)
  t.equal(hasHeaderBreak('Grüße: 50 % & mehr \u{1f600}'), false)
})

const subjects: readonly (readonly [written: string, shown: string])[] = [
  ['<b>Hello</b> Ann', 'Hello Ann'],
  ['Hello<br/>Ann<BR>', 'HelloAnn'],
  ['<a href="https://example.com/?a=1">Sale</a> today', 'Sale today'],
  ['<!-- note -->Sale<!DOCTYPE html><?xml?>', 'Sale'],
  ['<script>alert(1)</script>', 'alert(1)'],
  ['a < b', 'a < b'],
  ['a < b and c > d', 'a < b and c > d'],
  ['I <3 you', 'I <3 you'],
  ['1<2 and 3>2', '1<2 and 3>2'],
  ['a > b', 'a > b'],
  ['Re: <ann@example.com>', 'Re: <ann@example.com>'],
  ['an open <b without end', 'an open <b without end'],
  ['<', '<'],
  ['<>', '<>'],
  ['</>', '</>'],
  ['fish &amp; chips', 'fish &amp; chips'],
]
for (const [written, shown] of subjects)
  t.test(`the subject ${written} is shown as ${shown}`, async t => {
    t.equal(stripTags(written), shown)
  })

t.test('removing a tag never forms another one', async t => {
  for (const text of ['<<b>b>x', '<b<i>>x', '<<<b>b>b>x', '<scr<script>ipt>x']) {
    const once = stripTags(text)
    t.equal(stripTags(once), once, text)
    t.notMatch(once, /<\/?[a-z][a-z0-9:-]*[\s/>]/i)
  }
})

t.test('brackets without end are kept, and take linear time', async t => {
  for (const open of ['<', '<b']) t.equal(stripTags(open.repeat(1_000)), open.repeat(1_000), open)
  assertLinear(t, count => stripTags('<b>'.repeat(count)), 1_000, '<b>')
  assertLinear(t, count => stripTags('< '.repeat(count) + '>'.repeat(count)), 1_000, '< ... >')
})
