/**
 * What all screens of the console share, in a browser: notices above them, the navigation, the palette, and the way back to a list.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import t, { type Test } from 'tap'
import { once } from '../support/once.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { ALL_LOOKS, openBrowser, type Looking } from '../support/program/browser.js'
import { openConsole, WIDE, type ConsoleOptions } from '../support/program/console.js'
import { until } from '../support/until.js'

const CONTACTS = 250

/** Shared: two workspaces, of which one has contacts. */
const filledAppliance = once(async () => {
  const appliance = await openTestAppliance(t)
  const { key } = appliance
  await appliance.json('workspace', 'create', 'zz other')
  const contacts = Array.from({ length: CONTACTS }, (_, n) => ({
    email: `person${String(n).padStart(3, '0')}@recipient.example`,
  }))
  const post = async (path: string, body: object) => {
    const { status, body: answer } = await appliance.post(`/api/v1${path}`, body, { key })
    if (status >= 300) throw new Error(`${path}: ${JSON.stringify(answer)}`)
    return answer.data as { id: string }
  }
  await post('/contacts/batch', { contacts })
  const list = await post('/lists', { name: 'Spring readers' })
  await post('/templates', { name: 'Spring news', html: '<p>Hello</p>' })
  await post('/segments', {
    name: 'Spring fans',
    conditions: { match: 'all', rules: [{ field: 'email', operator: 'contains', value: '@' }] },
  })
  return { ...appliance, list: list.id }
})

async function open(t: Test, { looking = WIDE, ...options }: ConsoleOptions = {}) {
  const appliance = await filledAppliance()
  return { ...appliance, ...(await openConsole(t, appliance, { looking, ...options })) }
}

const sizeOf = ({ shape }: Looking) =>
  shape === 'wide' ? { width: 1_440, height: 900 } : { width: 390, height: 844 }

t.test('notices say that mail is captured, and which workspace is shown', async t => {
  for (const looking of ALL_LOOKS) {
    const { page, go, inspect } = await open(t, { looking })
    await page.setViewportSize(sizeOf(looking))
    await go('/contacts')
    await page.getByText('No mail leaves this server').waitFor()
    await page.getByText('This screen shows one workspace at a time, now default.').waitFor()
    await inspect('console-notices')
    await go('/domains')
    await page.getByText('No mail leaves this server').waitFor()
    t.equal(await page.getByText('This screen shows one workspace').count(), 0, 'it shows all of them')
    await go('/health')
    await page.getByText('No mail is sent: all of it is kept in the local inbox.').waitFor()
    await page.getByRole('button', { name: 'Run checks' }).waitFor()
    await inspect('console-health-captured')
  }
})

t.test('another workspace is chosen where one is shown', async t => {
  const { page, go } = await open(t)
  await go('/contacts')
  await page.getByLabel('Show another one').selectOption({ label: 'zz other' })
  await page.getByText('No contacts yet').waitFor()
  t.match(page.url(), /workspace=/)
  t.equal(await page.getByText('This screen shows one workspace').count(), 0, 'the menu says which')
})

t.test('on a screen of 900 pixels all of the navigation is to be seen', async t => {
  const { page, go, settled } = await open(t)
  await page.setViewportSize({ width: 1_440, height: 900 })
  await go('/')
  await settled()
  const [shown, needed] = await page
    .getByRole('navigation', { name: 'Main' })
    .evaluate(({ clientHeight, scrollHeight }) => [clientHeight, scrollHeight])
  t.ok((needed ?? 0) <= (shown ?? 0), `${needed} of ${shown}`)
})

t.test('Back returns to where a list was left', async t => {
  const { page, go, settled, workspaceId } = await open(t)
  await go(`/contacts?workspace=${workspaceId}`)
  await settled()
  await page.evaluate('scrollTo(0, 3500)')
  await until('the list to be scrolled', async () => (await page.evaluate<number>('scrollY')) > 3000)
  await settled()
  const before = await page.evaluate<number>('scrollY')
  t.ok(before > 3_000)
  const link = page.locator('tbody a.link').nth(20)
  const name = await link.innerText()
  await link.evaluate(one => (one as { click(): void }).click())
  await page.getByRole('heading', { level: 1, name }).waitFor()
  t.equal(await page.evaluate<number>('scrollY'), 0)
  await page.goBack()
  await page.getByRole('heading', { level: 1, name: 'Contacts' }).waitFor()
  await until(
    'the list to be where it was',
    async () => Math.abs((await page.evaluate<number>('scrollY')) - before) < 50,
  )
})

t.test('the palette finds lists, segments, templates and addresses', async t => {
  const { page, go, list, inspect, workspaceId } = await open(t)
  await go(`/?workspace=${workspaceId}`)
  await page.keyboard.press('Control+k')
  const words = page.getByRole('combobox', { name: 'Search or jump to…' })
  await words.fill('spring')
  for (const name of ['Lists: Spring readers', 'Segments: Spring fans', 'Templates: Spring news'])
    await page.getByRole('option', { name }).waitFor()
  await inspect('console-palette-records')
  await words.fill('person042@')
  await page.getByRole('option', { name: 'Contacts: person042@recipient.example' }).waitFor()
  await words.fill('spring readers')
  await page.getByRole('option', { name: 'Lists: Spring readers' }).click()
  await page.getByRole('heading', { level: 1, name: 'Spring readers' }).waitFor()
  t.match(page.url(), new RegExp(`/lists/${list}`))
})

t.test('all contacts that match are selected, also those that are not loaded', async t => {
  const { page, go, inspect, workspaceId } = await open(t)
  await go(`/contacts?workspace=${workspaceId}`)
  await page.getByRole('checkbox', { name: 'Select all' }).check()
  await page.getByText('100 selected').waitFor()
  await page.getByRole('button', { name: 'Select all 250 that match' }).click()
  await page.getByText('250 selected').waitFor()
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Delete 250 contacts?' })
  await dialog.getByRole('button', { name: 'Delete 250 contacts' }).waitFor()
  await inspect('console-select-all')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
})

t.test('the sign-in page leaves no fault in the browser’s log', async t => {
  const { baseUrl } = await filledAppliance()
  const { page, complaints } = await (await openBrowser(t))(WIDE)
  await page.goto(`${baseUrl}/console/`)
  await page.getByLabel('Password').waitFor()
  t.same(complaints, [])
})
