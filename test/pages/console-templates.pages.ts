/**
 * The template editor in the console: a mail built by dragging and again by the keyboard alone, previewed, kept, and edited by two at once.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import type { Locator, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { picture } from '../support/content/images.js'
import { openTestAppliance } from '../support/program/appliance.js'
import type { Looking } from '../support/program/browser.js'
import { openConsole, WIDE } from '../support/program/console.js'

const TICK_MS = 250

async function open(t: Test, looking: Looking = WIDE) {
  const appliance = await openTestAppliance(t)
  const { key } = appliance
  // A version that somebody else has saved is refused with 412.
  const { page, go, inspect } = await openConsole(t, appliance, { looking, expected: /status of 412/ })
  const api = async (method: 'get' | 'post' | 'patch', path: string, body: object = {}) => {
    const answer =
      method === 'get'
        ? await appliance.get(`/api/v1${path}`, { key })
        : await appliance[method](`/api/v1${path}`, body, { key })
    return answer.body.data
  }
  return {
    page,
    api,
    go,
    inspect,
    /** Screens hear of changes once a second of the server's clock; renderings would time out by a clock that always runs fast. */
    hears: async (seen: Promise<unknown>) => {
      const ticking = setInterval(() => void appliance.clock.advance(1_000), TICK_MS)
      await seen.finally(() => clearInterval(ticking))
    },
    idInUrl: () => /templates\/([\w-]+)/.exec(page.url())?.[1] ?? '',
  }
}

const canvas = (page: Page) => page.getByRole('region', { name: 'Mail' })
const block = (page: Page, name: RegExp) => canvas(page).getByRole('group', { name })
const tile = (page: Page, name: string) =>
  page.getByRole('list', { name: 'Types of blocks' }).getByRole('button', { name, exact: true })

async function blankTemplate(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'New template' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'New template' })
  await dialog.getByLabel('Name').fill(name)
  await dialog.getByRole('radio', { name: 'Blank' }).check()
  await dialog.getByRole('button', { name: 'Create' }).click()
  await page.getByText('Drag a block here').waitFor()
}

interface Structure {
  readonly blocks: readonly { readonly type: string; readonly content: Content }[]
}

interface Content {
  readonly html?: string
  readonly text?: string
  readonly columns?: readonly Structure[]
}

/** Types and texts, nested as the blocks are. */
function outline({ blocks }: Structure): unknown[] {
  return blocks.map(({ type, content: { html, text = '', columns } }) =>
    columns ? columns.map(outline) : `${type}: ${html ?? text}`,
  )
}

t.test('a template begins blank, and is previewed for a contact, on a phone and in the dark', async t => {
  const { page, api, go, idInUrl, inspect } = await open(t)
  await api('post', '/contacts', { email: 'ann@recipient.example', first_name: 'Ann' })
  await go('/templates')
  await page.getByText('No templates').waitFor()
  await inspect('console-templates-empty')
  await blankTemplate(page, 'By mouse')
  await inspect('console-template-blank')

  await tile(page, 'Heading').click()
  await block(page, /^Heading/)
    .getByRole('textbox')
    .fill('Hello ')
  await page
    .getByRole('toolbar', { name: 'Text tools' })
    .getByRole('button', { name: 'Insert a merge tag' })
    .click()
  await page.getByLabel('If there is no value').fill('there')
  await page.getByRole('button', { name: /^First name/ }).click()
  await inspect('console-template-blocks')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved as version 2').waitFor()
  const stored = async () => outline((await api('get', `/templates/${idInUrl()}`)).json_structure)
  t.same(await stored(), ['header: Hello {{first_name|there}}'])

  await page.getByRole('button', { name: 'Preview' }).click()
  const mail = page.frameLocator('iframe[title="Preview"]')
  await mail.getByText('Hello there').waitFor()
  await page.getByRole('button', { name: 'Without a contact' }).click()
  await page.getByRole('button', { name: /^Ann/ }).click()
  await mail.getByText('Hello Ann').waitFor()
  await page.getByRole('button', { name: 'Phone' }).click()
  await page.getByRole('button', { name: 'Dark' }).click()
  await inspect('console-template-preview')
  t.match(page.url(), /view=preview.*device=phone/, 'the view can be shared')
})

/** Two columns, with a text in the second one. */
const COLUMNS = [
  {
    id: 'c',
    type: 'columns',
    content: {
      columns: [{ blocks: [] }, { blocks: [{ id: 'a', type: 'text', content: { html: '<p>Typed</p>' } }] }],
    },
  },
]

