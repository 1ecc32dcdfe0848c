/** Two operators at work at the same time: each sees what the other changes, and loses neither place nor typed words. */
import t, { type Test } from 'tap'
import type { Page } from 'playwright-core'
import { openTestAppliance } from '../support/program/appliance.js'
import { axeFindings } from '../support/program/browser.js'
import { openConsole } from '../support/program/console.js'
import { until, untilLater } from '../support/until.js'

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  return {
    ...postroad,
    /** Signs in an operator. */
    enter: () => openConsole(t, postroad),
    /** The clock of the appliance stands still otherwise. */
    shows: (what: string, look: () => Promise<boolean>) => untilLater(postroad.clock, what, look),
  }
}

async function visit(page: Page, url: string): Promise<void> {
  await page.goto(url)
  await page.getByRole('heading', { level: 1 }).waitFor()
}

t.test('a contact that one operator adds shows on the screen of the other, who is typing', async t => {
  const { enter, baseUrl, shows } = await open(t)
  const { page: ann } = await enter()
  const { page: bob } = await enter()
  await visit(ann, `${baseUrl}/console/contacts`)
  await visit(bob, `${baseUrl}/console/contacts`)
  const search = bob.getByRole('searchbox', { name: 'Address or name' })
  await search.fill('spring')
  await bob.getByText('No contacts').first().waitFor()
  await ann.getByRole('button', { name: 'Add contact' }).first().click()
  const dialog = ann.getByRole('dialog', { name: 'Add contact' })
  await dialog.getByLabel('Email').fill('spring@one.example')
  await dialog.getByRole('button', { name: 'Add' }).click()
  await dialog.waitFor({ state: 'hidden' })
  await shows('the contact', () => bob.getByRole('link', { name: 'spring@one.example' }).isVisible())
  t.equal(await search.inputValue(), 'spring')
  t.equal(await bob.evaluate<string>('document.activeElement.type'), 'search', 'the field keeps the focus')
})

t.test('a long list keeps its rows and its place when somebody changes it', async t => {
  const { enter, baseUrl, key, shows, ...postroad } = await open(t)
  const { page: bob } = await enter()
  await Promise.all(
    Array.from({ length: 150 }, (_, n) =>
      postroad.post(
        '/api/v1/contacts',
        { email: `person${String(n).padStart(3, '0')}@one.example` },
        { key },
      ),
    ),
  )
  await visit(bob, `${baseUrl}/console/contacts`)
  await bob
    .getByRole('link', { name: /person/ })
    .first()
    .waitFor()
  // Down to the second page.
  await shows('all rows', async () => {
    await bob.evaluate('scrollTo(0, document.body.scrollHeight)')
    return (await bob.locator('table').getAttribute('aria-rowcount')) === '150'
  })
  await bob.evaluate('scrollTo(0, 4000)')
  const firstSeen = () =>
    bob.evaluate<string>(
      `[...document.querySelectorAll('tbody a.link')].find(link => link.getBoundingClientRect().top > 120).textContent`,
    )
  // The rows there are drawn with the next frame.
  await until('the rows', () =>
    bob.evaluate<boolean>(
      `[...document.querySelectorAll('tbody a.link')].some(link => link.getBoundingClientRect().top < 120)`,
    ),
  )
  const before = await firstSeen()
  await postroad.post('/api/v1/contacts', { email: 'aaa@one.example' }, { key })
  await postroad.post('/api/v1/contacts', { email: 'zzz@one.example' }, { key })
  await shows(
    'the new rows',
    async () => (await bob.locator('table').getAttribute('aria-rowcount')) === '152',
  )
  t.equal(await firstSeen(), before, 'the row that was read stays where it was')
})

t.test('a list that is being read again stays readable', async t => {
  const { enter, baseUrl, key, shows } = await open(t)
  const { page: bob } = await enter()
  const upload = (body: string) =>
    fetch(`${baseUrl}/api/v1/contacts/import?dry_run=true`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'text/csv' },
      body,
    })
  await upload('email\nnobody\n')
  await visit(bob, `${baseUrl}/console/contacts/import`)
  await shows('the check', () => bob.getByText('Completed').isVisible())
  let isHeld = false
  let release = () => {}
  const released = new Promise<undefined>(resolve => (release = () => resolve(undefined)))
  await bob.route('**/contacts/imports?*', async route => {
    isHeld = true
    await released
    await route.continue()
  })
  await upload('email\nsomebody@one.example\n')
  await shows('a wait', async () => isHeld && (await bob.locator('.reading').isVisible()))
  t.same(await axeFindings(bob), [])
  release()
  await shows('the answer', async () => (await bob.locator('tbody tr').count()) === 2)
})

t.test('words typed in a form stay when somebody else changes the record', async t => {
  const { enter, baseUrl, key, shows, ...postroad } = await open(t)
  const { page: ann } = await enter()
  const { page: bob } = await enter()
  const { body } = await postroad.post('/api/v1/lists', { name: 'News' }, { key })
  const { id } = (body as { data: { id: string } }).data
  await visit(ann, `${baseUrl}/console/lists/${id}`)
  await visit(bob, `${baseUrl}/console/lists/${id}`)
  const name = bob.getByLabel('Name', { exact: true })
  await name.fill('News of the week')
  await ann.getByLabel('Name', { exact: true }).fill('Newsletter')
  await ann.getByRole('button', { name: 'Save' }).click()
  await ann.getByRole('heading', { name: 'Newsletter' }).waitFor()
  const other = await bob.context().newPage()
  await visit(other, `${baseUrl}/console/lists`)
  await shows('the change', () => other.getByRole('link', { name: 'Newsletter' }).isVisible())
  await bob.bringToFront()
  t.equal(await name.inputValue(), 'News of the week')
})

