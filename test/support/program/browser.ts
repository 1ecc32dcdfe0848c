/**
 * Debian's Chromium for tests of public pages: how they look on a phone and a desktop, by day and by night, and what axe finds in them.
 *
 * Nothing is downloaded. Scripts of the pages themselves would be refused by their policy; axe comes in by the debugger. Pictures are
 * left in `build/pages/`, to be looked at.
 */
import { mkdirSync } from 'node:fs'
import axe from 'axe-core'
import { chromium, type Browser, type Page } from 'playwright-core'
import type { Test } from 'tap'

export const CHROMIUM = '/usr/bin/chromium'
export const PICTURES = 'build/pages'

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

/** A browser that ends with the test; each visitor has a separate profile. */
export async function openBrowser(t: Test): Promise<(looking: Looking) => Promise<Visitor>> {
  const browser: Browser = await chromium.launch({
    executablePath: CHROMIUM,
    headless: true,
    args: BROWSER_FLAGS,
  })
  t.teardown(() => browser.close())
  mkdirSync(PICTURES, { recursive: true })
  return async ({ shape, scheme, language = 'en' }) => {
    const context = await browser.newContext({
      viewport: SHAPES[shape],
      colorScheme: scheme,
      locale: language,
      reducedMotion: 'reduce',
    })
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('console', message => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
    })
    page.on('pageerror', error => complaints.push(String(error)))
    return { page, complaints }
  }
}

/** What axe finds wrong with the current page: rule and element. */
export async function axeFindings(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<axe.AxeResults>('axe.run()')
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
}

/** Whether something is wider than the screen. */
export function isTooWide(page: Page): Promise<boolean> {
  return page.evaluate<boolean>('document.documentElement.scrollWidth > window.innerWidth')
}

export async function takePicture(page: Page, name: string, { shape, scheme }: Looking): Promise<void> {
  await page.screenshot({ path: `${PICTURES}/${name}-${shape}-${scheme}.png`, fullPage: true })
}
