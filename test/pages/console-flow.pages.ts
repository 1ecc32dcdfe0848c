/**
 * A new operator's first day in the console, against the real program: from the link that `init` prints to a webhook that is replayed.
 *
 * Mail is delivered over SMTP to a server of the test, which refuses one recipient; another mail comes back later as a delivery status
 * notification. Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import t, { type Test } from 'tap'
import type { Locator, Page } from 'playwright-core'
import { dsn } from '../support/inbound.js'
import { openBrowser } from '../support/program/browser.js'
import { install, routeTo, type LogLine } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { SmtpClient } from '../support/smtp/smtp-service.js'
import { until } from '../support/until.js'
import { openReceiver } from '../webhooks/receiver.js'

const PASSWORD = 'four blue horses at dawn'
const PEOPLE = 1_000

/** Every fourth has the plan pro. */
function csv(): string {
  const rows = Array.from(
    { length: PEOPLE },
    (_, at) => `person${at}@recipient.test,Person,Number ${at},${at % 4 === 0 ? 'pro' : 'free'}`,
  )
  return ['email,first_name,last_name,plan', ...rows].join('\n')
}

async function open(t: Test) {
  const sink = await openSink(t, { refusals: { person4: [550, '5.1.1 No such user here'] } })
  const receiver = await openReceiver(t)
  const postroad = install(t, {
    toml: '[inbound]\ngreeting_delay = "0"\n[webhooks]\nallow_networks = ["127.0.0.0/8"]',
    env: routeTo(sink.port),
  })
  const { link_token: link } = await postroad.json<{ link_token: string }>(
    'init',
    '--operator',
    'ann@shop.test',
  )
  const server = await postroad.serve()
  const started = server.log.find(({ event }) => event === 'server started')
  const see = await openBrowser(t)
  const { page, complaints } = await see({ shape: 'wide', scheme: 'light' })
  return { sink, receiver, server, link, page, complaints, inboundPort: portOf(started, 'inbound') }
}

function portOf(line: LogLine | undefined, name: string): number {
  return Number(String(line?.[name]).split(', ')[0]?.split(':').at(-1))
}

/** As a file manager does it. */
async function dropFile(page: Page, name: string, text: string): Promise<void> {
  // A text: the compiler knows no browser.
  const dataTransfer = await page.evaluateHandle(`(() => {
    const carried = new DataTransfer()
    carried.items.add(new File([${JSON.stringify(text)}], ${JSON.stringify(name)}, { type: 'text/csv' }))
    return carried
  })()`)
  await page.getByText('Drop a CSV file here').dispatchEvent('drop', { dataTransfer })
}

/** Bounces are recorded a moment after the mail came; lists show what was there when they were read. */
async function refreshUntil(page: Page, wanted: Locator): Promise<void> {
  await until(String(wanted), async () => {
    if (await wanted.isVisible()) return true
    await page.getByRole('button', { name: 'Refresh' }).click()
    await page.waitForLoadState('networkidle')
    return wanted.isVisible()
  })
}

/** What the recipient's host sends some time after it accepted a mail. */
async function returnMail(port: number, returnPath: string, mail: string): Promise<void> {
  const client = await SmtpClient.connect(port)
  await client.readReply()
  await client.ehlo()
  for (const line of ['MAIL FROM:<>', `RCPT TO:<${returnPath}>`, 'DATA', `${mail}.`]) {
    client.send(`${line}\r\n`)
    const reply = await client.readReply()
    if (!/^[23]/.test(reply.at(-1) ?? '')) throw new Error(`${line} was answered: ${reply.join(' / ')}`)
  }
  client.cut()
}