t.test('words typed while a record is read again stay', async t => {
  const { enter, baseUrl, key, shows, ...postroad } = await open(t)
  const { page: ann } = await enter()
  const { body } = await postroad.post('/api/v1/lists', { name: 'News' }, { key })
  const { id } = (body as { data: { id: string } }).data
  await visit(ann, `${baseUrl}/console/lists/${id}`)
  const name = ann.getByLabel('Name', { exact: true })
  await name.waitFor()
  const held: (() => void)[] = []
  await ann.route(`**/lists/${id}`, async route => {
    if (route.request().method() === 'GET') await new Promise<void>(resolve => held.push(resolve))
    await route.continue()
  })
  await postroad.post('/api/v1/lists', { name: 'Another list' }, { key })
  await shows('the read', async () => held.length > 0)
  await name.fill('News of the week')
  const answered = ann.waitForResponse(`**/lists/${id}`)
  for (const goOn of held) goOn()
  await answered
  await ann.getByRole('button', { name: 'Save' }).click()
  await ann.getByRole('heading', { name: 'News of the week' }).waitFor()
  t.equal(await name.inputValue(), 'News of the week')
})

t.test('words typed while a change is saved stay', async t => {
  const { enter, baseUrl, key, ...postroad } = await open(t)
  const { page: ann } = await enter()
  const { body } = await postroad.post('/api/v1/lists', { name: 'News' }, { key })
  const { id } = (body as { data: { id: string } }).data
  await visit(ann, `${baseUrl}/console/lists/${id}`)
  const name = ann.getByLabel('Name', { exact: true })
  await name.fill('News of May')
  let goOn = (): void => {}
  const isHeld = new Promise<void>(resolve => (goOn = resolve))
  await ann.route(`**/lists/${id}`, async route => {
    if (route.request().method() === 'PATCH') await isHeld
    await route.continue()
  })
  await ann.getByRole('button', { name: 'Save' }).click()
  await name.fill('News of June')
  goOn()
  await ann.getByRole('heading', { name: 'News of May' }).waitFor()
  t.equal(await name.inputValue(), 'News of June')
  await ann.getByRole('button', { name: 'Save' }).click()
  await ann.getByRole('heading', { name: 'News of June' }).waitFor()
})

t.test('what changes after a screen is read, before its stream begins, is shown', async t => {
  const { enter, baseUrl, key, shows, ...postroad } = await open(t)
  const { page: ann } = await enter()
  let goOn = (): void => {}
  const isHeld = new Promise<void>(resolve => (goOn = resolve))
  await ann.route('**/live/stream*', async route => {
    await isHeld
    await route.continue()
  })
  await visit(ann, `${baseUrl}/console/lists`)
  await ann.getByText('No lists yet').waitFor()
  await postroad.post('/api/v1/lists', { name: 'News' }, { key })
  // Told to streams that are open by now.
  await postroad.clock.advance(2_000)
  goOn()
  await shows('the list', () => ann.getByRole('link', { name: 'News' }).isVisible())
})

t.test('rows that are ticked stay ticked while everything is read again', async t => {
  const { enter, baseUrl, key, shows, ...postroad } = await open(t)
  const { page: ann, settled } = await enter()
  await postroad.post('/api/v1/suppressions', { email: 'bob@two.test', reason: 'manual' }, { key })
  await postroad.post(
    '/api/v1/email/send',
    {
      ...{ from_email: 'shop@sender.example', to: ['cyd@one.test'], subject: 'Later', text: 'Later' },
      send_at: new Date(postroad.clock.now() + 86_400_000).toISOString(),
    },
    { key },
  )
  for (const [path, name] of [
    ['/suppressions', 'bob@two.test'],
    ['/delivery?tab=messages', 'cyd@one.test'],
  ] as const) {
    await visit(ann, `${baseUrl}/console${path}`)
    await ann.getByLabel(name).check()
    // A workspace more, as somebody else adds it.
    await postroad.run('workspace', 'create', `beside ${path}`)
    const chooser = ann.getByRole('combobox', { name: 'Workspace' })
    await shows('the workspace', async () => (await chooser.innerText()).includes(`beside ${path}`))
    await settled()
    t.ok(await ann.getByLabel(name).isChecked(), name)
  }
})

t.test('a read that is answered after signing out asks nobody to sign in again', async t => {
  const { enter, baseUrl, key, shows, ...postroad } = await open(t)
  const { page: ann } = await enter()
  await visit(ann, `${baseUrl}/console/lists`)
  await ann.getByText('No lists yet').waitFor()
  const held: (() => void)[] = []
  await ann.route('**/api/v1/lists?*', async route => {
    await new Promise<void>(resolve => held.push(resolve))
    await route.continue()
  })
  await postroad.post('/api/v1/lists', { name: 'News' }, { key })
  await shows('the read', async () => held.length > 0)
  await ann.getByRole('banner').getByRole('button', { name: 'Your account' }).click()
  await ann.getByRole('button', { name: 'Sign out' }).click()
  await ann.getByLabel('Email address').waitFor()
  const answered = ann.waitForResponse('**/api/v1/lists?*')
  for (const goOn of held) goOn()
  t.equal((await answered).status(), 401)
  await ann.getByLabel('Email address').fill('ann@example.net')
  t.equal(await ann.getByRole('dialog').count(), 0)
})
