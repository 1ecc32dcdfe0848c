/** Names that an installation has had: what was published under them still arrives. Costs 4 s. */
import t, { type Test } from 'tap'
import { initialise, routeTo } from '../support/program/process.js'
import { openSink, unusedPort } from '../support/smtp/sink.js'
import { SmtpClient } from '../support/smtp/smtp-service.js'

/** A conversation with port 25 of the installation. */
async function callPort(t: Test, port: number) {
  const client = await SmtpClient.connect(port)
  t.teardown(() => client.cut())
  await client.readLine()
  await client.ehlo()
  return async (line: string): Promise<string> => {
    client.send(`${line}\r\n`)
    return (await client.readLine()) ?? '(closed)'
  }
}

/** As `mx.postroad.test` it sends a mail; then it is given another name. */
async function renamed(t: Test) {
  const sink = await openSink(t)
  const port = await unusedPort()
  const postroad = await initialise(t, {
    env: { ...routeTo(sink.port), POSTROAD_INBOUND_LISTEN: `127.0.0.1:${port}` },
  })
  const before = await postroad.serve()
  const sent = await before.send(postroad.key, {
    ...{ to: ['ann@one.test'], from_email: 'notify@mail.postroad.test' },
    ...{ subject: 'Hello', text: 'Hello' },
  })
  t.equal(sent.status, 200)
  await sink.arrivedOnce(1)
  await before.end('SIGTERM')
  Object.assign(postroad.environment, { POSTROAD_HOSTNAME: 'new.postroad.test' })
  return { postroad, port, sink }
}

t.test('after a change of the hostname, reports and bounces to the former name are accepted', async t => {
  const { postroad, port, sink } = await renamed(t)
  await postroad.serve()
  const say = await callPort(t, port)
  const returnPath = sink.accepted[0]?.sender ?? ''
  t.match(returnPath, /@bounce\.mx\.postroad\.test$/)
  t.match(await say('MAIL FROM:<>'), /^250 /)
  for (const local of ['dmarc', 'tlsrpt', 'fbl'])
    for (const domain of ['MX.postroad.test', 'new.postroad.test'])
      t.match(await say(`RCPT TO:<${local}@${domain}>`), /^250 /, `${local}@${domain}`)
  t.match(await say(`RCPT TO:<${returnPath}>`), /^250 /, 'mail sent before bounces after the change')
  t.match(await say('RCPT TO:<postmaster@new.postroad.test>'), /^250 /)
})

t.test('of a former name nothing else is accepted: it may be that of another mail server now', async t => {
  const { postroad, port } = await renamed(t)
  await postroad.serve()
  const say = await callPort(t, port)
  t.match(await say('MAIL FROM:<>'), /^250 /)
  for (const local of ['postmaster', 'abuse', 'ann'])
    t.equal(await say(`RCPT TO:<${local}@mx.postroad.test>`), '550 5.7.1 relaying denied', local)
  t.equal(await say('RCPT TO:<dmarc@never.postroad.test>'), '550 5.7.1 relaying denied')
})

t.test('the address of DMARC records is the same whatever the hostname is, if it is configured', async t => {
  const postroad = await initialise(t)
  const owner = ['--workspace', postroad.workspaceId]
  const addressFor = async (domain: string) =>
    (await postroad.json<{ report_address: string }>('domain', 'add', domain, ...owner)).report_address
  t.equal(await addressFor('one.example'), 'dmarc@mx.postroad.test')
  Object.assign(postroad.environment, { POSTROAD_INBOUND_REPORT_DOMAIN: 'Reports.postroad.test' })
  for (const hostname of ['mx1.postroad.test', 'mx2.postroad.test']) {
    Object.assign(postroad.environment, { POSTROAD_HOSTNAME: hostname })
    t.equal(await addressFor(`of-${hostname}`), 'dmarc@reports.postroad.test')
  }
})