t.test('from the first sign-in to a delivered mail, two bounces and a replayed webhook', async t => {
  const { sink, receiver, server, link, page, complaints, inboundPort } = await open(t)
  const go = (name: string) => page.getByRole('navigation').getByRole('link', { name, exact: true }).click()
  const title = (name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor()

  t.comment('signs in by the link that init printed, and sets a password')
  await page.goto(`${server.baseUrl}/console/#/link/${link}`)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByLabel('New password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Set password' }).click()
  await page.getByText('Password set.').waitFor()

  t.comment('adds a domain')
  await go('Domains')
  await page.getByRole('button', { name: 'Add a domain' }).first().click()
  const adding = page.getByRole('dialog', { name: 'Add a domain' })
  await adding.getByLabel('Domain', { exact: true }).fill('shop.test')
  await adding.getByLabel('Use it without DNS records').check()
  await adding.getByRole('button', { name: 'Add a domain' }).click()
  await title('shop.test')

  t.comment('drops a file of contacts')
  await go('Contacts')
  await page.getByRole('link', { name: 'Import' }).first().click()
  await dropFile(page, 'customers.csv', csv())
  await page.getByRole('cell', { name: 'person0@recipient.test' }).waitFor()
  await page.getByRole('button', { name: 'Start import' }).click()
  await page.getByText('Completed').waitFor()
  t.match(await page.getByRole('region', { name: 'Progress' }).innerText(), /Created\s+1,000/)

  t.comment('scrolls through all of them')
  await go('Contacts')
  await page.getByText('1,000 contacts').waitFor()
  const rows = page.locator('tbody tr[aria-rowindex]')
  const last = page.locator('tr[aria-rowindex="1000"]')
  await until('the last contact', async () => {
    await page.mouse.wheel(0, 6_000)
    return last.isVisible()
  })
  t.ok((await rows.count()) < 100, 'only the rows near the window are in the document')

  t.comment('builds a segment and sees whom it means')
  await go('Segments')
  await page.getByRole('link', { name: 'New segment' }).first().click()
  await page.getByLabel('Name', { exact: true }).fill('Customers who pay')
  await page.getByLabel('Field', { exact: true }).selectOption('attribute')
  await page.getByLabel('Name of the attribute').fill('plan')
  await page.getByLabel('Operator').selectOption('equals')
  await page.getByLabel('Value', { exact: true }).fill('pro')
  const counted = page.getByRole('region', { name: 'Contacts' })
  await counted.getByText('250').first().waitFor()
  await page.getByRole('button', { name: 'Add rule' }).click()
  await page.getByLabel('Field', { exact: true }).nth(1).selectOption('email')
  await page.getByLabel('Operator').nth(1).selectOption('starts_with')
  await page.getByLabel('Value', { exact: true }).nth(1).fill('person9')
  // 92, 96, 900, 904, ... 996; and not 9.
  await counted.getByText('27', { exact: true }).first().waitFor()
  await page.getByRole('button', { name: 'Create' }).click()
  await title('Customers who pay')
  await page.getByRole('link', { name: 'Show contacts' }).click()
  await page.getByRole('link', { name: 'person92@recipient.test' }).waitFor()

  t.comment('lets a program know of bounces')
  await go('Webhooks')
  await page.getByRole('button', { name: 'Add a webhook' }).first().click()
  const hooking = page.getByRole('dialog', { name: 'Add a webhook' })
  await hooking.getByLabel('URL').fill(`${receiver.url}/bounces`)
  await hooking.getByLabel('Event').selectOption('email.bounced')
  await hooking.getByRole('button', { name: 'Create' }).click()
  await page
    .getByRole('dialog', { name: 'Signing secret' })
    .getByRole('button', { name: 'Close' })
    .last()
    .click()

  t.comment('makes a key, with which a program sends')
  await go('API keys')
  await page.getByRole('button', { name: 'Create a key' }).first().click()
  const creating = page.getByRole('dialog', { name: 'Create a key' })
  await creating.getByLabel('Name').fill('web shop')
  await creating.getByRole('button', { name: 'Create' }).click()
  const shown = page.getByRole('dialog', { name: 'Key' })
  const key = (await shown.locator('code').textContent())?.trim() ?? ''
  await shown.getByRole('button', { name: 'Close' }).last().click()
  for (const number of [0, 4, 8]) {
    const { status, body } = await server.post(
      '/api/v1/email/send',
      {
        to: [`person${number}@recipient.test`],
        from_email: 'hello@shop.test',
        subject: `Order ${number} is on its way`,
        html: '<p>Thank you.</p>',
      },
      { key },
    )
    t.equal(status, 200, JSON.stringify(body))
  }
  await sink.acceptedOnce(2)

  t.comment('follows a message to its delivery')
  await go('Messages')
  await page.getByRole('searchbox', { name: 'Recipient' }).fill('person0@recipient.test')
  await page.waitForURL(/to=person0/)
  await page.getByRole('link', { name: 'person0@recipient.test' }).click()
  await title('Order 0 is on its way')
  await page.getByText('Attempt 1').waitFor()
  const timeline = page.getByRole('region', { name: 'Timeline' })
  t.match(await timeline.innerText(), /Delivered[\s\S]*250[\s\S]*TLSv1/, 'with the reply and TLS')
  t.match(sink.accepted.map(({ recipients }) => recipients).flat(), ['person0@recipient.test'])

  t.comment('and another to its rejection')
  await page.goBack()
  await page.getByRole('searchbox', { name: 'Recipient' }).fill('person4@recipient.test')
  await page.getByRole('link', { name: 'person4@recipient.test' }).click()
  await title('Order 4 is on its way')
  await timeline.getByText('Bounced').waitFor()
  t.match(await timeline.innerText(), /550 5\.1\.1[\s\S]*No such user here/)

  t.comment('a mail that was accepted comes back')
  const returned = sink.accepted.find(({ recipients }) => recipients.includes('person8@recipient.test'))
  await returnMail(inboundPort, returned?.sender ?? '', dsn({ recipient: 'person8@recipient.test' }))
  await go('Inbound')
  await refreshUntil(page, page.getByRole('row', { name: /<>.*Bounce/ }))
  await page.getByRole('link', { name: '<>' }).click()
  const findings = page.getByRole('region', { name: 'What was read from it' })
  await findings.getByText('User unknown').waitFor()
  await findings.getByRole('link', { name: 'Message' }).click()
  await title('Order 8 is on its way')
  await timeline.getByText('Bounced').waitFor()
  t.match(await timeline.innerText(), /Delivered[\s\S]*Bounced[\s\S]*User unknown/)
  await go('Bounces')
  await refreshUntil(page, page.getByRole('row', { name: /person8@recipient\.test/ }))
  t.ok(await page.getByRole('row', { name: /person4@recipient\.test/ }).isVisible())
  await go('Suppressions')
  await page.getByRole('row', { name: /person8@recipient\.test.*Hard bounce/ }).waitFor()

  t.comment('replays a webhook')
  await receiver.has(2)
  await go('Webhooks')
  await page.getByRole('link', { name: receiver.url }).click()
  const deliveries = page.getByRole('table', { name: 'Deliveries' })
  await deliveries
    .getByRole('row', { name: /email\.bounced.*HTTP 200.*Succeeded/ })
    .nth(1)
    .waitFor()
  await deliveries.getByRole('row').nth(1).getByRole('link').click()
  const delivery = page.getByRole('dialog', { name: 'email.bounced' })
  await delivery.getByText('person8@recipient.test').first().waitFor()
  await delivery.getByRole('button', { name: 'Redeliver' }).click()
  await page.getByText('Redelivering 1 event.').waitFor()
  const [, second, third] = await receiver.has(3)
  t.equal(third?.body, second?.body, 'the same event is there again')
  await delivery.getByRole('button', { name: 'Close' }).click()

  t.comment('a contact tells all of it')
  await go('Contacts')
  await page.getByRole('searchbox').fill('person8@')
  await page.getByRole('link', { name: 'person8@recipient.test' }).click()
  await title('person8@recipient.test')
  await page.getByRole('region', { name: 'Timeline' }).getByText('Order 8 is on its way').first().waitFor()

  t.same(
    complaints.filter(text => !text.includes('401 (Unauthorized)')),
    [],
    'the browser complains of nothing',
  )
})
