/**
 * Takes the pictures of the README: the console's overview after thirty days of mail, light and dark.
 *
 * Run by `make readme-pictures`. The clock is the test's, so that they show the same each time. It is a test only to be given a server and a
 * browser and have them closed.
 */
import { mkdirSync } from 'node:fs'
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { openConsole } from '../support/program/console.js'

const FOLDER = 'docs/images'
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

t.test('pictures of thirty days of mail are taken', async t => {
  const appliance = await openAfterMail(t)
  const { page, go, settled } = await openConsole(t, appliance)
  await page.setViewportSize(SIZE)
  await page.clock.setFixedTime(appliance.clock.now())
  mkdirSync(FOLDER, { recursive: true })
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme })
    await go('/')
    await page.getByText('Every accepted message is accounted for').waitFor()
    await page.locator('main svg[role="img"], main figure, main canvas').first().waitFor()
    await settled()
    await page.screenshot({ path: `${FOLDER}/console-${scheme}.png` })
  }
})
