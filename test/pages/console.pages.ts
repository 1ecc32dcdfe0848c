/**
 * The console in a browser: signed in to, every screen looked at in all forms, and used by the keyboard alone.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import t, { type Test } from 'tap'
import {
  ALL_LOOKS,
  axeFindings,
  isTooWide,
  openBrowser,
  takePicture,
  type Looking,
  type Visitor,
} from '../support/program/browser.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { addOperator, tokenWith } from '../support/program/operators.js'

const PASSWORD = 'correct horse battery staple'

async function open(t: Test) {
  const appliance = await openTestAppliance(t)
  const { baseUrl } = appliance
  const { email, link } = await addOperator(appliance)
  const see = await openBrowser(t)
  const key = await appliance.makeKey()
  for (let n = 1; n <= 30; n++)
    await appliance.post(
      '/api/v1/email/send',
      {
        to: [`person${n}@recipient.example`],
        from_email: 'shop@sender.example',
        subject: `Order ${n} is on its way`,
        text: 'Thank you.',
      },
      { key },
    )
  return {
    ...appliance,
    email,
    /** A visitor who has signed in by the one-time link, and set a password. */
    async enter(looking: Looking): Promise<Visitor> {
      const visitor = await see(looking)
      const { page } = visitor
      await page.goto(`${baseUrl}/console/#/link/${link}`)
      await page.getByRole('navigation').waitFor({ state: 'attached' })
      return visitor
    },
    see,
  }
}

async function inspect(
  t: Test,
  { page, complaints }: Visitor,
  name: string,
  looking: Looking,
): Promise<void> {
  await page.waitForLoadState('networkidle')
  await takePicture(page, name, looking)
  const at = `${name}, ${looking.shape}, ${looking.scheme}`
  t.same(await axeFindings(page), [], `${at}: axe`)
  t.equal(await isTooWide(page), false, `${at}: nothing is cut off`)
  // Whether somebody is signed in is asked by a request that is refused if not.
  t.same(
    complaints.filter(text => !text.includes('401 (Unauthorized)')),
    [],
    `${at}: the browser complains of nothing`,
  )
}

/** Path below /console, and the name of its picture. */
const SCREENS = [
  ['/', 'console-overview'],
  ['/messages', 'console-messages'],
  ['/delivery', 'console-delivery'],
  ['/inbound', 'console-inbound'],
  ['/reports', 'console-reports'],
  ['/captured', 'console-captured'],
  ['/bounces', 'console-bounces'],
  ['/suppressions', 'console-suppressions'],
  ['/contacts', 'console-contacts'],
  ['/contacts/import', 'console-import-empty'],
  ['/media', 'console-media'],
  ['/lists', 'console-lists'],
  ['/segments', 'console-segments'],
  ['/segments/new', 'console-segment-new'],
  ['/tags', 'console-tags'],
  ['/forms', 'console-forms'],
  ['/campaigns', 'console-campaigns'],
  ['/automations', 'console-automations'],
  ['/campaigns/compare', 'console-campaign-compare-empty'],
  ['/feeds', 'console-feeds'],
  ['/templates', 'console-templates'],
  ['/account', 'console-account'],
  ['/domains', 'console-domains'],
  ['/webhooks', 'console-webhooks'],
  ['/keys', 'console-keys'],
  ['/workspaces', 'console-workspaces'],
  ['/operators', 'console-operators'],
  ['/activity', 'console-activity'],
  ['/health', 'console-health'],
  ['/jobs', 'console-jobs'],
  ['/backups', 'console-backups'],
  ['/certificates', 'console-certificates'],
  ['/settings', 'console-settings'],
] as const

t.test('every screen can be read, in all forms', async t => {
  const postroad = await open(t)
  const visitor = await postroad.enter({ shape: 'wide', scheme: 'light' })
  for (const looking of ALL_LOOKS) {
    const { width, height } =
      looking.shape === 'wide' ? { width: 1_440, height: 900 } : { width: 390, height: 844 }
    await visitor.page.setViewportSize({ width, height })
    await visitor.page.emulateMedia({ colorScheme: looking.scheme })
    for (const [path, name] of SCREENS) {
      await visitor.page.goto(`${postroad.baseUrl}/console${path}`)
      await visitor.page.getByRole('heading', { level: 1 }).waitFor()
      await inspect(t, visitor, name, looking)
    }
  }
})

t.test('the palette leads everywhere by the keyboard alone', async t => {
  const postroad = await open(t)
  const { page } = await postroad.enter({ shape: 'wide', scheme: 'light' })
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.keyboard.press('Control+k')
  await page.keyboard.type('messag')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor()
  t.match(page.url(), /\/console\/messages$/)
  t.equal(await page.evaluate<string>('document.activeElement.tagName'), 'H1', 'the title has the focus')
  await page.keyboard.press('g')
  await page.keyboard.press('o')
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  await page.keyboard.press('/')
  await page.keyboard.press('?')
  t.ok(await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).isVisible())
  await page.keyboard.press('Escape')
})

