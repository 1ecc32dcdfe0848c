/**
 * Mail made of blocks in a browser, on a phone and a desktop, with its pictures and while none of them loads; and forms in pages elsewhere.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import type { Page } from 'playwright-core'
import t from 'tap'
import { readStructure } from '../../src/content/blocks/read-structure.js'
import { renderStructure } from '../../src/content/blocks/render-structure.js'
import { BLOCK_TYPES } from '../../src/content/blocks/structure.js'
import { parseTemplate } from '../../src/content/merge/parse-template.js'
import { renderTemplate } from '../../src/content/merge/render-template.js'
import { embedded } from '../../src/audience/forms/form-html.js'
import { en } from '../../src/http/public/languages/en.js'
import { exampleBlock } from '../content/blocks-page.js'
import { ALL_LOOKS, axeFindings, isTooWide, openBrowser, takePicture } from '../support/program/browser.js'

const ALT = 'A blue mug on a wooden table'
const image = (content: object) => ({
  id: 'i',
  type: 'image',
  content: { src: 'https://shop.example/mug.png', alt: ALT, ...content },
})
const PICTURES = [
  image({ width: 'full' }),
  image({ width: 'full', url: 'https://shop.example/' }),
  image({ width: 'auto' }),
  image({ width: 520, alignment: 'left' }),
  { id: 'h', type: 'hero', content: { src: 'https://shop.example/mug.png', alt: ALT, title: 'Sale' } },
  { id: 'p', type: 'profile', content: { src: 'https://shop.example/ann.png', name: 'Ann Miller' } },
  {
    id: 'c',
    type: 'columns',
    content: { columns: [{ blocks: [image({ width: 'full' })] }, { blocks: [image({ width: 'auto' })] }] },
  },
]
/** Larger than any mail. */
const BIG =
  '<svg xmlns="http://www.w3.org/2000/svg" width="1600" height="400"><rect width="1600" height="400" fill="#2563eb"/></svg>'

function mailOf(blocks: readonly object[]): string {
  const html = renderStructure(readStructure({ blocks }))
  const data = { first_name: 'Ann', items: [{ quantity: 2, name: 'Mug' }] }
  return renderTemplate(parseTemplate(html, 'html'), { system: {}, data })
}

/** Pictures that reach out of the screen, or whose words do. */
function widePictures(page: Page): Promise<number> {
  return page.evaluate<number>(
    `[...document.images].filter(image => image.getBoundingClientRect().right > window.innerWidth).length`,
  )
}

for (const looking of ALL_LOOKS) {
  const { shape, scheme } = looking
  t.test(`mail of blocks can be read: ${shape}, ${scheme}`, async t => {
    const see = await openBrowser(t)
    for (const loads of [true, false]) {
      const { page } = await see(looking)
      await page.route('https://shop.example/**', route =>
        loads ? route.fulfill({ contentType: 'image/svg+xml', body: BIG }) : route.abort(),
      )
      const name = `blocks-${loads ? 'loaded' : 'without-pictures'}`
      await page.setContent(mailOf([...PICTURES, ...BLOCK_TYPES.map(exampleBlock)]), { waitUntil: 'load' })
      await takePicture(page, name, looking)
      t.equal(await isTooWide(page), false, `${name}: nothing is wider than the screen`)
      t.equal(await widePictures(page), 0, `${name}: no picture is`)
      // Subjects are no part of a structure, and a mail has no landmarks.
      const findings = (await axeFindings(page)).filter(
        one => !/^(document-title|region|landmark|page-has)/.test(one),
      )
      t.same(findings, [], `${name}: axe`)
    }
  })
}

t.test(
  'a form in a page elsewhere hides its hidden field, whatever the style and policy of that page',
  async t => {
    const see = await openBrowser(t)
    const form = {
      id: '0192f000-0000-7000-8000-00000000abcd',
      workspaceId: '0192f000-0000-7000-8000-00000000abce',
      name: 'x',
      title: null,
      description: null,
      listIds: [],
      fields: [{ name: 'terms', label: 'I agree', type: 'checkbox' as const, required: true, options: [] }],
      redirectUrl: null,
      doubleOptIn: false,
      createdAt: 0,
      updatedAt: 0,
    }
    const snippet = embedded({ form, texts: en }, 'https://mail.shop.example/f/1')
    const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'">`
    const { page, complaints } = await see({ shape: 'narrow', scheme: 'light' })
    const pageOf = (head: string) =>
      `<!doctype html><html lang="en"><head><title>Shop</title>${head}</head><body><main><h1>Shop</h1>${snippet}</main></body></html>`
    await page.setContent(pageOf(policy))
    t.equal(await page.locator('input[name=leave_blank]').isVisible(), false)
    t.equal(await page.getByText('Leave this field empty').isVisible(), false)
    t.same(complaints, [])
    t.same(await axeFindings(page), [])
    await page.setContent(pageOf('<style>form div { display: grid }</style>'))
    await page.locator('input[type=email]').focus()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    t.equal(await page.evaluate<string>('document.activeElement.localName'), 'button', 'no key leads to it')
  },
)
