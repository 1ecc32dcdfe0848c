/**
 * The console's screens about sending and the appliance, used as an operator uses them.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import t from 'tap'
import { openBrowser, type Looking } from '../support/program/browser.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { openConsole } from '../support/program/console.js'
import { addOperator } from '../support/program/operators.js'

const WIDE: Looking = { shape: 'wide', scheme: 'light' }
const PASSWORD = 'four blue horses at dawn'

t.test(
  'a new operator sets a password, adds a domain, makes a key, ends a session, and finds it in Activity',
  async t => {
    const appliance = await openTestAppliance(t)
    const { baseUrl } = appliance
    const { email, link } = await addOperator(appliance)
    const see = await openBrowser(t)
    const { page, complaints } = await see(WIDE)

    await page.goto(`${baseUrl}/console/#/link/${link}`)
    await page.getByText(email).waitFor()
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { name: 'Set a password' }).waitFor()
    await page.getByLabel('New password').fill('short')
    await page.getByRole('button', { name: 'Set password' }).click()
    await page.getByRole('alert').first().waitFor()
    t.equal(
      await page.getByLabel('New password').inputValue(),
      'short',
      'a password that is refused stays, to be changed',
    )
    await page.getByLabel('New password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Set password' }).click()
    await page.getByText('Password set.').waitFor()
    t.notMatch(page.url(), 'welcome', 'the welcome is over')

    await page.getByRole('banner').getByRole('button', { name: 'Your account' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Email address').fill(email)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('navigation').waitFor()

    await page.getByRole('link', { name: 'Domains' }).click()
    await page.getByRole('button', { name: 'Add a domain' }).first().click()
    const adding = page.getByRole('dialog', { name: 'Add a domain' })
    await adding.locator('input:focus').waitFor()
    t.equal(
      await adding.locator('input:focus').getAttribute('id'),
      await adding.getByLabel('Domain', { exact: true }).getAttribute('id'),
      'one can type at once',
    )
    await adding.getByLabel('Domain', { exact: true }).fill('not a domain')
    await adding.getByRole('button', { name: 'Add a domain' }).click()
    await adding.getByRole('alert').waitFor()
    t.equal(await adding.getByLabel('Domain', { exact: true }).inputValue(), 'not a domain')
    await adding.getByLabel('Domain', { exact: true }).fill('shop.example')
    await adding.getByRole('button', { name: 'Add a domain' }).click()
    await page.getByRole('heading', { name: 'shop.example', level: 1 }).waitFor()
    t.ok(await page.getByText('Proof of ownership').isVisible(), 'the records to publish are shown')
    t.ok(await page.getByText('Not verified').isVisible())

    await page.getByRole('link', { name: 'API keys' }).click()
    await page.getByRole('button', { name: 'Create a key' }).first().click()
    const creating = page.getByRole('dialog', { name: 'Create a key' })
    await creating.getByLabel('Name').fill('web shop')
    await creating.getByLabel('Access').selectOption('Sending only')
    await creating.getByRole('button', { name: 'Create' }).click()
    const secret = await page.getByRole('dialog', { name: 'Key' }).locator('code').textContent()
    t.match(secret, /^ts_live_/, 'the key is shown')
    await page.getByRole('dialog', { name: 'Key' }).getByRole('button', { name: 'Close' }).last().click()
    await page.getByRole('link', { name: 'web shop' }).click()
    await page.getByRole('dialog', { name: 'web shop' }).getByText('Sending only').waitFor()
    t.notMatch(await page.content(), secret ?? '-', 'the key is shown only once')
    await page.keyboard.press('Escape')

    const elsewhere = await see(WIDE)
    await elsewhere.page.goto(`${baseUrl}/console/`)
    await elsewhere.page.getByLabel('Email address').fill(email)
    await elsewhere.page.getByLabel('Password').fill(PASSWORD)
    await elsewhere.page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await elsewhere.page.getByRole('navigation').waitFor()

    await page.goto(`${baseUrl}/console/account`)
    const sessions = page.getByRole('list', { name: 'Sessions' })
    await sessions.getByRole('listitem').nth(1).waitFor()
    await sessions.getByRole('button', { name: 'End' }).click()
    await page.getByText('Session ended.').waitFor()
    t.equal(await sessions.getByRole('listitem').count(), 1, 'only this session is left')
    // A read may have shown the dialog already, which then covers the link.
    await elsewhere.page.getByRole('link', { name: 'Domains' }).dispatchEvent('click')
    t.ok(
      await elsewhere.page
        .getByRole('dialog', { name: 'Sign in again' })
        .waitFor()
        .then(() => true),
      'the other browser has to sign in again',
    )

    await page.getByRole('link', { name: 'Activity' }).click()
    const entries = page.getByRole('table', { name: 'Activity' })
    await entries.waitFor()
    for (const [action, subject] of [
      ['domain.added', 'shop.example'],
      ['api_key.created', 'web shop'],
      ['operator.signed_out', email],
      ['operator.password_changed', email],
    ] as const)
      t.ok(
        await entries
          .getByRole('row')
          .filter({ hasText: action })
          .filter({ hasText: subject })
          .first()
          .isVisible(),
        `${action} of ${subject}`,
      )
    await page.getByLabel('Action').fill('api_key.created')
    await page.waitForURL(/action=api_key\.created/)
    await entries.getByRole('link', { name: 'api_key.created' }).first().click()
    t.ok(await page.getByRole('dialog', { name: 'api_key.created' }).getByText(email).first().isVisible())
    // Refused passwords, names and ended sessions are answers the browser notes too.
    t.same(
      complaints.filter(text => !/status of 4\d\d/.test(text)),
      [],
    )
  },
)

t.test('Health is not called healthy above checks that failed', async t => {
  const { page, go, inspect } = await openConsole(t, await openTestAppliance(t))
  await go('/health')
  const now = page.getByRole('region', { name: 'Right now' })
  await now.getByRole('heading', { name: 'Healthy' }).waitFor()
  await page.getByRole('button', { name: 'Run checks' }).click()
  // No name server answers here: the checks say so at once, /health once it has noticed too.
  await page.getByText(/^[1-9]\d* failed/).waitFor()
  await now.getByRole('heading', { name: /^Works, but|^Needs attention/ }).waitFor()
  t.notMatch(await now.innerText(), 'Nothing needs attention')
  await inspect('console-health-checks')
})