t.test('a main flow needs no mouse: skip, search, rows, dialogs and menus', async t => {
  const postroad = await open(t)
  const { page } = await postroad.enter({ shape: 'wide', scheme: 'light' })
  const focused = () =>
    page.evaluate<string>(
      "document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText",
    )
  /** Tab until what has the focus is called so. */
  const tabTo = async (name: RegExp) => {
    for (let presses = 0; presses < 60 && !name.test(await focused()); presses++)
      await page.keyboard.press('Tab')
    t.match(await focused(), name)
  }

  await page.goto(`${postroad.baseUrl}/console/messages`)
  await page.getByRole('link', { name: 'person30@recipient.example' }).waitFor()
  const length = await page.evaluate<number>('history.length')
  await page.keyboard.press('Tab')
  t.equal(await focused(), 'Skip to content', 'the first stop leads past the navigation')
  await page.keyboard.press('Enter')
  t.equal(await focused(), 'Messages', 'to the title')
  t.equal(await page.evaluate<number>('history.length'), length, 'Back is not used up by it')

  await page.keyboard.press('/')
  t.equal(await focused(), 'Recipient or @domain')
  await page.keyboard.type('@recipient.example')
  await page.waitForURL(/to=%40recipient\.example/)
  await tabTo(/^person30@/)
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  t.match(await focused(), /^person28@/, 'arrows go from row to row')
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Order 29 is on its way' }).waitFor()

  await page.keyboard.press('g')
  await page.keyboard.press('n')
  await page.getByRole('heading', { level: 1, name: 'Domains' }).waitFor()
  await tabTo(/^Add a domain$/)
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Add a domain' })
  await dialog.waitFor()
  await page.keyboard.type('shop.example')
  t.equal(await dialog.getByLabel('Domain').inputValue(), 'shop.example', 'the first field has the focus')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  t.equal(await focused(), 'Add a domain', 'the focus is back where the dialog was opened')

  await page.keyboard.press('Shift+Tab')
  await page.getByRole('button', { name: 'Your account' }).focus()
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  t.equal(await focused(), 'Your account')
  await page.keyboard.press('ArrowDown')
  t.equal(await focused(), 'API reference', 'arrows go through the menu')
  await page.keyboard.press('Escape')
  t.equal(await page.getByRole('group', { name: 'Your account' }).isVisible(), false)

  await page.setViewportSize({ width: 390, height: 844 })
  await page.getByRole('button', { name: 'Menu' }).focus()
  await page.keyboard.press('Enter')
  t.equal(await focused(), 'Domains', 'the navigation on the phone has the focus at the current screen')
  await page.keyboard.press('Escape')
  t.equal(await focused(), 'Menu')
})

t.test('enlarged to twice the size, every screen still fits', async t => {
  const postroad = await open(t)
  const visitor = await postroad.enter({ shape: 'wide', scheme: 'light' })
  // A window of 1280 by 800 at 200 %.
  await visitor.page.setViewportSize({ width: 640, height: 400 })
  for (const [path, name] of SCREENS) {
    await visitor.page.goto(`${postroad.baseUrl}/console${path}`)
    await visitor.page.getByRole('heading', { level: 1 }).waitFor()
    t.equal(await isTooWide(visitor.page), false, name)
  }
})

t.test('every screen says which requests it makes, as curl commands that work', async t => {
  const postroad = await open(t)
  const { baseUrl } = postroad
  const token = await tokenWith(postroad, 'owner')
  const { page } = await postroad.enter({ shape: 'wide', scheme: 'light' })
  const asked = async (path: string): Promise<string[]> => {
    await page.goto(baseUrl + path)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.waitForLoadState('networkidle')
    await page.getByRole('button', { name: 'As an API call' }).click()
    return page.getByRole('dialog', { name: 'As an API call' }).locator('pre').allTextContents()
  }
  const filters = 'status=delivered&to=%40recipient.example&since=2026-01-01'
  const [command = ''] = (await asked(`/console/messages?${filters}`)).filter(text =>
    /\/messages\?/.test(text),
  )
  t.match(command, 'status=delivered', 'filters are in it')
  t.match(command, 'to=%40recipient.example')
  t.match(command, 'since=2026-01-01')
  t.match(command, ' \\\n  -H "Authorization: Bearer $POSTROAD_TOKEN"')

  for (const [path] of SCREENS)
    for (const text of await asked(`/console${path}`)) {
      const [, url = ''] = /^curl (?:-X \w+ )?'([^']+)'/.exec(text) ?? []
      const headers = [...text.matchAll(/-H '([^:]+): ([^']*)'/g)].map(([, name = '', value = '']) => [
        name,
        value,
      ])
      if (text.startsWith('curl -X')) continue
      const { status } = await fetch(url, {
        headers: { ...Object.fromEntries(headers), Authorization: `Bearer ${token}` },
      })
      t.equal(status, 200, text)
    }
})

