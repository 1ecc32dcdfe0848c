/**
 * The first minutes: a one-time link, a password, and the checklist that leads to a first campaign.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import t from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { axeFindings, isTooWide, openBrowser } from '../support/program/browser.js'
import { WIDE } from '../support/program/console.js'
import { addOperator } from '../support/program/operators.js'

const TICK_MS = 250

t.test('a first sign-in leads to the checklist, whose steps are ticked while one looks', async t => {
  const appliance = await openTestAppliance(t)
  const ticking = setInterval(() => void appliance.clock.advance(1_000), TICK_MS)
  t.teardown(() => clearInterval(ticking))
  const { link } = await addOperator(appliance)
  const see = await openBrowser(t)
  const { page, complaints } = await see(WIDE)
  await page.goto(`${appliance.baseUrl}/console/#/link/${link}`)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByLabel('New password').fill('correct horse battery')
  await page.getByRole('button', { name: 'Set password' }).click()

  const list = page.getByRole('region', { name: 'Setting up' })
  await list.getByText('0 of 5 steps are done.').waitFor()
  await list.getByText('Marketing mail has to say who sends it').waitFor()
  t.same(await axeFindings(page), [])

  await list.getByText('A first email').click()
  await list.getByLabel('Language').selectOption('Python')
  await list.getByText('import os').waitFor()
  const key = await appliance.makeKey()
  const mail = { to: 'ann@one.test', from_email: 'me@shop.test', subject: 'Hello', text: 'Hello.' }
  await appliance.post('/api/v1/email/send', mail, { key })
  await list.getByText('1 of 5 steps are done.').waitFor()
  await list.getByRole('link', { name: 'Show the email' }).waitFor()

  await page.setViewportSize({ width: 390, height: 844 })
  t.notOk(await isTooWide(page))
  await list.getByRole('button', { name: 'Dismiss' }).click()
  await list.waitFor({ state: 'hidden' })
  await page.reload()
  await page.getByRole('heading', { name: 'In the last minute' }).waitFor()
  t.equal(await list.count(), 0, 'it stays away')

  await page.goto(`${appliance.baseUrl}/console/workspaces/${appliance.workspaceId}`)
  await page.getByRole('button', { name: 'Show the setup checklist' }).click()
  await list.getByText('1 of 5 steps are done.').waitFor()
  t.same(
    complaints.filter(text => !/status of 401/.test(text)),
    [],
  )
})
