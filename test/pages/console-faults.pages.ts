/**
 * What goes wrong while somebody types: the connection, the session, another editor, too many requests. Each form says what happened in
 * plain words, keeps every word, and sends it once the cause is gone.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import t, { type Test } from 'tap'
import type { Locator, Page } from 'playwright-core'
import { openTestAppliance } from '../support/program/appliance.js'
import { openConsole } from '../support/program/console.js'
import { once } from '../support/once.js'

const PASSWORD = 'correct horse battery staple'

/** Shared: each form has its own operator and its own records. */
const sharedAppliance = once(() => openTestAppliance(t))

async function open(t: Test, openAppliance = sharedAppliance) {
  const appliance = await openAppliance()
  const { page, email } = await openConsole(t, appliance)
  return { ...appliance, appliance, page, email }
}

/** For tests that sign in again. */
async function setPassword({ page, baseUrl }: Pick<Opened, 'page' | 'baseUrl'>): Promise<void> {
  await page.request.put(`${baseUrl}/api/admin/v1/me/password`, {
    data: { password: PASSWORD },
    headers: { Origin: baseUrl, 'Sec-Fetch-Site': 'same-origin' },
  })
}

type Opened = Awaited<ReturnType<typeof open>>

interface Form {
  readonly name: string
  /** Opens it and types. @returns what was typed into, and what sends it */
  begin(opened: Opened): Promise<{
    readonly typed: readonly [Locator, string][]
    readonly send: () => Promise<void>
  }>
  /** Shown once it was sent. */
  sent(page: Page): Locator
}

const FORMS: readonly Form[] = [
  {
    name: 'suppress an address',
    async begin({ page, baseUrl }) {
      await page.goto(`${baseUrl}/console/suppressions`)
      await page.getByRole('button', { name: 'Suppress' }).first().click()
      const dialog = page.getByRole('dialog', { name: 'Suppress' })
      const field = dialog.getByLabel('Address or domain')
      await field.fill('gone@one.test')
      return {
        typed: [[field, 'gone@one.test']],
        send: () => dialog.getByRole('button', { name: 'Suppress' }).click(),
      }
    },
    sent: page => page.getByRole('row', { name: /gone@one\.test/ }),
  },
  {
    name: 'change a list',
    async begin({ page, baseUrl, appliance, key }) {
      const { body } = await appliance.post('/api/v1/lists', { name: 'Newsletter' }, { key })
      await page.goto(`${baseUrl}/console/lists/${String(body.data.id)}`)
      const name = page.getByLabel('Name', { exact: true })
      const description = page.getByLabel('Description', { exact: true })
      await name.fill('Monthly letter')
      await description.fill('What is new in the shop')
      return {
        typed: [
          [name, 'Monthly letter'],
          [description, 'What is new in the shop'],
        ],
        send: () => page.getByRole('button', { name: 'Save', exact: true }).click(),
      }
    },
    sent: page => page.getByRole('heading', { level: 1, name: 'Monthly letter' }),
  },
  {
    name: 'change a workspace',
    async begin({ page, baseUrl, workspaceId }) {
      await page.goto(`${baseUrl}/console/workspaces/${workspaceId}`)
      const name = page.getByLabel('Name', { exact: true })
      await name.fill('Corner shop')
      return {
        typed: [[name, 'Corner shop']],
        send: () => page.getByRole('button', { name: 'Save', exact: true }).click(),
      }
    },
    sent: page => page.getByRole('heading', { level: 1, name: 'Corner shop' }),
  },
  {
    name: 'send a message again',
    async begin({ page, baseUrl, appliance, key }) {
      const mail = { to: ['ann@one.test'], from_email: 'me@sender.test', subject: 'Hi', text: 'Hello' }
      const { body } = await appliance.send(key, mail)
      const [{ message_id: id } = { message_id: '' }] = body.data.results as { message_id: string }[]
      await appliance.messageOnce(key, id, 'delivered')
      await page.goto(`${baseUrl}/console/messages/${id}`)
      await page.getByRole('button', { name: 'Send again' }).click()
      const dialog = page.getByRole('dialog', { name: 'Send again' })
      const field = dialog.getByLabel('To', { exact: true })
      await field.fill('bob@two.test')
      return {
        typed: [[field, 'bob@two.test']],
        send: () => dialog.getByRole('button', { name: 'Send again' }).click(),
      }
    },
    sent: page => page.getByText('bob@two.test', { exact: true }),
  },
  {
    name: 'create a contact',
    async begin({ page, baseUrl }) {
      await page.goto(`${baseUrl}/console/contacts`)
      await page.getByRole('button', { name: 'Add contact' }).first().click()
      const dialog = page.getByRole('dialog', { name: 'Add contact' })
      const address = dialog.getByLabel('Email address')
      await address.fill('cyd@one.test')
      return {
        typed: [[address, 'cyd@one.test']],
        send: () => dialog.getByRole('button', { name: 'Add', exact: true }).click(),
      }
    },
    sent: page => page.getByText('cyd@one.test was added.'),
  },
]

