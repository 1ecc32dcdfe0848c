import t from 'tap'
import { readControls, type RelayControls } from '../../../src/mail/relay/controls.js'
import { readRelayedHeader } from '../../../src/mail/relay/relayed-header.js'
import { utf8 } from '../../support/mime-corpus/build.js'

function controls(...lines: readonly string[]): RelayControls {
  const message = Buffer.from(['From: a@example.com', ...lines, '', 'body'].join('\r\n'), 'latin1')
  return readControls(readRelayedHeader(message))
}

t.test('mail without control fields has no controls', async t => {
  t.strictSame(controls('X-Mailer: x', 'X-Postroads: y'), { tags: [] })
})

t.test('tracking is selected by name', async t => {
  t.strictSame(controls('X-Postroad-Track: opens, Clicks').track, { opens: true, clicks: true })
  t.strictSame(controls('x-postroad-track: clicks').track, { opens: false, clicks: true })
  t.strictSame(controls('X-Postroad-Track: none').track, { opens: false, clicks: false })
  for (const value of ['', 'yes', 'none, opens', 'opens,', 'opens,clicks,opens'])
    t.throws(() => controls(`X-Postroad-Track: ${value}`), {
      code: 'validation_error',
      path: 'X-Postroad-Track',
    })
})

t.test('tags are given as lists or one per field, in any language', async t => {
  const { tags } = controls(
    'X-Postroad-Tag: welcome, spring',
    utf8('X-Postroad-Tag: Größe'),
    'X-Postroad-Tag: =?utf-8?q?=C3=BC?=,spring',
  )
  t.strictSame(tags, ['welcome', 'spring', 'Größe', 'ü'])
  t.throws(() => controls('X-Postroad-Tag: ,'), { path: 'X-Postroad-Tag', message: /is empty/ })
  t.throws(() => controls(`X-Postroad-Tag: ${'x'.repeat(101)}`), { message: /longer than 100/ })
  t.throws(() => controls('X-Postroad-Tag: =?utf-8?q?a=0Ab?='), { message: /control characters/ })
  const many = Array.from({ length: 21 }, (_, index) => String(index)).join()
  t.throws(() => controls(`X-Postroad-Tag: ${many}`), { message: /more than 20/ })
})

t.test('a template and its data are parsed, also folded and in UTF-8', async t => {
  const read = controls(
    'X-Postroad-Template: 018F3A5C-0000-7000-8000-00000000000A',
    utf8('X-Postroad-Data: {"name": "Jürgen",\r\n "items": [{"n": "[{\\""}]}'),
  )
  t.equal(read.templateId, '018f3a5c-0000-7000-8000-00000000000a')
  t.strictSame(read.mergeData, { name: 'Jürgen', items: [{ n: '[{"' }] })
  t.throws(() => controls('X-Postroad-Template: welcome'), {
    code: 'validation_error',
    path: 'X-Postroad-Template',
  })
  for (const value of ['', '{', '[]', 'null', '"x"', '{"a":1} x'])
    t.throws(() => controls(`X-Postroad-Data: ${value}`), {
      code: 'validation_error',
      path: 'X-Postroad-Data',
    })
  t.throws(() => controls(`X-Postroad-Data: {"a":"${'x'.repeat(33_000)}"}`), { message: /longer than 32768/ })
  const deep = `${'{"a":'.repeat(21)}1${'}'.repeat(21)}`
  t.throws(() => controls(`X-Postroad-Data: ${deep}`), { message: /more than 20 deep/ })
})

t.test('the footer is yes or no', async t => {
  t.equal(controls('X-Postroad-Footer: Yes').footer, true)
  t.equal(controls('X-Postroad-Footer: no').footer, false)
  t.throws(() => controls('X-Postroad-Footer: maybe'), {
    code: 'validation_error',
    path: 'X-Postroad-Footer',
  })
})

t.test('a misspelt or repeated control field is rejected', async t => {
  t.throws(() => controls('X-Postroad-Tags: a'), { code: 'validation_error', path: 'X-Postroad-Tags' })
  t.throws(() => controls('X-Postroad-Track: none', 'X-Postroad-Track: opens'), { message: /more than once/ })
})
