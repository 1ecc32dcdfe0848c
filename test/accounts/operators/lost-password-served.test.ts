/** Links that people ask for themselves because they lost their password: who gets one, how many, and what nobody learns. */
import t, { type Test } from 'tap'
import { mailedLink, mailedLinks } from '../../support/program/account-mail.js'
import { openTestAppliance } from '../../support/program/appliance.js'
import { openBrowser, signedIn } from '../../support/program/operators.js'
import { until } from '../../support/until.js'

const BOB = 'bob@example.com'

/** Bob has proved his address and set a password. */
async function open(t: Test) {
  const appliance = await openTestAppliance(t, { env: { POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0' } })
  const owner = await signedIn(appliance)
  await owner.ask('POST', '/operators', { email: BOB, role: 'viewer', send_mail: true })
  const bob = openBrowser(appliance)
  await bob.ask('POST', '/session/link', { token: await mailedLink(appliance, BOB) })
  await bob.ask('PUT', '/me/password', { password: 'correct horse battery' })
  const somebody = openBrowser(appliance)
  return { appliance, owner, ask: (email: string) => somebody.ask('POST', '/session/lost', { email }) }
}

t.test(
  'who lost the password gets a link by mail, which signs in once; the old password works until another is set',
  async t => {
    const { appliance, owner, ask } = await open(t)
    t.match(await ask(' Bob@Example.com '), { status: 200, body: { data: { success: true } } })
    const token = await mailedLink(appliance, BOB, 2)
    t.match((await owner.ask('GET', '/account-mail')).body.data[0], {
      kind: 'lost',
      to: BOB,
      state: 'delivered',
    })
    const again = openBrowser(appliance)
    t.match(await again.ask('POST', '/session', { email: BOB, password: 'correct horse battery' }), {
      status: 200,
    })
    const bob = openBrowser(appliance)
    t.match(await bob.ask('POST', '/session/link/preview', { token }), {
      body: { data: { kind: 'reset', email: BOB } },
    })
    t.match(await bob.ask('POST', '/session/link', { token }), { status: 200 })
    t.match(await bob.ask('PUT', '/me/password', { password: 'another horse battery' }), { status: 200 })
    t.match(await openBrowser(appliance).ask('POST', '/session/link', { token }), { status: 401 })
    t.match((await owner.ask('GET', '/activity?action=operator.link_requested')).body.data, [
      { subject: BOB, actor: { type: 'system' } },
    ])
  },
)

t.test('an unknown address and one that nobody proved get no link, and the same answer', async t => {
  const { appliance, owner, ask } = await open(t)
  const known = await ask(BOB)
  for (const email of ['nobody@example.com', owner.email, 'no address'])
    t.same((await ask(email)).body, known.body, email)
  await mailedLink(appliance, BOB, 2)
  t.same(mailedLinks(appliance, owner.email), [])
  t.equal((await owner.ask('GET', '/account-mail')).body.data.length, 2)
  t.match(await ask(''), { status: 400 })
})

t.test('a mailbox gets three links an hour, and one address asks ten times', async t => {
  const { appliance, ask } = await open(t)
  for (let asked = 1; asked <= 10; asked += 1) t.match(await ask(BOB), { status: 200 })
  t.match(await ask(BOB), { status: 429, body: { error: { code: 'rate_limited' } } })
  await mailedLink(appliance, BOB, 4)
  await appliance.clock.advance(3_600_000)
  t.match(await ask(BOB), { status: 200 })
  await mailedLink(appliance, BOB, 5)
  t.equal(mailedLinks(appliance, BOB).length, 5, 'an invitation, three, and one an hour later')
})

t.test('another site cannot ask for links in the name of its visitors', async t => {
  const { appliance } = await open(t)
  const foreign = openBrowser(appliance, 'https://elsewhere.example')
  t.match(await foreign.ask('POST', '/session/lost', { email: BOB }), { status: 403 })
  await until('nothing else to be sent', () => mailedLinks(appliance, BOB).length === 1)
})