t.test('a block is dragged by its handle to another column, and back by undo', async t => {
  const { page, api, go } = await open(t)
  const { id } = await api('post', '/templates', { name: 'Columns', json_structure: { blocks: COLUMNS } })
  await go(`/templates/${id}`)
  const text = block(page, /^Text/)
  await text.hover()
  await text.click()
  await text.getByTitle('Drag to move').dragTo(canvas(page).getByRole('list', { name: 'Column 1' }))
  await page.getByText('Text moved to position 1 of 1 in Columns, Column 1.').waitFor()
  await page.getByRole('button', { name: 'Undo' }).click()
  await canvas(page).getByRole('list', { name: 'Column 2' }).getByText('Typed').waitFor()
  t.equal(await page.getByText(/^Not saved/).count(), 0, 'nothing is left to be saved')
})

/** What has the focus, by its label or its text. */
const focused = (page: Page) =>
  page.evaluate<string>(
    "(document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText ?? '').trim()",
  )

/** An element of the page, as far as it is needed here. */
interface Opener {
  click(): void
  readonly ownerDocument: { readonly activeElement: unknown }
  readonly popoverTargetElement: { contains(element: unknown): boolean }
}

/** Whether the focus is in the menu of a button before its click is over: keys that follow at once go there. */
const takesFocus = (opener: Locator) =>
  opener.evaluate(element => {
    const button = element as unknown as Opener
    button.click()
    return button.popoverTargetElement.contains(button.ownerDocument.activeElement)
  })

t.test('menus of the editor have the focus as soon as they are asked for', async t => {
  const { page, api, go } = await open(t)
  await api('post', '/contacts', { email: 'ann@recipient.example', first_name: 'Ann' })
  const { id } = await api('post', '/templates', { name: 'Columns', json_structure: { blocks: COLUMNS } })
  await go(`/templates/${id}`)
  const close = () => page.keyboard.press('Escape')
  const adding = canvas(page).locator('button[aria-haspopup=menu][popovertarget$=-types]').first()
  t.equal(await takesFocus(adding), true, 'blocks')
  await close()
  await block(page, /^Text/).getByText('Typed').click()
  const tool = page
    .getByRole('toolbar', { name: 'Text tools' })
    .getByRole('button', { name: 'Insert a merge tag' })
  t.equal(await takesFocus(tool), true, 'merge tags')
  await close()
  await page.getByRole('button', { name: 'Preview' }).click()
  t.equal(await takesFocus(page.getByRole('button', { name: 'Without a contact' })), true, 'contacts')
})

t.test('blocks are formatted, duplicated, moved and deleted by the keyboard alone', async t => {
  const { page, api, go } = await open(t)
  const { id } = await api('post', '/templates', { name: 'Columns', json_structure: { blocks: COLUMNS } })
  await go(`/templates/${id}`)
  const announced = (text: string) => page.getByText(text, { exact: true }).waitFor()
  const press = async (...keys: readonly string[]) => {
    for (const key of keys) await page.keyboard.press(key)
  }
  await block(page, /^Text/).focus()
  await press('Alt+ArrowLeft')
  await announced('Text moved to position 1 of 1 in Columns, Column 1.')
  t.match(await focused(page), /^Text, 1 of 1$/, 'the focus goes along')
  await press('Enter', 'Control+a')
  await page.keyboard.type('Typed ')
  await press('Control+b')
  await page.keyboard.type('boldly')
  await press('Escape')
  t.match(await focused(page), /^Text, 1 of 1$/)

  await press('Control+d', 'Alt+ArrowRight')
  await announced('Text moved to position 1 of 1 in Columns, Column 2.')
  await press('Delete')
  await announced('Text removed.')
  await press('Control+z')
  await announced('Undone.')
  await press('ArrowUp', 'ArrowUp')

  await press('Control+s')
  await page.getByText('Saved as version 2').waitFor()
  const html = '<p>Typed <strong>boldly</strong></p>'
  const wanted = [[[`text: ${html}`], [`text: ${html}`]]]
  t.same(outline((await api('get', `/templates/${id}`)).json_structure), wanted)
  await page.reload()
  await canvas(page).getByRole('list', { name: 'Column 1' }).getByText('Typed boldly').waitFor()
})

