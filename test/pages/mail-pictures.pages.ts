/**
 * What the editor's preview shows is what arrives: of random block documents both are the same HTML, but for links that are counted, and their
 * pictures agree pixel by pixel on a desktop and a phone.
 *
 * The mail is the one in the local inbox, decoded, with tracked opens and clicks as usual. Run by `make test-pages`, for which Debian's
 * Chromium has to be there.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { simpleParser } from 'mailparser'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { picture } from '../support/content/images.js'
import { randomOf, randomStructure } from '../support/content/random-structure.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { openBrowser } from '../support/program/browser.js'

const DOCUMENTS = 50
/** So many of them are drawn. */
const DRAWN = 12
const SHAPES = ['wide', 'narrow'] as const
/** Where pictures that differ are left. */
const PICTURES = 'build/pages'

interface Rendered {
  readonly preview: string
  readonly mail: string
}

async function open(t: Test) {
  const appliance = await openTestAppliance(t)
  await appliance.run('workspace', 'set', appliance.workspaceId, 'company_address=1 High Street')
  const key = await appliance.makeKey()
  const post = async (path: string, body: object) =>
    (await appliance.post(`/api/v1${path}`, body, { key })).body.data
  const { id: contact_id } = await post('/contacts', {
    ...{ email: 'ann@one.test', first_name: 'Ann', attributes: { plan: 'pro' } },
  })
  const template_data = { items: [{ name: 'tea' }, { name: 'cup' }], total: 120 }
  return {
    render: async (json_structure: object): Promise<Rendered> => {
      const { id: template_id } = await post('/templates', { name: 'Random', json_structure })
      const preview = await post('/templates/preview', { json_structure, contact_id, template_data })
      const sent = await appliance.send(key, {
        ...{ to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello' },
        ...{ template_id, template_data },
      })
      if (sent.status !== 200) throw new Error(JSON.stringify(sent.body))
      const id = String(sent.body.data.results[0].message_id)
      await appliance.messageOnce(key, id, 'delivered')
      const raw = Buffer.from(String((await appliance.get(`/capture/${id}`)).body.data.raw), 'latin1')
      return { preview: String(preview.html), mail: String((await simpleParser(raw)).html) }
    },
  }
}

/** Nothing is fetched from elsewhere: every image of a mail is this one, but for the one that counts opens. */
async function serveImages(page: Page): Promise<void> {
  const photo = await picture('png', 640, 300)
  await page.route('**/*', route => {
    const isPhoto = route.request().url().startsWith('https://shop.example/')
    return isPhoto ? route.fulfill({ contentType: 'image/png', body: photo }) : route.fulfill({ status: 204 })
  })
}

/** What is seen of a mail: without where links lead, and without the image that counts opens. */
const seenOf = (html: string) =>
  html
    .replace(/ href="[^"]*"/g, ' href')
    .replace(/<img [^>]*\/o\/[^>]*>/, '')
    .trimEnd()

const hasLink = (html: string) => html.includes('href="https://shop.example/"')

async function pictureOf(page: Page, html: string): Promise<Buffer> {
  await page.setContent(html, { waitUntil: 'load' })
  return page.screenshot({ fullPage: true, animations: 'disabled' })
}

t.test('the preview and the received mail are the same, and agree pixel by pixel', async t => {
  const { render } = await open(t)
  const see = await openBrowser(t)
  const pages = await Promise.all(
    SHAPES.map(async shape => {
      const { page } = await see({ shape, scheme: 'light' })
      await serveImages(page)
      return { shape, page }
    }),
  )
  mkdirSync(PICTURES, { recursive: true })
  const seen = new Set<string>()
  let tracked = 0
  for (let seed = 1; seed <= DOCUMENTS; seed++) {
    const { preview, mail } = await render(randomStructure(randomOf(seed), { isForeign: false }))
    if (hasLink(preview) && !hasLink(mail)) tracked++
    t.equal(seenOf(mail), seenOf(preview), `seed ${seed}: the HTML`)
    if (seed > DRAWN) continue
    for (const { shape, page } of pages) {
      const [before, after] = [await pictureOf(page, preview), await pictureOf(page, mail)]
      const isSame = before.equals(after)
      if (!isSame) {
        writeFileSync(`${PICTURES}/mail-${seed}-${shape}-preview.png`, before)
        writeFileSync(`${PICTURES}/mail-${seed}-${shape}-received.png`, after)
      }
      t.ok(isSame, `seed ${seed}, ${shape}`)
      seen.add(after.toString('base64'))
    }
  }
  t.ok(tracked > 0, 'what arrives is tracked, what is shown is not')
  t.ok(seen.size > DRAWN, 'the documents look different from each other')
})
