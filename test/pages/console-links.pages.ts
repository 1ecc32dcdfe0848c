/** One-time links in the console: nobody is signed in by opening a page, and whoever opens one sees whose account it is. */
import t from 'tap'
import { mailedLink } from '../support/program/account-mail.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { axeFindings, openBrowser, type Looking } from '../support/program/browser.js'
import { openConsole } from '../support/program/console.js'
import { addOperator, openBrowser as openClient } from '../support/program/operators.js'

const WIDE: Looking = { shape: 'wide', scheme: 'light' }
const PASSWORD = 'four blue horses at dawn'
const OPEN = { env: { POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0' } }

t.test('a planted link signs nobody in: it shows whose account it opens, and waits for a click', async t => {
  const appliance = await openTestAppliance(t, OPEN)
  const { email: eve, link } = await addOperator(appliance, { email: 'eve@postroad.test' })
  const { page, email, go, inspect } = await openConsole(t, appliance)
  await go(`/#/link/${link}`)
  await page.getByText(eve).waitFor()
  await inspect('planted-link')
  t.equal((await page.request.get(`${appliance.baseUrl}/api/admin/v1/me`)).status(), 200)
  await page.getByRole('button', { name: `Stay signed in as ${email}` }).click()
  await page.getByRole('navigation').first().waitFor()
  const me = (await (await page.request.get(`${appliance.baseUrl}/api/admin/v1/me`)).json()) as {
    data: { email: string }
  }
  t.equal(me.data.email, email, 'still themselves')

  t.comment('in a console that is open, the same')
  await page.evaluate(`location.hash = '#/link/${link}'`)
  await page.getByText(eve).waitFor()
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { name: 'Set a password' }).waitFor()

  t.comment('used up')
  await go(`/#/link/${link}`)
  await page.reload()
  await page.getByText('A link works only once').waitFor()
})

t.test('an owner of a workspace invites, and a person with an account signs in and accepts', async t => {
  const appliance = await openTestAppliance(t, OPEN)
  const { id: shop } = await appliance.json<{ id: string }>('workspace', 'create', 'shop')
  const bob = 'bob@example.com'
  const { link } = await addOperator(appliance, {
    email: bob,
    role: 'viewer',
    workspace: appliance.workspaceId,
  })
  const first = openClient(appliance)
  await first.ask('POST', '/session/link', { token: link })
  await first.ask('PUT', '/me/password', { password: PASSWORD })

  const { page, inspect, go } = await openConsole(t, appliance, {
    account: { role: 'owner', workspace: shop },
  })
  await go('/operators')
  await page.getByRole('button', { name: 'Invite' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'Invite' })
  await dialog.getByLabel('Email address').fill(bob)
  t.equal(await dialog.getByLabel('Mail the link').count(), 0, 'no link is handed out')
  await dialog.getByRole('button', { name: 'Invite' }).click()
  await page.getByText(`${bob} was invited`).waitFor()
  await page.getByText('Invited', { exact: true }).waitFor()
  await page.getByRole('link', { name: bob }).click()
  await page.getByRole('button', { name: 'Withdraw invitation' }).waitFor()
  await inspect('invited-operator')

  const { page: theirs, complaints } = await (await openBrowser(t))(WIDE)
  await theirs.goto(`${appliance.baseUrl}/console/#/link/${await mailedLink(appliance, bob)}`)
  await theirs.getByText('You are invited to the workspace shop. Your role: Viewer.').waitFor()
  await theirs.getByText(bob).waitFor()
  t.same(await axeFindings(theirs), [])
  await theirs.getByLabel('Password').fill(PASSWORD)
  await theirs.getByRole('button', { name: 'Sign in', exact: true }).click()
  await theirs.getByRole('button', { name: 'Accept the invitation' }).click()
  await theirs.getByText('Invitation accepted.').waitFor()
  t.same(
    complaints.filter(text => !/401/.test(text)),
    [],
  )
  await go('/operators')
  await page.getByText('Invited', { exact: true }).waitFor({ state: 'detached' })
})

t.test('whoever widens a role is told what was removed, and sees the mail of the appliance', async t => {
  const appliance = await openTestAppliance(t, OPEN)
  const { id, email, link } = await addOperator(appliance, {
    role: 'viewer',
    workspace: appliance.workspaceId,
  })
  const maker = openClient(appliance)
  await maker.ask('POST', '/session/link', { token: link })
  const { page, inspect, go } = await openConsole(t, appliance)
  await go(`/operators/${id}`)
  await page.getByRole('combobox', { name: /Role/ }).first().selectOption('owner')
  await page.getByText(`Nobody had proved the address ${email}`).waitFor()
  await page.getByRole('button', { name: 'Reset sign-in' }).first().click()
  await page
    .getByRole('dialog', { name: 'Reset sign-in' })
    .getByRole('button', { name: 'Reset sign-in' })
    .click()
  await page.getByText(`A one-time link was sent to ${email}`).waitFor()
  await mailedLink(appliance, email)
  await go('/operators')
  await page.getByRole('heading', { name: 'Invitations and resets by mail' }).waitFor()
  await page.getByText('Delivered', { exact: true }).waitFor()
  await inspect('operators-mail')
})
