/** Prometheus's own checks of the metrics and alert rules. */
import { spawnSync } from 'node:child_process'
import t from 'tap'
import { initialise } from '../support/program/process.js'

/** @param input its standard input */
function promtool(args: readonly string[], input = '') {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' })
  return { status, out: `${stdout}${stderr}` }
}

t.test('promtool accepts the alert rules', t => {
  t.match(promtool(['check', 'rules', 'config/monitoring/alerts.yml']), {
    status: 0,
    out: /SUCCESS: \d\d rules found/,
  })
  t.end()
})

/** Advice that is not followed: people count a certificate's days, and quantiles of the event loop come as such from Node. */
const NOT_FOLLOWED = [
  'postroad_certificate_days_left use base unit "seconds" instead of "days"',
  'postroad_event_loop_delay_seconds non-summary metrics should not have "quantile" label',
]

t.test('promtool accepts the metrics of a server that has sent mail, without warnings', async t => {
  const postroad = await initialise(t, { env: { POSTROAD_MTA_CAPTURE: 'true' } })
  const server = await postroad.serve()
  const fields = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }
  t.match(await server.send(postroad.key, fields), { status: 200 })
  await server.logged('message delivered')
  const answer = await fetch(`${server.baseUrl}/metrics`)
  t.equal(answer.status, 200)
  const text = await answer.text()
  t.match(text, /^postroad_\w+/m)
  // Its status for a text that cannot be read is 1, for advice 3.
  const { status, out } = promtool(['check', 'metrics'], text)
  t.equal(status, 3)
  t.same([...new Set(out.split('\n').filter(Boolean))].sort(), NOT_FOLLOWED)
})
