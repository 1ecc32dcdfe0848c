/** The console in Chromium, with an operator signed in: what tests of its screens share. */
import type { Page, Request } from 'playwright-core'
import type { Test } from 'tap'
import { until } from '../until.js'
import { axeFindings, isTooWide, openBrowser, takePicture, type Looking } from './browser.js'
import { addOperator, type NewAccount } from './operators.js'
import type { Installation } from './process.js'

export const WIDE: Looking = { shape: 'wide', scheme: 'light' }

type Served = Pick<Installation, 'json'> & { readonly baseUrl: string }

export interface Console {
  readonly page: Page
  /** Address of the operator. */
  readonly email: string
  /** Loads a path below `/console`. */
  readonly go: (path: string) => Promise<void>
  /** Opens a path below `/console` without loading the page again, as Back does. Messages of the screen before stay. */
  readonly turnTo: (path: string) => Promise<void>
  /** What the browser complained of, except what was expected. */
  readonly complaints: () => string[]
  /** Resolves once the screen has drawn what it asked the server for. */
  readonly settled: () => Promise<void>
  /** The current screen has no finding of axe, fits, and the browser complains of nothing. */
  readonly inspect: (name: string) => Promise<void>
}

export interface ConsoleOptions {
  readonly looking?: Looking
  readonly account?: NewAccount
  /** Complaints of the browser that the test causes, e.g. refused requests. */
  readonly expected?: RegExp
}

/** A browser whose operator is signed in; it shows nothing yet. */
export async function openConsole(
  t: Test,
  appliance: Served,
  { looking = WIDE, account = {}, expected }: ConsoleOptions = {},
): Promise<Console> {
  const { email, link } = await addOperator(appliance, account)
  const { page, complaints } = await (await openBrowser(t))(looking)
  await signInByLink(page, appliance, link)
  const settled = watchRequests(page)
  const urlOf = (path: string) => `${appliance.baseUrl}/console${path}`
  const unexpected = () => complaints.filter(text => !expected?.test(text))
  return {
    page,
    email,
    async go(path) {
      await page.goto(urlOf(path))
    },
    async turnTo(path) {
      await page.evaluate(
        `history.pushState(null, '', ${JSON.stringify(urlOf(path))}); dispatchEvent(new Event('popstate'))`,
      )
      await settled()
    },
    complaints: unexpected,
    settled,
    async inspect(name) {
      await settled()
      await takePicture(page, name, looking)
      t.same(await axeFindings(page), [], `${name}: axe`)
      t.equal(await isTooWide(page), false, `${name}: nothing is cut off`)
      t.same(unexpected(), [], `${name}: the browser complains of nothing`)
    },
  }
}

/** As the console does with a one-time link, without its screens: these take a second. */
export async function signInByLink(
  page: Page,
  { baseUrl }: Pick<Served, 'baseUrl'>,
  token: string,
): Promise<void> {
  const answered = await page.request.post(`${baseUrl}/api/admin/v1/session/link`, {
    data: { token },
    headers: { Origin: baseUrl, 'Sec-Fetch-Site': 'same-origin' },
  })
  if (!answered.ok()) throw new Error(`sign-in by link: ${answered.status()} ${await answered.text()}`)
}

/** @returns a function that resolves once no request is under way, and drawing what came causes no other */
export function watchRequests(page: Page): () => Promise<void> {
  let begun = 0
  let ended = 0
  // The stream of changes never ends.
  const isCounted = (url: string) => !url.includes('/live/stream')
  page.on('request', request => (begun += isCounted(request.url()) ? 1 : 0))
  const onEnded = (request: Request) => (ended += isCounted(request.url()) ? 1 : 0)
  page.on('requestfinished', onEnded)
  page.on('requestfailed', onEnded)
  return async () => {
    await page.getByRole('heading', { level: 1 }).first().waitFor({ state: 'attached' })
    await until('the requests of the screen to end', async () => {
      if (ended < begun) return false
      const before = begun
      // Two frames: what came is drawn, and what that causes has begun.
      await page.evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))')
      return begun === before && ended >= begun
    })
  }
}