t.test('the authenticator app is set up by a QR code', async t => {
  const postroad = await open(t)
  const { page, complaints } = await postroad.enter({ shape: 'wide', scheme: 'dark' })
  await page.setViewportSize({ width: 390, height: 844 })
  await page.goto(`${postroad.baseUrl}/console/account`)
  await page.getByRole('button', { name: 'Set up' }).click()
  const code = page.getByRole('img', { name: 'QR code for the authenticator app' })
  await code.waitFor()
  const { width, height } = (await code.boundingBox()) ?? { width: 0, height: 0 }
  t.ok(width >= 160 && width === height, 'large enough for a camera')
  t.same(
    complaints.filter(text => !text.includes('401 (Unauthorized)')),
    [],
    'under the policy',
  )
})

t.test('what is stored is never run: subjects, senders and names are text', async t => {
  const postroad = await open(t)
  const { baseUrl } = postroad
  const hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script>"\'`${7*7}'
  const key = await postroad.makeKey()
  const sent = await postroad.post(
    '/api/v1/email/send',
    {
      to: ['evil@recipient.example'],
      from_email: 'a@sender.example',
      from_name: hostile,
      subject: hostile,
      text: hostile,
    },
    { key },
  )
  t.equal(sent.status, 200, JSON.stringify(sent.body))
  const { page } = await postroad.enter({ shape: 'wide', scheme: 'light' })
  await page.goto(`${baseUrl}/console/messages`)
  // Of a subject, markup is removed when it is accepted.
  await page.getByText('document.title=2').first().waitFor()
  t.match(await page.title(), /^Messages/)
  await page.getByRole('link', { name: 'evil@recipient.example' }).click()
  await page.getByRole('heading', { level: 1, name: 'document.title=2' }).waitFor()
  t.match(await page.title(), /Postroad$/)
})

t.test('a session that ends is begun again without leaving the screen', async t => {
  const postroad = await open(t)
  const { baseUrl, email } = postroad
  const { page } = await postroad.enter({ shape: 'wide', scheme: 'light' })
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.request.put(`${baseUrl}/api/admin/v1/me/password`, {
    data: { password: PASSWORD },
    headers: { Origin: baseUrl, 'Sec-Fetch-Site': 'same-origin' },
  })
  await page.goto(`${baseUrl}/console/messages`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.context().clearCookies()
  await page.getByRole('searchbox', { name: 'Part of the subject' }).fill('Order 7')
  const dialog = page.getByRole('dialog', { name: 'Sign in again' })
  await dialog.getByLabel('Email address').fill(email)
  await dialog.getByLabel('Password').fill(PASSWORD)
  await dialog.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByText('Order 7 is on its way').waitFor()
  t.match(page.url(), /subject=Order/, 'the filter is still there, and applied')
})

t.test('while the server is away the console says so', async t => {
  const postroad = await open(t)
  const { baseUrl } = postroad
  const { page } = await postroad.enter({ shape: 'wide', scheme: 'light' })
  await page.goto(`${baseUrl}/console/messages`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.context().setOffline(true)
  await page.getByRole('button', { name: 'Refresh' }).click()
  await page.getByRole('alert').filter({ hasText: 'The server is not responding. What you see' }).waitFor()
  await page.context().setOffline(false)
  await page.getByRole('button', { name: 'Refresh' }).click()
  await t.resolves(
    page.getByRole('alert').first().waitFor({ state: 'detached' }),
    'and says no more of it once it is back',
  )
})

t.test('languages and the theme are kept', async t => {
  const postroad = await open(t)
  const { baseUrl } = postroad
  const { page } = await postroad.enter({ shape: 'wide', scheme: 'light' })
  await page.goto(`${baseUrl}/console/`)
  await page.getByRole('button', { name: 'Your account' }).click()
  await page.getByLabel('Language').selectOption('de')
  await page.getByRole('heading', { level: 1, name: 'Übersicht' }).waitFor()
  await page.getByLabel('Darstellung').selectOption('dark')
  await page.reload()
  await page.getByRole('heading', { level: 1, name: 'Übersicht' }).waitFor()
  t.equal(await page.evaluate<string>('document.documentElement.dataset.theme'), 'dark')
  t.equal(await page.evaluate<string>('document.documentElement.lang'), 'de')
})
