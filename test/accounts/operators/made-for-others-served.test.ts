/** Accounts that somebody made for somebody else: what their maker keeps, and what workspaces learn of each other's operators. */
import t, { type Test } from 'tap'
import { mailedLink, mailedLinks } from '../../support/program/account-mail.js'
import { openTestAppliance, type TestAppliance } from '../../support/program/appliance.js'
import { addOperator, openBrowser, signedIn, type Browser } from '../../support/program/operators.js'
import { until } from '../../support/until.js'

const PASSWORD = 'correct horse battery'
const OPEN = { env: { POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0' } }

/** Ann owns the workspace shop, and Olga all of them. */
async function town(t: Test) {
  const appliance = await openTestAppliance(t, OPEN)
  const make = async (name: string) => (await appliance.json<{ id: string }>('workspace', 'create', name)).id
  const [shop, other] = [await make('shop'), await make('other')]
  const olga = await signedIn(appliance, { email: 'olga@postroad.test' })
  const ann = await signedIn(appliance, { email: 'ann@postroad.test', role: 'owner', workspace: shop })
  return { appliance, shop, other, olga, ann }
}

const follow = (browser: Browser, token: string) => browser.ask('POST', '/session/link', { token })
const isSignedIn = async (browser: Browser) => (await browser.ask('GET', '/me')).status === 200

/** Signs in by a mailed link and sets a password. */
async function settle(appliance: TestAppliance, email: string): Promise<Browser> {
  const browser = openBrowser(appliance)
  t.equal((await follow(browser, await mailedLink(appliance, email))).status, 200)
  t.equal((await browser.ask('PUT', '/me/password', { password: PASSWORD })).status, 200)
  return browser
}

t.test('the owner of a workspace gets no link to an account that he makes for somebody', async t => {
  const { appliance, shop, olga, ann } = await town(t)
  const wanted = { email: 'bob@example.com', name: 'Bob', role: 'viewer', workspace_id: shop }
  t.match(await ann.ask('POST', '/operators', { ...wanted, send_mail: false }), { status: 403 })
  const invited = await ann.ask('POST', '/operators', wanted)
  t.match(invited, {
    status: 201,
    body: {
      data: {
        email: 'bob@example.com',
        roles: [{ workspace_id: shop, role: 'viewer' }],
        invitation: { expires_at: String },
        link: null,
        link_token: null,
      },
    },
  })
  const { id } = invited.body.data as { id: string }
  for (const path of ['', '/bob@example.com', `/${id}`])
    t.equal((await ann.ask('POST', `/operators${path}/reset`)).status === 200, false, path)
  const token = await mailedLink(appliance, 'bob@example.com')
  await until('the outcome of the invitation', async () => {
    const { body } = await ann.ask('GET', `/operators/${id}`)
    return (body.data as { invitation: { mail: string } }).invitation.mail === 'delivered'
  })
  t.match(await openBrowser(appliance).ask('POST', '/session/link/preview', { token }), {
    body: {
      data: {
        kind: 'join',
        email: 'bob@example.com',
        workspace: 'shop',
        role: 'viewer',
        needs_sign_in: false,
      },
    },
  })
  const bob = await settle(appliance, 'bob@example.com')
  t.match((await bob.ask('GET', '/me')).body.data, { name: 'Bob', roles: [{ workspace_id: shop }] })
  t.equal((await follow(openBrowser(appliance), token)).status, 401, 'it works once')

  // The mailbox has proved the address, so a wider role takes nothing away.
  const bobs = (await olga.ask('GET', '/operators/bob@example.com')).body.data as { id: string }
  t.match(await olga.ask('PUT', `/operators/${bobs.id}/roles/all`, { role: 'operator' }), {
    body: { data: { credentials_removed: false, address_proved: true } },
  })
  t.ok(await isSignedIn(bob))
  const { out } = await appliance.run('activity', 'list', '--workspace', shop)
  t.match(out, 'operator.invited')
})

// The maker keeps password, token, passkey and session until somebody trusts the account with more.
t.test(
  'a wider role removes everything that was set up before the address was proved, and says so',
  async t => {
    const { appliance, shop, other, olga } = await town(t)
    const { id, email, link } = await addOperator(appliance, { role: 'viewer', workspace: shop })
    const maker = openBrowser(appliance)
    await follow(maker, link)
    await maker.ask('PUT', '/me/password', { password: PASSWORD })
    const key = (await maker.ask('POST', '/me/tokens', { name: 'kept' })).body.data.token as string
    t.match(await olga.ask('PUT', `/operators/${id}/roles/${shop}`, { role: 'viewer' }), {
      body: { data: { credentials_removed: false } },
    })
    t.ok(await isSignedIn(maker), 'the same role changes nothing')

    t.match(await olga.ask('PUT', `/operators/${id}/roles/${other}`, { role: 'viewer' }), {
      status: 200,
      body: { data: { credentials_removed: true, address_proved: false, has_password: false } },
    })
    t.notOk(await isSignedIn(maker))
    t.equal((await appliance.get('/api/admin/v1/me', { key })).status, 401)
    t.equal((await maker.ask('POST', '/session', { email, password: PASSWORD })).status, 401)
    const { body } = await olga.ask('GET', '/activity?action=operator.credentials_removed')
    t.match(body.data, [{ subject: email, details: { password: true, tokens: 1, sessions: 1 } }])

    await olga.ask('POST', `/operators/${id}/reset`, { send_mail: true })
    const holder = await settle(appliance, email)
    t.match(await olga.ask('PUT', `/operators/${id}/roles/all`, { role: 'owner' }), {
      body: { data: { credentials_removed: false } },
    })
    t.ok(await isSignedIn(holder))

    // A link that is handed over unproves it.
    const handed = (await olga.ask('POST', `/operators/${id}/reset`)).body.data.link_token as string
    await follow(maker, handed)
    t.match((await olga.ask('GET', `/operators/${id}`)).body.data, { address_proved: false })
  },
)

t.test('a link that was handed over and not opened yet does not survive a wider role', async t => {
  const { appliance, shop, olga } = await town(t)
  const { id, link } = await addOperator(appliance, { role: 'viewer', workspace: shop })
  t.match(await olga.ask('PUT', `/operators/${id}/roles/all`, { role: 'owner' }), {
    body: { data: { credentials_removed: true } },
  })
  t.equal((await follow(openBrowser(appliance), link)).status, 401)
})

t.test(
  'whoever has an account takes up an invitation by signing in, and the inviter learns nothing before',
  async t => {
    const { appliance, shop, other, olga, ann } = await town(t)
    const foreign = await addOperator(appliance, {
      email: 'known@example.com',
      role: 'viewer',
      workspace: other,
    })
    const idle = await addOperator(appliance, { email: 'idle@example.com', role: 'viewer', workspace: other })
    await olga.ask('DELETE', `/operators/${idle.id}/roles/${other}`)
    const holder = openBrowser(appliance)
    await follow(holder, foreign.link)
    await holder.ask('PUT', '/me/password', { password: PASSWORD })

    const shapes = []
    for (const email of [
      'known@example.com',
      'idle@example.com',
      'nobody@example.com',
      'olga@postroad.test',
    ]) {
      const { status, body } = await ann.ask('POST', '/operators', {
        email,
        role: 'viewer',
        workspace_id: shop,
      })
      const { id, ...shown } = body.data as { id: string; email: string }
      const answers = []
      for (const [method, path, sent] of [
        ['GET', `/operators/${email}`, undefined],
        ['PATCH', `/operators/${email}`, { name: 'x' }],
        ['PUT', `/operators/${email}/roles/${shop}`, { role: 'owner' }],
        ['DELETE', `/operators/${email}/roles/${shop}`, undefined],
        ['POST', `/operators/${email}/reset`, {}],
        ['DELETE', `/operators/${email}`, undefined],
        ['GET', `/operators/${email}/sessions`, undefined],
        ['POST', `/operators/${id}/reset`, {}],
        ['PUT', `/operators/${id}/roles/${shop}`, { role: 'owner' }],
      ] as const) {
        const { status: answered, body: error } = await ann.ask(method, path, sent)
        answers.push([
          answered,
          error.error.code,
          String(error.error.message).replace(email, 'X').replace(id, 'ID'),
        ])
      }
      const seen = JSON.stringify({ ...shown, email: 'X' })
        .replace(/"\d{4}-[^"]*"/g, 'TIME')
        .replace(/"mail":"\w+"/, 'MAIL')
      shapes.push(JSON.stringify([status, seen, answers]))
      t.notMatch(JSON.stringify(answers), foreign.id)
    }
    t.equal(
      new Set(shapes).size,
      1,
      'the same for an account elsewhere, one without roles, none, and one of the appliance',
    )
    const listed = (await ann.ask('GET', '/operators')).body.data as { id: string; email: string }[]
    t.same(listed.map(({ email }) => email).sort(), [
      'ann@postroad.test',
      'idle@example.com',
      'known@example.com',
      'nobody@example.com',
      'olga@postroad.test',
    ])
    t.notOk(listed.some(({ id }) => [foreign.id, idle.id, olga.id].includes(id)))
    for (const { id } of [foreign, idle, olga])
      t.equal((await ann.ask('PUT', `/operators/${id}/roles/${shop}`, { role: 'viewer' })).status, 404)

    const token = await mailedLink(appliance, 'known@example.com')
    t.match(await openBrowser(appliance).ask('POST', '/session/link/preview', { token }), {
      body: { data: { needs_sign_in: true, email: 'known@example.com' } },
    })
    t.equal((await follow(openBrowser(appliance), token)).status, 409, 'the mailbox alone does not sign in')
    t.equal((await ann.ask('POST', '/me/invitations', { token })).status, 403, 'nor is it for others')
    t.match(await holder.ask('POST', '/me/invitations', { token }), {
      status: 200,
      body: { data: { credentials_removed: true } },
    })
    t.ok(await isSignedIn(holder), 'the session stays')
    t.match((await ann.ask('GET', '/operators/known@example.com')).body.data, {
      id: foreign.id,
      roles: [{ workspace_id: shop, role: 'viewer' }],
      address_proved: true,
    })
    t.equal((await holder.ask('POST', '/me/invitations', { token })).status, 404, 'once')
  },
)

t.test(
  'an invitation ends when it is withdrawn, or when its inviter may not give the role any more',
  async t => {
    const { appliance, shop, olga, ann } = await town(t)
    const invite = async (email: string) => {
      const body = { email, role: 'viewer', workspace_id: shop }
      return ((await ann.ask('POST', '/operators', body)).body.data as { id: string }).id
    }
    const withdrawn = await invite('bob@example.com')
    const token = await mailedLink(appliance, 'bob@example.com')
    t.equal((await ann.ask('DELETE', `/operators/${withdrawn}`)).status, 200)
    t.equal((await follow(openBrowser(appliance), token)).status, 401)

    await invite('carl@example.com')
    const later = await mailedLink(appliance, 'carl@example.com')
    await invite('carl@example.com')
    const latest = await mailedLink(appliance, 'carl@example.com', 2)
    t.equal((await follow(openBrowser(appliance), later)).status, 401, 'a second mail replaces the first')
    t.equal(mailedLinks(appliance, 'carl@example.com').length, 2)
    await olga.ask('PUT', `/operators/${ann.id}/roles/${shop}`, { role: 'viewer' })
    t.match(await follow(openBrowser(appliance), latest), {
      status: 401,
      body: { error: { message: /no longer valid/ } },
    })
  },
)

t.test('the owner of a workspace does not widen an account that he could not reset', async t => {
  const { appliance, shop, other, olga, ann } = await town(t)
  const both = await addOperator(appliance, { role: 'viewer', workspace: shop })
  await olga.ask('PUT', `/operators/${both.id}/roles/${other}`, { role: 'viewer' })
  const again = (await olga.ask('POST', `/operators/${both.id}/reset`)).body.data.link_token as string
  const holder = openBrowser(appliance)
  await follow(holder, again)
  t.equal((await ann.ask('PUT', `/operators/${both.id}/roles/${shop}`, { role: 'operator' })).status, 403)
  t.ok(await isSignedIn(holder), 'so nobody else is signed out by him')
})
