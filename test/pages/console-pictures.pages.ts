/**
 * The pictures of the README: the console's overview after thirty days of mail, light and dark.
 *
 * Left in `build/pages` with the others, or in `docs/images` if run by `make readme-pictures`. The clock is the test's, so that they show the
 * same each time.
 */
import { mkdirSync } from 'node:fs'
import t, { type Test } from 'tap'
import { axeFindings, openBrowser } from '../support/program/browser.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { addOperator } from '../support/program/operators.js'

const FOLDER = process.env['POSTROAD_PICTURES'] ?? 'build/pages'
const DAY_MS = 86_400_000
const DAYS = 30
const SIZE = { width: 1_440, height: 900 }

/** More on workdays, and a little more each week. */
function mailsOf(day: number): number {
  const share = [0.45, 0.9, 1, 0.95, 0.85, 0.8, 0.4][day % 7] ?? 1
  return Math.round((14 + day / 3) * share)
}

async function openAfterMail(t: Test) {
  const appliance = await openTestAppliance(t)
  const { clock, key } = appliance
  await appliance.json('workspace', 'set', appliance.workspaceId, 'name=Corner Shop')
  const send = async (day: number, count: number, more: object = {}): Promise<string> => {
    const mail = {
      to: Array.from({ length: count }, (_, n) => `person${day}.${n}@recipient.example`),
      from_email: 'hello@shop.example',
      subject: 'Your order is on its way',
      html: '<p>Thank you. <a href="https://shop.example/orders">See your order</a></p>',
      ...more,
    }
    const { status, body } = await appliance.post('/api/v1/email/send', mail, { key })
    if (status >= 300) throw new Error(JSON.stringify(body))
    return (body.data.results as { message_id: string }[] | undefined)?.at(-1)?.message_id ?? ''
  }
  for (let day = 0; day < DAYS; day += 1) {
    clock.skip(DAY_MS)
    await appliance.messageOnce(key, await send(day, mailsOf(day)), 'delivered')
  }
  await send(DAYS, 18)
  // Rates are of the last minute.
  await clock.advance(5_000)
  await send(DAYS + 1, 3, { send_at: new Date(clock.now() + 3 * DAY_MS).toISOString() })
  return appliance
}

t.test('the pictures of the README show thirty days of mail', async t => {
  const appliance = await openAfterMail(t)
  const { link } = await addOperator(appliance)
  const see = await openBrowser(t)
  const { page } = await see({ shape: 'wide', scheme: 'light' })
  await page.setViewportSize(SIZE)
  await page.clock.setFixedTime(appliance.clock.now())
  await page.goto(`${appliance.baseUrl}/console/#/link/${link}`)
  await page.getByRole('navigation').waitFor({ state: 'attached' })
  mkdirSync(FOLDER, { recursive: true })
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme })
    await page.goto(`${appliance.baseUrl}/console/`)
    await page.getByText('Every accepted message is accounted for').waitFor()
    await page.locator('main svg[role="img"], main figure, main canvas').first().waitFor()
    t.same(await axeFindings(page), [], `${scheme}: axe`)
    await page.screenshot({ path: `${FOLDER}/console-${scheme}.png` })
  }
})
