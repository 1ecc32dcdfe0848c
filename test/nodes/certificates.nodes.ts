/** Certificates by ACME on two nodes: one orders, any of them answers the CA, and all of them show the certificate. */
import { once } from 'node:events'
import { connect as connectTls } from 'node:tls'
import t, { type Test } from 'tap'
import { acmeServer } from '../support/acme-server.js'
import { expireSign, openNodes, type Node } from '../support/program/nodes.js'
import { unusedPort } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

const NAMES = ['mx1.postroad.test', 'mx2.postroad.test']

/** @returns fingerprint, issuer and names of the certificate that the node shows */
async function shownBy(node: Node) {
  const line = node.log.find(({ event }) => event === 'server started')
  const port = Number(String(line?.['https']).split(':').at(-1))
  const socket = connectTls({ host: '127.0.0.1', port, servername: node.name, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { fingerprint256, issuer, subjectaltname } = socket.getPeerCertificate()
  socket.destroy()
  return { fingerprint: fingerprint256, issuer: issuer.CN, names: subjectaltname }
}

/** The CA reaches the second node alone, as through a load balancer. */
async function openWithCa(t: Test, challenge: 'http' | 'dns') {
  const port = await unusedPort()
  const ca = await acmeServer(t, { httpPort: () => port, now: () => Date.now(), retryAfter: 1 })
  const acme = {
    POSTROAD_TLS_ACME: 'true',
    POSTROAD_TLS_ACME_TERMS_AGREED: 'true',
    POSTROAD_TLS_ACME_DIRECTORY: ca.directory,
    POSTROAD_TLS_ACME_CHALLENGE: challenge,
    POSTROAD_HTTP_LISTEN_TLS: '127.0.0.1:0',
  }
  const nodes = await openNodes(t, [acme, { ...acme, POSTROAD_HTTP_REDIRECT_LISTEN: `127.0.0.1:${port}` }])
  return { ca, ...nodes }
}

t.test('the node without the jobs answers the challenges, and shows the certificate', async t => {
  const { ca, first, one, two } = await openWithCa(t, 'http')
  // Its first attempt, before the other node was there.
  await one.logged('certificate order failed')
  t.equal((await shownBy(two)).issuer, 'mx2.postroad.test', 'self-signed')
  two.signal('SIGHUP')
  await two.logged('configuration reloaded')
  t.match(await two.run('jobs', 'run', 'renew-certificate'), { status: 0 })
  t.match(await one.logged('certificate obtained'), { names: NAMES.join(', ') })
  await two.logged('certificate reloaded')
  const [ofOne, ofTwo] = [await shownBy(one), await shownBy(two)]
  t.match(ofTwo, { issuer: 'Scripted CA', names: NAMES.map(name => `DNS:${name}`).join(', ') })
  t.same(ofOne, ofTwo)
  t.match(
    ca.proofs.slice(-2),
    NAMES.map(name => new RegExp(`^http-01 ${name} \\S+\\.\\S+$`)),
  )
  t.same(first.sql('select token from acme_challenges'), [], 'nothing is left of the challenges')
  t.match(
    (await two.run('doctor')).out,
    /ok {4}certificate: for mx2\.postroad\.test, mx1\.postroad\.test, until/,
  )

  const ordered = () => ca.asked.filter(one => one === 'POST new-order').length
  const before = ordered()
  await one.end('SIGKILL')
  expireSign(first, one)
  await two.logged('background work taken over')
  await until(
    'the jobs to have run there',
    async () => (await two.run('jobs', 'run', 'renew-certificate')).status === 0,
  )
  const again: Node = { ...one, ...(await one.installation.serve()) }
  t.same(await shownBy(again), ofTwo, 'at once after a restart')
  t.equal(ordered(), before, 'no other is ordered')
})

t.test('a renewed certificate is shown by every node within seconds', async t => {
  const { ca, first, one, two } = await openWithCa(t, 'http')
  await one.logged('certificate order failed')
  const order = async () => {
    first.sql('update acme_accounts set next_attempt_at = 0, is_wanted = 1')
    t.match(await two.run('jobs', 'run', 'renew-certificate'), { status: 0 })
  }
  await order()
  await two.logged('certificate reloaded')
  const before = await shownBy(two)
  await order()
  await until('the other certificate', async () => (await shownBy(two)).fingerprint !== before.fingerprint)
  t.equal(ca.issued.length, 2)
  t.same(await shownBy(one), await shownBy(two))
})
