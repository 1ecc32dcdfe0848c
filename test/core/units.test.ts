/** Durations and sizes as an operator writes them. */
import t from 'tap'
import { formatDuration, formatSize, parseDuration, parseSize } from '../../src/core/units.js'

t.test('durations are parsed in every unit, combined, with fractions and spaces', async t => {
  const expected: Readonly<Record<string, number>> = {
    '0': 0,
    '250ms': 250,
    '90s': 90_000,
    '5m': 300_000,
    '1h30m': 5_400_000,
    '1h 30m': 5_400_000,
    '1.5h': 5_400_000,
    '3d': 259_200_000,
    '1w': 604_800_000,
  }
  for (const [text, ms] of Object.entries(expected)) t.equal(parseDuration(text), ms, text)
})

t.test('text without a unit, with a wrong unit or a sign, or empty, is not a duration', async t => {
  for (const text of ['', '5', '-5m', '5 minutes', 'm', '1.h', '5M', '1e3s', `${'9'.repeat(30)}d`])
    t.equal(parseDuration(text), undefined, text)
})

t.test('a formatted duration parses to the same value', async t => {
  t.equal(formatDuration(5_400_000), '1h30m')
  t.equal(formatDuration(0), '0')
  t.equal(formatDuration(90_061_001), '1d1h1m1s1ms')
  for (const ms of [0, 1, 999, 1_000, 59_999, 86_400_000, 604_800_000, 123_456_789])
    t.equal(parseDuration(formatDuration(ms)), ms)
})

t.test('sizes are powers of 1,024, in any case, and whole bytes', async t => {
  const expected: Readonly<Record<string, number>> = {
    '0B': 0,
    '10B': 10,
    '64KB': 65_536,
    '25MB': 26_214_400,
    '25 mb': 26_214_400,
    '1.5KB': 1_536,
    '0.1KB': 102,
    '2GB': 2_147_483_648,
  }
  for (const [text, bytes] of Object.entries(expected)) t.equal(parseSize(text), bytes, text)
})

t.test('a size without a unit or with an unknown one is invalid', async t => {
  for (const text of ['', '25', '25M', '25MiB', '-1KB', 'MB', '1TB'])
    t.equal(parseSize(text), undefined, text)
})

t.test('a formatted size parses to the same value', async t => {
  t.equal(formatSize(26_214_400), '25MB')
  for (const bytes of [0, 1, 1_023, 1_024, 1_025, 1_024 ** 2, 3 * 1_024 ** 3])
    t.equal(parseSize(formatSize(bytes)), bytes)
})