/** Until it is lifted, the server answers every change like this. */
async function answerWith(page: Page, status: number, error: object, headers: Record<string, string> = {}) {
  await page.route(/\/api\//, (route, request) =>
    request.method() === 'GET'
      ? route.fallback()
      : route.fulfill({ status, headers, contentType: 'application/json', body: JSON.stringify({ error }) }),
  )
  return () => page.unroute(/\/api\//)
}

for (const form of FORMS)
  t.test(`${form.name}: no word is lost, whatever goes wrong`, async t => {
    const opened = await open(t)
    const { page, email } = opened
    await setPassword(opened)
    const { typed, send } = await form.begin(opened)
    const keeps = async (cause: string) => {
      for (const [field, text] of typed)
        t.equal(await field.inputValue(), text, `${cause}: "${text}" is kept`)
    }
    const says = async (cause: string, text: string | RegExp) => {
      await t.resolves(
        page.getByRole('alert').filter({ hasText: text }).first().waitFor(),
        `${cause}: it says so`,
      )
      await keeps(cause)
    }

    await page.context().setOffline(true)
    await send()
    await says('network down', 'The server is not responding. Check the connection, then try again.')
    await page.context().setOffline(false)

    let lift = await answerWith(
      page,
      429,
      { code: 'rate_limited', message: 'more than 100 requests in the last minute' },
      { 'Retry-After': '7' },
    )
    await send()
    await says('too many requests', 'Too many requests. Try again in 7 s.')
    await lift()

    lift = await answerWith(page, 412, {
      code: 'precondition_failed',
      message: 'the resource was changed',
      path: 'If-Match',
    })
    await send()
    await says('another editor', 'Someone else has changed this.')
    await lift()

    lift = await answerWith(page, 409, { code: 'conflict', message: 'it is being removed just now' })
    await send()
    await says('a conflict', 'It is being removed just now')
    await lift()

    // Whatever is read in the background would find the session ended before.
    let hasSent: () => void = () => {}
    const sent = new Promise<void>(resolve => (hasSent = resolve))
    await page.route(/\/api\//, async (route, request) => {
      if (request.method() === 'GET') await sent
      await route.fallback()
    })
    await page.context().clearCookies()
    await send()
    hasSent()
    const dialog = page.getByRole('dialog', { name: 'Sign in again' })
    await dialog.getByText('Your session has ended.').waitFor()
    await keeps('session expired')
    await dialog.getByLabel('Email address').fill(email)
    await dialog.getByLabel('Password').fill(PASSWORD)
    await dialog.getByRole('button', { name: 'Sign in', exact: true }).click()
    await t.resolves(form.sent(page).first().waitFor(), 'and then it is done')
  })

t.test('what was sent without an answer is not done twice', async t => {
  const { page, baseUrl, appliance, key } = await open(t, () => openTestAppliance(t))
  const mail = { to: ['ann@one.test'], from_email: 'me@sender.test', subject: 'Hi', text: 'Hello' }
  const { body } = await appliance.send(key, mail)
  const [{ message_id: id } = { message_id: '' }] = body.data.results as { message_id: string }[]
  await appliance.messageOnce(key, id, 'delivered')
  await page.goto(`${baseUrl}/console/messages/${id}`)
  await page.getByRole('button', { name: 'Send again' }).click()
  const dialog = page.getByRole('dialog', { name: 'Send again' })
  // The request arrives, its answer is lost.
  await page.route(
    /\/resend$/,
    async route => {
      await route.fetch()
      await route.abort('connectionreset')
    },
    { times: 1 },
  )
  await dialog.getByRole('button', { name: 'Send again' }).click()
  await dialog.getByRole('alert').filter({ hasText: 'is not responding' }).waitFor()
  await dialog.getByRole('button', { name: 'Send again' }).click()
  await page.getByText('Sent again to ann@one.test').waitFor()
  const listed = await appliance.get('/api/v1/email?limit=10', { key })
  t.equal((listed.body.data as unknown[]).length, 2)
})