t.test('Enter leads to the text of a block, also while what edits it is still being loaded', async t => {
  const { page, api, go, idInUrl } = await open(t)
  let release = (): void => {}
  const released = new Promise<void>(resolve => (release = resolve))
  await page.route(/\/text-view-[^/]*\.js$/, async route => {
    await released
    await route.continue()
  })
  await go('/templates')
  await blankTemplate(page, 'In a hurry')
  await tile(page, 'Heading').press('Enter')
  await page.getByText('Heading added at position 1 of 1.', { exact: true }).waitFor()
  const heading = block(page, /^Heading/)
  t.equal(await heading.getByRole('textbox').count(), 0, 'it cannot be edited yet')
  await page.keyboard.press('Enter')
  // Keys of the console: nothing that is typed at a text leads elsewhere.
  for (const key of ['g', 'o', '?']) await page.keyboard.press(key)
  release()
  await heading.getByRole('textbox').and(page.locator(':focus')).waitFor()
  await page.keyboard.press('Control+a')
  await page.keyboard.type('Hello ')
  const tool = page
    .getByRole('toolbar', { name: 'Text tools' })
    .getByRole('button', { name: 'Insert a merge tag' })
  await tool.press('Enter')
  await page.getByRole('button', { name: /^First name/ }).press('Enter')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved as version 2').waitFor()
  const stored = (await api('get', `/templates/${idInUrl()}`)).json_structure
  t.same(outline(stored), ['header: Hello {{first_name}}'])
})

t.test('a merge tag comes after a text that was typed beside the canvas', async t => {
  const { page, api, go, idInUrl } = await open(t)
  await go('/templates')
  await blankTemplate(page, 'Beside')
  await tile(page, 'Heading').click()
  await page.locator('#block-fields').getByLabel('Text', { exact: true }).fill('Hello ')
  await block(page, /^Heading/)
    .getByText('Hello')
    .waitFor()
  const tool = page
    .getByRole('toolbar', { name: 'Text tools' })
    .getByRole('button', { name: 'Insert a merge tag' })
  await tool.click()
  await page.getByRole('button', { name: /^First name/ }).click()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved as version 2').waitFor()
  const stored = (await api('get', `/templates/${idInUrl()}`)).json_structure
  t.same(outline(stored), ['header: Hello {{first_name}}'])
})

t.test('what is typed is kept through a reload, and nobody overwrites anybody unwarned', async t => {
  const { page, api, go, hears, inspect } = await open(t)
  const blocks = [{ id: 'a', type: 'text', content: { html: '<p>First</p>' } }]
  const { id } = await api('post', '/templates', { name: 'Shared', json_structure: { blocks } })
  await go(`/templates/${id}`)
  const text = () => block(page, /^Text/).getByRole('textbox')
  await text().fill('Mine')
  await page.getByText(/kept in this browser/).waitFor()
  await page.reload()
  await page.getByText(/These are your unsaved changes/).waitFor()
  t.equal(await text().innerText(), 'Mine')

  await api('patch', `/templates/${id}`, { name: 'Theirs' })
  await hears(page.getByText(/Someone else has changed this/).waitFor())
  await inspect('console-template-conflict')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText(/Someone else has changed this/).waitFor()
  t.equal(await text().innerText(), 'Mine', 'what was typed stays')
  t.match(await api('get', `/templates/${id}`), { name: 'Theirs', version: 2 }, 'nothing was overwritten')
  await page.getByRole('button', { name: 'Reload' }).click()
  await canvas(page).getByText('First').waitFor()
  await page.getByRole('button', { name: 'Undo' }).click()
  t.equal(await text().innerText(), 'Mine', 'the way back leads to what was typed')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved as version 3').waitFor()
  t.match(await api('get', `/templates/${id}`), { name: 'Theirs', html: /Mine/ })

  await page.getByRole('button', { name: 'More' }).click()
  await page.getByRole('button', { name: 'Versions' }).click()
  const versions = page.getByRole('dialog', { name: 'Versions' })
  await versions.getByRole('button', { name: /^Version 1/ }).click()
  await versions.frameLocator('iframe').getByText('First').waitFor()
  await versions.getByRole('button', { name: 'Side by side' }).click()
  await versions.getByText('1 change, outlined in both.').waitFor()
  const outlined = '[style*="outline: "]'
  for (const [title, text] of [
    ['Version 1', 'First'],
    ['Version 3', 'Mine'],
  ])
    t.match(await versions.frameLocator(`iframe[title="${title}"]`).locator(outlined).innerText(), text)
  await inspect('console-template-compare')
  await versions.getByRole('button', { name: 'Changes since' }).click()
  await versions.locator('ins').getByText('Mine').waitFor()
  await inspect('console-template-versions')
  await versions.getByRole('button', { name: 'Restore this version' }).click()
  await canvas(page).getByText('First').waitFor()
  t.match(await api('get', `/templates/${id}`), { name: 'Shared', version: 4 })

  await page.getByRole('button', { name: 'More' }).click()
  await page.getByRole('button', { name: 'Delete' }).last().click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No templates').waitFor()
  await page.getByRole('button', { name: 'Undo' }).last().click()
  await canvas(page).getByText('First').waitFor()
})

