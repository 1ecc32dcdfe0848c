/** A real asynchronous bounce: Postfix accepts a mail, fails to deliver it and sends a DSN to our return path. */
import t from 'tap'
import { openPostfix } from '../support/program/postfix.js'
import { initialise } from '../support/program/process.js'
import { unusedPort } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

t.test('a mail accepted and later bounced by Postfix is recorded, suppressed and marked bounced', async t => {
  const inboundPort = await unusedPort()
  const bouncesTo = { domain: 'bounce.mx.postroad.test', port: inboundPort }
  const port = await openPostfix(t, { domain: 'users.test', bouncesTo })
  const postroad = await initialise(t, {
    toml: `
      [inbound]
      greeting_delay = "0"
      [[mta.routes]]
      domain = "users.test"
      host = "127.0.0.1"
      port = ${port}
      tls = "none"`,
    env: { POSTROAD_INBOUND_LISTEN: `127.0.0.1:${inboundPort}` },
  })
  const server = await postroad.serve()
  const { key } = postroad
  const ask = async (path: string) => (await server.get(`/api/v1${path}`, { key })).body.data
  const sent = await server.post(
    '/api/v1/email/send',
    { to: 'nobody-here@users.test', from_email: 'app@sender.test', subject: 'Hello', text: 'Hello.' },
    { key },
  )
  const id = sent.body.data.results[0].message_id as string
  const [bounce] = await until('the bounce is recorded', async () => {
    const found = (await ask('/bounces')) as Record<string, unknown>[]
    return found.length > 0 ? found : undefined
  })
  t.match(bounce, {
    message_id: id,
    email: 'nobody-here@users.test',
    type: 'permanent',
    subtype: 'no_such_mailbox',
    cause: 'recipient',
    smtp_status: '5.1.1',
    diagnostic_code: /unknown user/,
  })
  t.match(await ask(`/email/${id}/status`), { status: 'bounced', bounce_type: 'permanent' })
  t.match(await ask('/suppressions'), [
    { email: 'nobody-here@users.test', reason: 'hard_bounce', scope: 'all', source_message_id: id },
  ])
  const [mail] = await postroad.json<Record<string, unknown>[]>('inbound', 'list')
  t.match(mail, { result: 'bounce' })
})
