/**
 * The console's screens about mail in a browser: a message and its parts, the queue, captured mail, suppressions.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { openConsole } from '../support/program/console.js'

const HOSTILE =
  '<!doctype html><body onload="document.title=\'ran\'"><h1>Hello</h1><script>parent.document.title="ran"</script>' +
  '<img src="https://images.invalid/p.png" onerror="document.title=\'ran\'"><form action="https://evil.invalid"><button>Go</button></form>' +
  '<iframe src="https://evil.invalid"></iframe><a id="out" href="https://evil.invalid">Out</a></body>'

async function open(t: Test) {
  const appliance = await openTestAppliance(t)
  const { key } = appliance
  const { page, go, complaints } = await openConsole(t, appliance)
  const send = async (more: object) => {
    const mail = { from_email: 'shop@sender.example', subject: 'Your order', text: 'Thank you.', ...more }
    const { body } = await appliance.post('/api/v1/email/send', mail, { key })
    const { message_id: only, results = [] } = body.data as {
      message_id?: string
      results?: { message_id: string }[]
    }
    return only ?? results[0]?.message_id ?? ''
  }
  return { ...appliance, page, send, go, complaints }
}

t.test('hostile HTML is shown in a frame where it can do nothing', async t => {
  const { page, send, go } = await open(t)
  const id = await send({ to: ['ann@one.test'], html: HOSTILE })
  const asked: string[] = []
  page.on('request', request => asked.push(request.url()))
  // The policy stopped it before it was sent.
  page.on('requestfailed', request => {
    if (request.failure()?.errorText === 'csp') asked.splice(asked.indexOf(request.url()), 1)
  })
  await go(`/messages/${id}?tab=preview`)
  const frame = page.frameLocator('iframe')
  await frame.getByRole('heading', { name: 'Hello' }).waitFor()
  await frame.getByRole('button', { name: 'Go' }).click()
  await frame.getByText('Out').click()
  t.equal(await page.locator('iframe').getAttribute('sandbox'), '')
  t.match(await page.title(), /Your order/)
  t.match(page.url(), /\/console\/messages\//)
  t.ok(await frame.getByRole('heading', { name: 'Hello' }).isVisible())
  const foreign = () =>
    asked.filter(url => url.includes('.invalid') || /\/[oc]\//.test(new URL(url).pathname))
  t.same(foreign(), [])
  const image = page.waitForRequest('https://images.invalid/p.png')
  await page.getByLabel('Load images from other servers').check()
  await image
  t.notOk(foreign().some(url => url.includes('evil')))
})

t.test('a message tells its attempts, text, source, header fields and attachments', async t => {
  const { page, send, go, key, complaints, ...postroad } = await open(t)
  const attachments = [{ filename: 'invoice.txt', content: 'SGVsbG8=', content_type: 'text/plain' }]
  const id = await send({ to: ['ann@one.test'], html: '<p>Thank you.</p>', attachments })
  await postroad.messageOnce(key, id, 'delivered')
  await go(`/messages/${id}`)
  await page.getByText('Attempt 1').waitFor()
  await page.getByRole('link', { name: 'Headers' }).click()
  await page.getByText('Globally unique name of this message.').waitFor()
  await page.getByRole('link', { name: 'Source' }).click()
  await page.getByText('Subject: Your order').waitFor()
  t.match(page.url(), /tab=source/)
  await page.getByRole('link', { name: 'Attachments' }).click()
  await page.getByText('invoice.txt').waitFor()
  await page.getByRole('button', { name: 'Suppress recipient' }).click()
  await page.getByText('ann@one.test is suppressed').waitFor()
  await go('/suppressions?email=ann@one.test')
  await page.getByRole('row', { name: /ann@one\.test.*Manual/ }).waitFor()
  t.same(complaints(), [])
})

t.test('a part of the queue is held and deleted once its count was shown', async t => {
  const { page, send, go, clock } = await open(t)
  const later = new Date(clock.now() + 86_400_000).toISOString()
  for (const name of ['ann', 'bob']) await send({ to: [`${name}@one.test`], send_at: later })
  await send({ to: ['cyd@two.test'], send_at: later })
  await go('/delivery?tab=messages&domain=one.test')
  await page.getByRole('row', { name: /bob@one\.test/ }).waitFor()
  t.equal(await page.getByRole('row', { name: /cyd/ }).count(), 0)
  await page.getByRole('button', { name: 'Hold' }).click()
  await page.getByText('This changes 2 messages.').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: /^Hold/ }).click()
  await page.getByText('2 messages held').waitFor()
  await page.getByRole('row', { name: /bob@one\.test.*Held/ }).waitFor()
  await page.getByLabel('bob@one.test').check()
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('This changes 1 message.').waitFor()
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Delete/ })
    .click()
  await page.getByText('1 message deleted').waitFor()
  await page.getByRole('row', { name: /bob@one\.test/ }).waitFor({ state: 'detached' })
})

t.test('suppressions are added, imported and removed, and come back on undo', async t => {
  const { page, go } = await open(t)
  await go('/suppressions')
  await page.getByRole('button', { name: 'Suppress' }).first().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Address or domain').fill('not an address')
  await dialog.getByRole('button', { name: 'Suppress' }).click()
  await dialog.getByLabel('Address or domain').and(page.locator('[aria-invalid]')).waitFor()
  await dialog.getByLabel('Address or domain').fill('@one.test')
  await dialog.getByRole('button', { name: 'Suppress' }).click()
  await page.getByRole('row', { name: /@one\.test/ }).waitFor()
  await page.getByRole('button', { name: 'Import' }).click()
  await dialog.getByLabel('CSV file').setInputFiles({
    name: 'list.csv',
    mimeType: 'text/csv',
    buffer: Buffer.from('email,reason\nbob@two.test,manual\nnobody,manual\n'),
  })
  await dialog.getByRole('button', { name: 'Import' }).click()
  await dialog.getByText('Line 3').waitFor()
  await dialog.getByRole('button', { name: 'Close' }).last().click()
  await page.getByLabel('bob@two.test').check()
  await page.getByRole('button', { name: 'Remove 1' }).click()
  await dialog.getByRole('button', { name: 'Remove 1' }).click()
  await page.getByRole('row', { name: /bob@two\.test/ }).waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Undo' }).click()
  await t.resolves(page.getByRole('row', { name: /bob@two\.test/ }).waitFor(), 'it is there again')
})