t.test('an image of the media library comes into a mail with its alt text', async t => {
  const { page, api, go, idInUrl, inspect } = await open(t)
  await go('/templates')
  await blankTemplate(page, 'With an image')
  await tile(page, 'Image').dragTo(page.getByText('Drag a block here'))
  await page.getByRole('button', { name: 'Choose an image' }).click()
  const dialog = page.getByRole('dialog', { name: 'Choose an image' })
  const buffer = await picture('jpeg', 700, 400)
  await dialog
    .getByLabel('Upload images')
    .setInputFiles({ name: 'bicycle.jpg', mimeType: 'image/jpeg', buffer })
  await dialog.getByRole('button', { name: 'bicycle.jpg', pressed: true }).waitFor()
  await dialog.getByLabel('Alt text of bicycle.jpg').fill('A red bicycle')
  await inspect('console-template-picker')
  await dialog.getByRole('button', { name: 'Use image' }).click()
  await dialog.waitFor({ state: 'hidden' })
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved as version 2').waitFor()
  const { blocks } = (await api('get', `/templates/${idInUrl()}`)).json_structure
  t.match(blocks, [{ type: 'image', content: { src: /\/m\/[0-9a-f]+\.jpg$/, alt: 'A red bicycle' } }])
  const [image] = await api('get', '/media')
  t.match(image, { file_name: 'bicycle.jpg', alt_text: 'A red bicycle' })
})

t.test(
  'a block with what is in it is saved under a name, and inserted into another mail as a copy',
  async t => {
    const { page, api, go, inspect } = await open(t)
    const address = { id: 'a', type: 'text', content: { html: '<p>1 High Street</p>' } }
    const find = { id: 'b', type: 'button', content: { label: 'Find us', href: 'https://shop.example/' } }
    const blocks = [
      { id: 'c', type: 'columns', content: { columns: [{ blocks: [address] }, { blocks: [find] }] } },
    ]
    const first = await api('post', '/templates', { name: 'First', json_structure: { blocks } })
    const hole = { id: 'd', type: 'dropshadow', content: { blocks: [] } }
    const second = await api('post', '/templates', { name: 'Second', json_structure: { blocks: [hole] } })

    await go(`/templates/${first.id}`)
    await page.getByText('Select a block and save it').waitFor()
    const selectAround = async (name: string) => {
      await block(page, /^Text/).first().click()
      await page
        .getByRole('navigation', { name: 'Containers around it' })
        .getByRole('button', { name })
        .click()
    }
    await selectAround('Columns')
    await page.getByRole('button', { name: 'Save block' }).click()
    const dialog = page.getByRole('dialog', { name: 'Save block' })
    await dialog.getByLabel('Name').fill('Addresses')
    await inspect('console-template-save-block')
    await dialog.getByRole('button', { name: 'Save' }).click()
    const saved = page.getByRole('list', { name: 'Saved blocks' })
    await saved.getByRole('button', { name: 'Addresses', exact: true }).waitFor()
    const [head] = await api('get', '/saved-blocks')
    t.same((await api('get', `/saved-blocks/${head.id}`)).json_structure, { blocks }, 'as it was written')

    t.comment('by dragging, by a click and from the menu of a place')
    await go(`/templates/${second.id}`)
    const tile = saved.getByRole('button', { name: 'Addresses', exact: true })
    await tile.dragTo(block(page, /^Card/), { targetPosition: { x: 100, y: 4 } })
    await block(page, /^Columns, 1 of 2/).waitFor()
    await block(page, /^Columns, 1 of 2/)
      .getByRole('textbox')
      .first()
      .fill('2 Low Street')
    await block(page, /^Card/).click({ position: { x: 4, y: 4 } })
    await tile.click()
    await block(page, /^Columns, 3 of 3/).waitFor()
    await page.getByRole('button', { name: 'Add a block: Inside' }).click()
    await page.getByRole('menuitem', { name: 'Addresses' }).click()
    await block(page, /^Columns, 1 of 1/).waitFor()
    await inspect('console-template-saved-blocks')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('Saved as version 2').waitFor()
    const { json_structure: structure } = await api('get', `/templates/${second.id}`)
    const copy = [['text: <p>1 High Street</p>'], ['button: ']]
    t.same(outline(structure).slice(2), [copy])
    t.match(outline(structure), [[['text: <p>2 Low Street</p>']]])
    const ids = [...JSON.stringify(structure).matchAll(/"id":"([^"]+)"/g)].map(([, id]) => id)
    t.equal(new Set(ids).size, ids.length, 'copies have ids of their own')
    t.same((await api('get', `/saved-blocks/${head.id}`)).json_structure, { blocks }, 'what is saved stays')

    t.comment('saved again under its name, deleted, and back')
    await selectAround('Columns')
    await page.getByRole('button', { name: 'Save block' }).click()
    await dialog.getByLabel('Name').fill('addresses')
    await dialog.getByText('Replaces what is saved').waitFor()
    await dialog.getByRole('button', { name: 'Replace' }).click()
    await dialog.waitFor({ state: 'hidden' })
    t.match(await api('get', `/saved-blocks/${head.id}`), {
      name: 'Addresses',
      json_structure: { blocks: [{}] },
    })
    t.match(JSON.stringify((await api('get', `/saved-blocks/${head.id}`)).json_structure), '2 Low Street')
    await saved.getByRole('button', { name: 'Delete the saved block “Addresses”' }).click()
    await page.getByText('Select a block and save it').waitFor()
    await page.getByRole('button', { name: 'Undo' }).last().click()
    await tile.waitFor()
    t.match(await api('get', '/saved-blocks'), [{ name: 'Addresses' }])
  },
)

