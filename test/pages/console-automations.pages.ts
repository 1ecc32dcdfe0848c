/**
 * Automations in the console: drawn by mouse and by keyboard alone, tried on a contact, activated, and followed, as a person does it.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import type { Looking } from '../support/program/browser.js'
import { openConsole, WIDE } from '../support/program/console.js'

const TICK_MS = 250

async function open(t: Test, looking: Looking = WIDE) {
  const appliance = await openTestAppliance(t)
  await appliance.run(
    'workspace',
    'set',
    appliance.workspaceId,
    'default_from_email=news@shop.example',
    'hourly_limit=0',
    'daily_limit=0',
  )
  const ticking = setInterval(() => void appliance.clock.advance(1_000), TICK_MS)
  t.teardown(() => clearInterval(ticking))
  const { key } = appliance
  const post = async (path: string, body: object) =>
    (await appliance.post(`/api/v1${path}`, body, { key })).body.data
  await post('/templates', { name: 'Hello', html: '<p>Hello {{first_name}}</p>' })
  await post('/contacts', { email: 'ann@one.example', first_name: 'Ann', attributes: { plan: 'pro' } })
  await post('/contacts', { email: 'bob@one.example', first_name: 'Bob', attributes: { plan: 'free' } })
  const { page, go, inspect } = await openConsole(t, appliance, { looking })
  return {
    page,
    go,
    inspect,
    post,
    get: async (path: string) => (await appliance.get(`/api/v1${path}`, { key })).body.data,
    patch: (path: string, body: object) => appliance.patch(`/api/v1${path}`, body, { key }),
  }
}

t.test('an automation with a branch is drawn, tried on a contact, activated and followed', async t => {
  const { page, go, get, post, patch, inspect } = await open(t)
  await go('/automations')
  await page.getByText('No automations yet').waitFor()
  await page.getByRole('button', { name: 'New automation' }).first().click()
  const dialog = page.getByRole('dialog', { name: 'New automation' })
  await dialog.getByLabel('Name').fill('Welcome')
  await dialog.getByLabel('Trigger').selectOption({ label: 'A contact gets a tag' })
  await dialog.getByRole('button', { name: 'Create' }).click()

  const canvas = page.getByRole('region', { name: 'Canvas' })
  const panel = page.locator('.panel')
  await canvas.getByRole('button', { name: /Start/ }).first().click()
  await panel.getByText('Enter a tag.').waitFor()
  await panel.getByLabel('Tag', { exact: true }).fill('new')

  const add = async (after: RegExp, type: RegExp) => {
    await canvas.getByRole('button', { name: after }).click()
    await page.getByRole('dialog', { name: 'Add a step' }).getByRole('button', { name: type }).click()
  }
  await add(/Add a step after the start/, /^Wait (?!for)/)
  await panel.getByLabel('How long').fill('2')
  await add(/Add a step after Step 1, Wait/, /^Branch/)
  await panel.getByLabel('Attribute', { exact: true }).fill('plan')
  await panel.getByLabel('Value').fill('pro')
  await add(/Add a step after Step 2, Branch, yes/, /^Send an email/)
  await panel.getByText('Choose a template.').waitFor()
  await inspect('console-automation-problem')
  await panel.getByLabel('Template').selectOption({ label: 'Hello' })
  await panel.getByLabel('Subject').fill('For those with pro')
  await add(/Add a step after Step 2, Branch, no/, /^Tag/)
  await panel.getByLabel('Tag', { exact: true }).fill('free')
  await page.getByText('Version').first().waitFor()

  // A deletion is undone, by the keys that everybody knows.
  await panel.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('Removed: Tag.').waitFor()
  await page.keyboard.press('Control+z')
  await canvas.getByRole('button', { name: /4 Tag/ }).waitFor()

  await page.getByRole('button', { name: 'Dry run' }).click()
  await panel.getByRole('button', { name: 'Without a contact' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Ann' }).click()
  await panel.getByRole('button', { name: 'Show what would happen' }).click()
  await panel.getByText('Day 3').waitFor()
  await panel.getByText('“For those with pro”').waitFor()
  await panel.getByText('because plan = pro').waitFor()
  t.equal(await canvas.locator('.taken').count(), 4, 'the way that would be taken is drawn')
  await inspect('console-automation-dry-run')
  t.same(await get('/automations?limit=1').then(([one]) => one.stats.total), 0, 'nobody has entered')

  await page.getByRole('button', { name: 'Activate' }).click()
  await page.getByText('“Welcome” is active.').waitFor()
  const [{ id }] = await get('/automations?limit=1')
  const { steps } = await get(`/automations/${id}`)
  t.match(steps, [
    { step_type: 'delay', config: { duration: 2, unit: 'days' } },
    { step_type: 'condition', config: { field: 'plan', value: 'pro', trueBranchStepId: null } },
    { step_type: 'email', config: { subject: 'For those with pro', nextStepId: 'end' } },
    { step_type: 'tag', config: { tagName: 'free' } },
  ])

  await post(`/automations/${id}/trigger`, { email: 'bob@one.example' })
  await page.getByRole('button', { name: 'Contacts' }).click()
  await panel.getByRole('link', { name: 'bob@one.example' }).click()
  await panel.getByText('Path of bob@one.example').waitFor()
  await panel.getByText('waiting').waitFor()
  t.equal(await canvas.locator('.taken').count(), 1, 'as far as it came')
  await inspect('console-automation-run')
  await patch(`/automations/${id}`, { status: 'paused' })
  await panel.getByText('On hold until somebody continues it.').waitFor()
})

t.test(
  'an automation is built in the list by the keyboard alone, and its run says why it branched',
  async t => {
    const { page, go, get, post, patch, inspect } = await open(t)
    const made = await post('/automations', { name: 'Keys', trigger_type: 'manual' })
    await go(`/automations/${made.id}?view=list`)
    const list = page.getByRole('region', { name: 'List' })
    const press = async (name: RegExp) => {
      await list.getByRole('button', { name }).first().focus()
      await page.keyboard.press('Enter')
    }
    const choose = async (type: RegExp) => {
      await page.getByRole('dialog', { name: 'Add a step' }).getByRole('button', { name: type }).focus()
      await page.keyboard.press('Enter')
      await page.locator('#panel-title:focus').waitFor()
    }
    /** From the title of the panel to its n-th field. */
    const tabs = async (count: number) => {
      for (let at = 0; at < count; at += 1) await page.keyboard.press('Tab')
    }
    await press(/Add a step after the start/)
    await choose(/^Branch/)
    // Close, then field, attribute, comparison, value.
    await tabs(3)
    await page.keyboard.type('plan')
    await tabs(2)
    await page.keyboard.type('pro')
    await page.keyboard.press('Escape')
    await press(/Add a step after Step 1, Branch, yes/)
    await choose(/^Tag/)
    await tabs(3)
    await page.keyboard.type('is pro')
    await page.keyboard.press('Escape')
    await press(/Add a step after Step 2, Tag/)
    await choose(/^Set an attribute/)
    await tabs(2)
    await page.keyboard.type('level')
    await tabs(1)
    await page.keyboard.type('{{attributes.plan}}')
    await page.keyboard.press('Escape')
    await list.getByText('level = {{attributes.plan}}').waitFor()
    await inspect('console-automation-list')
    await page.getByRole('button', { name: 'Activate' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('“Keys” is active.').waitFor()

    const run = await post(`/automations/${made.id}/trigger`, { email: 'ann@one.example' })
    await go(`/automations/${made.id}?panel=runs&run=${run.id}`)
    const panel = page.locator('.panel')
    await panel.getByText('because plan = pro').waitFor()
    await panel.getByText('On version').waitFor()
    await page.getByRole('region', { name: 'Canvas' }).locator('.on').first().waitFor()
    t.match(await get(`/automations/${made.id}/runs/${run.id}`), {
      status: 'completed',
      steps: [{ detail: { result: true, actual: 'pro' } }, {}, { detail: { level: 'pro' } }],
    })

    // An active one waits for its changes to be applied; somebody else's change is told.
    await page.getByRole('button', { name: /Tag Add “is pro”/ }).click()
    await panel.getByLabel('Tag', { exact: true }).fill('has pro')
    await page.getByText('Changes not applied yet').waitFor()
    t.match(await patch(`/automations/${made.id}`, { name: 'Renamed' }), { status: 200 })
    await page.getByRole('button', { name: 'Apply changes' }).click()
    const overwrite = page.getByRole('button', { name: 'Save mine anyway' })
    await overwrite.waitFor()
    t.equal(await panel.getByLabel('Tag', { exact: true }).inputValue(), 'has pro', 'what was typed stays')
    await overwrite.click()
    await page.getByText('Changes applied.').waitFor()
    t.match((await get(`/automations/${made.id}`)).steps[1], { config: { tagName: 'has pro' } })
  },
)

t.test('automations can be read and changed on a phone', async t => {
  const { page, go, post, inspect } = await open(t, { shape: 'narrow', scheme: 'dark' })
  const made = await post('/automations', {
    name: 'Small',
    trigger_type: 'manual',
    steps: [
      { step_type: 'delay' },
      { step_type: 'condition', config: { field: 'plan', value: 'pro', falseBranchStepId: 'end' } },
      { step_type: 'tag', config: { tagName: 'x' } },
    ],
  })
  await go('/automations')
  await page.getByText('Small').waitFor()
  await inspect('console-automations')
  await go(`/automations/${made.id}`)
  await page.getByRole('button', { name: /1 Wait 1 day/ }).waitFor()
  await inspect('console-automation')
  await page.getByRole('button', { name: /1 Wait 1 day/ }).click()
  await page.getByLabel('How long').fill('5')
  await inspect('console-automation-step')
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByText('5 days').waitFor()
  await page.getByRole('button', { name: 'Canvas' }).click()
  await page.getByRole('button', { name: 'Fit to view' }).click()
  await inspect('console-automation-drawing')
})
