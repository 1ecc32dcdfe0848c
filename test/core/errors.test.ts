/** The error table, as REST and SMTP clients see it. */
import t from 'tap'
import { AppError, describeError, ERRORS } from '../../src/core/errors.js'

t.test('every error has an HTTP error status and an SMTP reply whose codes agree', async t => {
  for (const [code, { status, smtp }] of Object.entries(ERRORS)) {
    const [reply, enhanced] = smtp
    t.ok(status >= 400 && status < 600, `${code}: ${status}`)
    t.match(enhanced, /^[45]\.\d\.\d+$/, `${code}: ${enhanced}`)
    t.equal(enhanced.charAt(0), String(reply).charAt(0), `${code}: ${reply} ${enhanced}`)
  }
})

t.test('temporary errors are 4xx over SMTP, so that clients retry', async t => {
  for (const code of ['rate_limited', 'limit_reached', 'unavailable', 'internal_error', 'conflict'] as const)
    t.match(String(ERRORS[code].smtp[0]), /^4/, code)
})

t.test('an error has a code, field, retry delay and cause', async t => {
  const cause = new Error('disk full')
  const error = new AppError('rate_limited', 'Too many requests', {
    path: 'to.3',
    retryAfterMs: 1_000,
    cause,
  })
  t.match(error, { name: 'AppError', code: 'rate_limited', path: 'to.3', retryAfterMs: 1_000, cause })
  t.ok(error instanceof Error)
})

t.test('omitted details are undefined, cause included', async t => {
  const error = new AppError('not_found', 'No such list')
  t.equal(error.path, undefined)
  t.equal(error.retryAfterMs, undefined)
  t.notOk('cause' in error)
})

t.test('any thrown value can be described', async t => {
  t.equal(describeError(new Error('disk full')), 'disk full')
  t.equal(describeError('plain text'), 'plain text')
  t.equal(describeError(undefined), 'undefined')
})