t.test('saved blocks are renamed: a name that is taken, and what others did meanwhile, is said', async t => {
  const { page, api, go, hears, inspect } = await open(t)
  const structure = { blocks: [{ id: 'a', type: 'text', content: { html: '<p>1 High Street</p>' } }] }
  const { id } = await api('post', '/saved-blocks', { name: 'Adresses', json_structure: structure })
  await api('post', '/saved-blocks', { name: 'Footer', json_structure: structure })
  const template = await api('post', '/templates', { name: 'First', json_structure: structure })
  await go(`/templates/${template.id}`)
  const saved = page.getByRole('list', { name: 'Saved blocks' })
  const names = async () => (await saved.getByRole('listitem').allInnerTexts()).map(text => text.trim())
  await saved.getByRole('button', { name: 'Rename the saved block “Adresses”' }).press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Rename the saved block “Adresses”' })
  const rename = dialog.getByRole('button', { name: 'Rename' })
  t.equal(await rename.isDisabled(), true, 'it has this name')
  await dialog.getByLabel('Name').fill('footer ')
  await dialog.getByText('Another saved block is called “footer”.').waitFor()
  t.equal(await rename.isDisabled(), true)
  await inspect('console-template-rename-saved')

  t.comment('renamed by somebody else while the dialog is open, before the screen hears of it')
  await dialog.getByLabel('Name').fill('Addresses')
  await api('patch', `/saved-blocks/${id}`, { name: 'Streets' })
  await rename.click()
  await dialog.getByText('It is called “Streets” by now').waitFor()
  t.match(await api('get', `/saved-blocks/${id}`), { name: 'Streets' })
  t.equal(await dialog.getByLabel('Name').inputValue(), 'Addresses')
  await rename.click()
  await page.getByText('It is now called “Addresses”').waitFor()
  await dialog.waitFor({ state: 'hidden' })
  t.match(await api('get', `/saved-blocks/${id}`), { name: 'Addresses', json_structure: structure })
  t.same(await names(), ['Addresses', 'Footer'])

  t.comment('a change of what it holds is no conflict')
  await saved.getByRole('button', { name: 'Rename the saved block “Footer”' }).click()
  const footer = page.getByRole('dialog', { name: 'Rename the saved block “Footer”' })
  await footer.getByLabel('Name').fill('Ending')
  const [head] = await api('get', '/saved-blocks?search=Footer')
  const other = { blocks: [{ id: 'z', type: 'text', content: { html: '<p>Bye</p>' } }] }
  await api('patch', `/saved-blocks/${head.id}`, { json_structure: other })
  await footer.getByLabel('Name').press('Enter')
  await footer.waitFor({ state: 'hidden' })
  t.match(await api('get', `/saved-blocks/${head.id}`), { name: 'Ending', json_structure: other })
  await api('post', '/saved-blocks', { name: 'Another', json_structure: structure })
  await hears(saved.getByRole('button', { name: 'Another', exact: true }).waitFor())
})

