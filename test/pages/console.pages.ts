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
import { addOperator } from '../support/program/operators.js'

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
  // The look for a session before the sign-in is answered 401, which the browser notes.
  const others = complaints.filter(text => !text.includes('status of 401'))
  t.same(others, [], `${at}: the browser complains of nothing`)
}

/** Path below /console, and the name of its picture. */
const SCREENS = [
  ['/', 'console-overview'],
  ['/messages', 'console-messages'],
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
  const looks = process.env['LOOKS'] ? ALL_LOOKS.slice(0, 1) : ALL_LOOKS
  for (const looking of looks) {
    await visitor.page.setViewportSize(
      looking.shape === 'wide' ? { width: 1_440, height: 900 } : { width: 390, height: 844 },
    )
    await visitor.page.emulateMedia({ colorScheme: looking.scheme })
    for (const [path, name] of SCREENS) {
      await visitor.page.goto(`${postroad.baseUrl}/console${path}`)
      await visitor.page.getByRole('heading', { level: 1 }).waitFor()
      await inspect(t, visitor, name, looking)
    }
  }
})
