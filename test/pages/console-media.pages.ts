/**
 * The media library in the console: images uploaded by button and by drop, described, deleted and brought back, as a person does it.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import t from 'tap'
import { picture } from '../support/content/images.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { openConsole } from '../support/program/console.js'

const TICK_MS = 250

t.test('images are uploaded, described, found, deleted and restored', async t => {
  // Pages have listeners of their own, and the console shows the images all the same.
  const appliance = await openTestAppliance(t, { env: { POSTROAD_HTTP_PUBLIC_LISTEN: '127.0.0.1:0' } })
  const ticking = setInterval(() => void appliance.clock.advance(1_000), TICK_MS)
  t.teardown(() => clearInterval(ticking))
  const { page, go, inspect, complaints } = await openConsole(t, appliance)
  await go('/media')
  await page.getByRole('heading', { name: 'No images yet' }).waitFor()
  await inspect('console-media-empty')

  const buffer = await picture('jpeg', 700, 400)
  const chosen = page.getByLabel('Upload images').first()
  await chosen.setInputFiles({ name: 'bicycle.jpg', mimeType: 'image/jpeg', buffer })
  await page.getByRole('heading', { name: 'bicycle.jpg' }).waitFor()
  // Text, since types of the browser are not known here.
  await page.evaluate("document.querySelector('li img').decode()")
  const shownWidth = await page.evaluate("document.querySelector('li img').naturalWidth")
  t.equal(shownWidth, 300, 'a small file is shown')

  const octets = [...(await picture('png', 60, 60))].join()
  const dropped = await page.evaluateHandle(`(() => {
    const transfer = new DataTransfer()
    transfer.items.add(new File([Uint8Array.of(${octets})], 'logo.png', { type: 'image/png' }))
    transfer.items.add(new File(['%PDF'], 'prices.pdf', { type: 'application/pdf' }))
    return transfer
  })()`)
  await page.locator('.drop').dispatchEvent('drop', { dataTransfer: dropped })
  await page.getByRole('heading', { name: 'logo.png' }).waitFor()
  await page.getByText('“prices.pdf” was not uploaded').waitFor()
  await page.getByRole('button', { name: 'Close: prices.pdf' }).click()

  t.equal(await page.getByText('No alt text').count(), 2)
  const alt = page.getByLabel('Alt text of bicycle.jpg')
  await alt.fill('A red bicycle')
  await alt.press('Enter')
  await page.getByText('Alt text saved').waitFor()
  t.equal(await page.getByText('No alt text').count(), 1)
  await inspect('console-media-filled')

  await page.getByLabel('File name or alt text').fill('bicycle')
  await page.getByRole('heading', { name: 'logo.png' }).waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Delete: bicycle.jpg' }).press('Enter')
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).press('Enter')
  await page.getByText('No image matches.').waitFor()
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByRole('heading', { name: 'bicycle.jpg' }).waitFor()
  t.equal(await page.getByLabel('Alt text of bicycle.jpg').inputValue(), 'A red bicycle')
  t.same(complaints(), [], 'the browser complains of nothing')
})
