/**
 * Debian's Chromium for tests of public pages: how they look on a phone and a desktop, by day and by night, and what axe finds in them.
 *
 * Nothing is downloaded. Scripts of the pages themselves would be refused by their policy; axe comes in by the debugger. Pictures are
 * taken only if `POSTROAD_PICTURES` names a folder for them.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import { chromium, type Browser, type Page } from 'playwright-core'
import type { Test } from 'tap'

export const CHROMIUM = '/usr/bin/chromium'
const PICTURES = process.env['POSTROAD_PICTURES'] ?? ''

export const BROWSER_FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

const SHAPES = {
  wide: { width: 1_280, height: 800 },
  narrow: { width: 360, height: 740 },
} as const

export interface Looking {
  readonly shape: keyof typeof SHAPES
  readonly scheme: 'light' | 'dark'
  readonly language?: string
}

export const ALL_LOOKS: readonly Looking[] = (['wide', 'narrow'] as const).flatMap(shape =>
  (['light', 'dark'] as const).map(scheme => ({ shape, scheme })),
)

export interface Visitor {
  readonly page: Page
  /** What the browser complained of: a policy that was broken, a thing that was not there. */
  readonly complaints: readonly string[]
}

/** One for all tests of a file: Chromium takes as long to start as a short test takes to run. */
let browser: Promise<Browser> | undefined

function startBrowser(t: Test): Promise<Browser> {
  const started = chromium.launch({ executablePath: CHROMIUM, headless: true, args: BROWSER_FLAGS })
  // The test that all tests of the file are in.
  const file = (t.parent ?? t) as unknown as { teardown(end: () => Promise<void>): void }
  file.teardown(async () => (await started).close())
  return started
}

/** Opens visitors, each with a separate profile that ends with the test. */
export async function openBrowser(t: Test): Promise<(looking: Looking) => Promise<Visitor>> {
  const running = await (browser ??= startBrowser(t))
  return async ({ shape, scheme, language = 'en' }) => {
    const context = await running.newContext({
      viewport: SHAPES[shape],
      colorScheme: scheme,
      locale: language,
      reducedMotion: 'reduce',
    })
    t.teardown(() => context.close())
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('console', message => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
    })
    page.on('pageerror', error => complaints.push(String(error)))
    return { page, complaints }
  }
}

const axeScript = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/**
 * What axe finds wrong with the current page: rule and element.
 *
 * @param within selector of the part that is looked at, e.g. a dialog above a page without findings; default: the whole page
 * @param rules `colours`: contrast alone, for a page that is also looked at in another scheme
 */
export async function axeFindings(
  page: Page,
  within = 'html',
  rules: 'all' | 'colours' = 'all',
): Promise<string[]> {
  // Reading the script takes longer than running it, and it stays until the document goes.
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(axeScript)
  const runOnly = rules === 'all' ? {} : { runOnly: ['color-contrast', 'link-in-text-block'] }
  const options = JSON.stringify({ resultTypes: ['violations'], ...runOnly })
  const { violations } = await page.evaluate<AxeResults>(`axe.run(${JSON.stringify(within)}, ${options})`)
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
}

/** Gives a page another form, as a window that is resized. */
export async function lookAs(page: Page, { shape, scheme }: Looking): Promise<void> {
  await page.setViewportSize(SHAPES[shape])
  await page.emulateMedia({ colorScheme: scheme })
}

/** All rules in the light; in the dark, of the same page, those about colours: nothing else changes with the scheme. */
export const rulesFor = ({ scheme }: Looking) => (scheme === 'light' ? 'all' : 'colours')

/** Whether something is wider than the screen. */
export function isTooWide(page: Page): Promise<boolean> {
  return page.evaluate<boolean>('document.documentElement.scrollWidth > window.innerWidth')
}

/** @param isWhole the whole page, not only what is in the window */
export async function takePicture(
  page: Page,
  name: string,
  { shape, scheme }: Looking,
  isWhole = true,
): Promise<void> {
  if (PICTURES === '') return
  mkdirSync(PICTURES, { recursive: true })
  await page.screenshot({ path: `${PICTURES}/${name}-${shape}-${scheme}.png`, fullPage: isWhole })
}
