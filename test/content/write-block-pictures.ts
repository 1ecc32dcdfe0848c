/**
 * Draws each block as `docs/blocks.md` shows it, with Debian's Chromium.
 *
 * Run from the project's folder: `node build/test/content/write-block-pictures.js`. Its pictures are committed.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { readStructure } from '../../src/content/blocks/read-structure.js'
import { renderStructure } from '../../src/content/blocks/render-structure.js'
import { BLOCK_TYPES } from '../../src/content/blocks/structure.js'
import { parseTemplate } from '../../src/content/merge/parse-template.js'
import { renderTemplate } from '../../src/content/merge/render-template.js'
import { CHROMIUM } from '../support/program/browser.js'
import { exampleBlock, PICTURES } from './blocks-page.js'

const DATA = {
  first_name: 'Ann',
  'attributes.plan': 'pro',
  items: [
    { quantity: 2, name: 'Blue mug' },
    { quantity: 1, name: 'Teapot' },
  ],
}

/** Stands in for the pictures that the examples name. */
const MUG = `<svg xmlns="http://www.w3.org/2000/svg" width="480" height="240"><rect width="480" height="240" fill="#dbeafe"/>
<rect x="170" y="60" width="110" height="130" rx="14" fill="#2563eb"/><path d="M280 90h34v66h-34" fill="none" stroke="#2563eb" stroke-width="16"/></svg>`

mkdirSync(PICTURES, { recursive: true })
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  headless: true,
  args: ['--no-sandbox', '--disable-gpu'],
})
const page = await browser.newPage({ viewport: { width: 640, height: 400 } })
await page.route('https://shop.example/**', route =>
  route.fulfill({ contentType: 'image/svg+xml', body: MUG }),
)
for (const type of BLOCK_TYPES) {
  const html = renderStructure(
    readStructure({ blocks: [exampleBlock(type)], settings: { backgroundColor: '#ffffff' } }),
  )
  await page.setContent(renderTemplate(parseTemplate(html, 'html'), { system: {}, data: DATA }), {
    waitUntil: 'load',
  })
  await page
    .locator('body > table > tbody > tr > td > table')
    .screenshot({ path: join(PICTURES, `${type}.png`) })
}
await browser.close()