t.test('the tools of a text are whole wherever it stands', async t => {
  for (const shape of ['wide', 'narrow'] as const) {
    const { page, api, go, inspect } = await open(t, { shape, scheme: 'light' })
    const text = (id: string) => ({ id, type: 'text', content: { html: `<p>${id}</p>` } })
    const column = (id: string) => ({ blocks: [text(id)], width: 25 })
    const columns = ['one', 'two', 'three', 'four'].map(column)
    const structure = { blocks: [{ id: 'c', type: 'columns', content: { columns } }] }
    const { id } = await api('post', '/templates', { name: 'Narrow', json_structure: structure })
    await go(`/templates/${id}`)
    for (const words of ['one', 'four']) {
      await canvas(page).getByText(words, { exact: true }).click()
      const tools = page.getByRole('toolbar', { name: 'Text tools' })
      const whole = async (name: string) => {
        const [first, last] = [tools.getByRole('combobox'), tools.getByRole('button', { name })]
        // What is cut off or covered cannot be clicked.
        await first.click({ trial: true })
        await last.click({ trial: true })
      }
      await whole('Insert a merge tag')
      await tools.getByRole('button', { name: 'Link', exact: true }).click()
      await tools.getByRole('textbox', { name: 'Link' }).waitFor()
      await whole('Apply')
      if (words === 'one') await inspect('console-template-text-tools')
      await tools.getByRole('textbox', { name: 'Link' }).press('Escape')
    }
  }
})

t.test('documents made elsewhere open without loss, and are changed only where they are edited', async t => {
  const { page, api, go } = await open(t)
  const foreign = 'Kept <table style="mso-table-lspace:0"><tr><td>as it is</td></tr></table>'
  const structure = {
    blocks: [
      { id: 'same', type: 'header', content: { title: 'Other spelling', text_color: '#123456' } },
      { id: 'same', type: 'text', content: { content: foreign } },
      {
        id: 'c',
        type: 'dropshadow',
        content: { bg_color: '#ffffff', children: [{ id: '', type: 'spacer', content: {} }] },
      },
    ],
    settings: { content_width: 500 },
  }
  const { id } = await api('post', '/templates', { name: 'Foreign', json_structure: structure })
  await go(`/templates/${id}`)
  await canvas(page).frameLocator('iframe').getByText('as it is').waitFor()
  await block(page, /^Heading/)
    .getByRole('textbox')
    .fill('Edited')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved as version 2').waitFor()
  const [first, ...others] = structure.blocks
  t.same((await api('get', `/templates/${id}`)).json_structure, {
    ...structure,
    blocks: [{ ...first, content: { title: 'Edited', text_color: '#123456' } }, ...others],
  })
})

t.test('HTML is edited as code beside its preview', async t => {
  const { page, api, go, inspect } = await open(t)
  const { id } = await api('post', '/templates', { name: 'Code', html: '<p>Hello</p>' })
  await go(`/templates/${id}`)
  const code = page.getByRole('textbox', { name: 'HTML' })
  await code.fill('<p>Goodbye {{first_name|friend}}</p>')
  await page.frameLocator('iframe[title="Preview"]').getByText('Goodbye friend').waitFor()
  await inspect('console-template-html')
  await code.fill('<p>{{#if x}}</p>')
  await page.getByText(/line 1/).waitFor()
  await code.fill('<p>Fine</p>')
  await page.keyboard.press('Control+s')
  await page.getByText('Saved as version 2').waitFor()
  t.match(await api('get', `/templates/${id}`), { html: '<p>Fine</p>', json_structure: null })
})

t.test('on a phone, blocks are added from a menu and changed in a sheet', async t => {
  const { page, go, inspect } = await open(t, { shape: 'narrow', scheme: 'dark' })
  await go('/templates')
  await page.getByRole('heading', { level: 1 }).waitFor()
  await blankTemplate(page, 'By thumb')
  await page.getByRole('button', { name: 'Add a block', exact: true }).click()
  await page.getByRole('menuitem', { name: 'Button' }).click()
  await block(page, /^Button/).waitFor()
  await page.getByRole('button', { name: 'Properties' }).click()
  await page.getByLabel('Link', { exact: true }).fill('https://shop.example/')
  await inspect('console-template-phone')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved as version 2').waitFor()
})
