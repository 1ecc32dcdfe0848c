/** Names: what is refused, and how text that may contain anything is shown on a terminal. */
import t from 'tap'
import { hasControls, readName, readOptionalName, visibleLine, visibleText } from '../../src/core/names.js'

const HOSTILE = ['\x1b[2J', '\x9b31m', '\x00', '\x07', '\r', '\n', '\t', '\x7f', '\u2028', '\u202e', '\u2066']

t.test('a name has no control characters and is not empty', t => {
  for (const control of HOSTILE) {
    t.ok(hasControls(`a${control}b`))
    t.throws(() => readName(`a${control}b`, 'label'), {
      code: 'validation_error',
      message: 'label must not contain control characters',
    })
    t.throws(() => readOptionalName(`a${control}`), { code: 'validation_error' })
  }
  for (const name of ['Zoë’s Shop', '株式会社', 'مرحبا \u200fabc', '👩‍👩‍👧', 'a/b [c] {d}'])
    t.equal(readName(` ${name} `), name)
  for (const name of ['', ' ', '\u00a0'])
    t.throws(() => readName(name), { code: 'validation_error', message: 'name must not be empty' })
  t.equal(readOptionalName(' '), '')
  t.end()
})

t.test('control characters are shown as escapes, which are valid in JSON too', t => {
  t.equal(visibleLine('a\x1b[31m\n\t\r\x9b\u202eb'), 'a\\u001b[31m\\n\\t\\r\\u009b\\u202eb')
  t.equal(visibleText('one\n\ttwo\r\nthree\rfour\x1b'), 'one\n\ttwo\r\nthree\\u000dfour\\u001b')
  const json = visibleText(JSON.stringify({ name: HOSTILE.join('') }, null, 2))
  t.notOk(hasControls(json.replaceAll('\n', '')))
  t.same(JSON.parse(json), { name: HOSTILE.join('') })
  t.equal(visibleText('plain'), 'plain')
  t.end()
})
