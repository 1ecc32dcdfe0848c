/**
 * The audience in the console: a file imported, a segment built, a contact edited, deleted and restored, as a person does it.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { openConsole } from '../support/program/console.js'
import { until } from '../support/until.js'

const PEOPLE = 1_000
const TICK_MS = 250

/** Every fourth has the plan pro; one row has no valid address, and one a date that is none. */
function csv(): string {
  const rows = Array.from(
    { length: PEOPLE },
    (_, at) =>
      `person${at}@recipient.example,Person,Number ${at},${at % 4 === 0 ? 'pro' : 'free'},${at},${at === 7 ? 'unknown' : '2024-03-01'}`,
  )
  return ['Mail,First name,Last name,Tariff,Notes,Since', ...rows, 'nobody,,,,,'].join('\n')
}

async function open(t: Test) {
  const appliance = await openTestAppliance(t)
  // Screens hear of changes once a second of the server's clock.
  const ticking = setInterval(() => void appliance.clock.advance(1_000), TICK_MS)
  t.teardown(() => clearInterval(ticking))
  // A version that somebody else has saved is refused with 412.
  const { page, go, inspect } = await openConsole(t, appliance, { expected: /status of 412/ })
  return { appliance, page, go, inspect }
}

t.test(
  'a file is imported, a segment counts who is in it, a contact is edited, deleted and restored',
  async t => {
    const { appliance, page, go, inspect } = await open(t)
    const key = await appliance.makeKey()
    await appliance.post('/api/v1/attributes', { name: 'Since', type: 'date' }, { key })

    await go('/contacts/import')
    await page
      .getByLabel('Choose a file')
      .setInputFiles({ name: 'people.csv', mimeType: 'text/csv', buffer: Buffer.from(csv()) })
    await page.getByRole('cell', { name: 'person0@recipient.example' }).waitFor()
    t.equal(await page.getByRole('row').count(), 21, 'a heading and the first 20 rows')
    await page.getByLabel('What the column Tariff becomes').selectOption('attribute')
    await page.getByLabel('Name of the attribute').fill('plan')
    await page.getByLabel('What the column Notes becomes').selectOption('skip')
    await page.getByText('Type: as declared (Dates)').waitFor({ state: 'attached' })
    await inspect('console-import')
    await page.getByRole('button', { name: 'Check first' }).click()
    const check = page.getByRole('region', { name: 'The check found' })
    await check.getByText('Would be created').waitFor()
    await check.getByRole('cell', { name: 'The address is not valid.' }).waitFor()
    t.match(await check.innerText(), /Would be created\s+1,000/)
    await check.getByText('As the attribute is declared').waitFor()
    await check.getByText('1 value does not fit and stays text: line 9 (unknown).').waitFor()
    await inspect('console-import-check')
    await page.getByRole('button', { name: 'Start import' }).click()
    // The page before says this of the check.
    const progress = page.getByRole('region', { name: 'Progress' })
    await progress.getByText('Completed').waitFor()
    t.match(await progress.innerText(), /Created\s+1,000/)
    await page
      .getByRole('region', { name: 'Rejected' })
      .getByRole('cell', { name: 'The address is not valid.' })
      .waitFor()
    await inspect('console-import-done')

    await go('/segments/new')
    await page.getByLabel('Name', { exact: true }).fill('Pro')
    await page.getByLabel('Field', { exact: true }).selectOption('attribute')
    await page.getByLabel('Name of the attribute').fill('plan')
    await page.getByLabel('Operator').selectOption('equals')
    await page.getByLabel('Value', { exact: true }).fill('pro')
    await page.getByText('250').first().waitFor()
    await inspect('console-segment')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('link', { name: 'Show contacts' }).click()
    await page.getByText('250 contacts').waitFor()

    await page.getByRole('searchbox').fill('person8@')
    await page.getByRole('link', { name: 'person8@recipient.example' }).click()
    await page.getByRole('button', { name: 'Edit plan' }).click()
    await page.getByLabel('plan', { exact: true }).fill('team')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('team').waitFor()
    t.equal(await page.getByText('Notes').count(), 0, 'the skipped column became nothing')
    await inspect('console-contact')

    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('1 contact was deleted.').waitFor()
    await page.getByRole('button', { name: 'Undo' }).last().click()
    await page.getByRole('heading', { name: 'person8@recipient.example' }).waitFor()
    await t.resolves(page.getByText('team').waitFor(), 'the contact is back, with its attributes')
  },
)

t.test(
  'of two people who edit a list, the second is told and loses no word; what is deleted comes back',
  async t => {
    const { appliance, page, go, inspect } = await open(t)
    const { key } = appliance
    const api = '/api/v1'
    const { body } = await appliance.post(`${api}/lists`, { name: 'News' }, { key })
    const { id } = body.data as { id: string }

    await go(`/lists/${id}`)
    const name = page.getByLabel('Name', { exact: true })
    const description = page.getByLabel('Description')
    await description.fill('Every Monday')
    await appliance.patch(`${api}/lists/${id}`, { name: 'Letter' }, { key })
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('Someone else has changed this').waitFor()
    t.equal(await description.inputValue(), 'Every Monday', 'what was typed is still there')
    t.match((await appliance.get(`${api}/lists/${id}`, { key })).body.data, {
      name: 'Letter',
      description: null,
    })
    await inspect('console-conflict')
    await page.getByRole('button', { name: 'Reload' }).click()
    await page.getByRole('heading', { name: 'Letter' }).waitFor()
    t.equal(await name.inputValue(), 'Letter')
    await description.fill('Every Monday')
    await appliance.patch(`${api}/lists/${id}`, { public: true }, { key })
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('button', { name: 'Save mine anyway' }).click()
    await page.getByText('Saved.', { exact: true }).waitFor()
    t.match((await appliance.get(`${api}/lists/${id}`, { key })).body.data, {
      name: 'Letter',
      description: 'Every Monday',
      public: false,
    })

    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('“Letter” was deleted.').waitFor()
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByRole('heading', { name: 'Letter' }).waitFor()

    await appliance.post(`${api}/tags`, { name: 'vip' }, { key })
    await go('/tags')
    await page.getByRole('button', { name: 'Edit: vip' }).click()
    await page.getByLabel('Description').fill('Best customers')
    const [tag] = (await appliance.get(`${api}/tags`, { key })).body.data as { id: string }[]
    await appliance.patch(`${api}/tags/${tag?.id}`, { color: '#112233' }, { key })
    await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('button', { name: 'Save mine anyway' }).waitFor()
    t.equal(await page.getByLabel('Description').inputValue(), 'Best customers')
    await page.getByRole('button', { name: 'Save mine anyway' }).click()
    await page.getByText('Saved.', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Delete: vip' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('“vip” was deleted.').waitFor()
    await page.getByText('No tags yet').waitFor()
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByRole('cell', { name: 'Best customers' }).waitFor()
  },
)

t.test('the same holds for segments, forms and workspaces', async t => {
  const { appliance, page, go } = await open(t)
  const { key, workspaceId } = appliance
  const made = async (path: string, body: object) => {
    const answer = await appliance.post(`/api/v1${path}`, body, { key })
    return `${path}/${(answer.body.data as { id: string }).id}`
  }
  const rules = [{ field: 'email', operator: 'contains', value: 'a' }]
  const segment = await made('/segments', { name: 'First', conditions: { match: 'all', rules } })
  const form = await made('/forms', { name: 'First' })
  const screens: readonly (readonly [path: string, change: () => Promise<unknown>])[] = [
    [segment, () => appliance.patch(`/api/v1${segment}`, { name: 'Theirs' }, { key })],
    [form, () => appliance.patch(`/api/v1${form}`, { name: 'Theirs' }, { key })],
    [`/workspaces/${workspaceId}`, () => appliance.run('workspace', 'set', workspaceId, 'name=Theirs')],
  ]
  for (const [path, change] of screens) {
    await go(path)
    const name = page.getByLabel('Name', { exact: true })
    await name.fill('Mine')
    await change()
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('Someone else has changed this').waitFor()
    t.equal(await name.inputValue(), 'Mine', path)
    await page.getByRole('button', { name: 'Reload' }).click()
    await page.getByRole('heading', { name: 'Theirs' }).waitFor()
    t.equal(await name.inputValue(), 'Theirs', path)
    await name.fill('Mine')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('heading', { name: 'Mine' }).waitFor()
  }
  for (const path of [segment, form]) {
    await go(path)
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('button', { name: 'Undo' }).click()
    await t.resolves(
      page.getByRole('heading', { name: 'Mine' }).waitFor(),
      `what was deleted is back: ${path}`,
    )
  }
})

t.test('a form shows how often it was submitted', async t => {
  const { appliance, page, go, inspect } = await open(t)
  const { body } = await appliance.post('/api/v1/forms', { name: 'Sign-up' }, { key: appliance.key })
  const { id } = body.data as { id: string }
  await go(`/forms/${id}`)
  await page.getByText('No submissions yet.').waitFor()
  for (const name of ['ann', 'bob']) await appliance.post(`/f/${id}`, { email: `${name}@recipient.example` })
  await page.reload()
  const counts = page.getByRole('region', { name: 'Submissions' })
  await counts.getByText('Last 30 days').waitFor()
  t.match(await counts.innerText(), /Submitted\s+2/)
  await inspect('console-form-counts')
})

t.test('Back asks before unsaved changes of a form are lost', async t => {
  const { appliance, page, go } = await open(t)
  const { body } = await appliance.post('/api/v1/forms', { name: 'Sign-up' }, { key: appliance.key })
  const { id } = body.data as { id: string }
  await go('/forms')
  await page.getByRole('link', { name: 'Sign-up' }).click()
  const name = page.getByLabel('Name', { exact: true })
  await name.fill('Newsletter')
  const asked: string[] = []
  let answer: 'accept' | 'dismiss' = 'dismiss'
  page.on('dialog', dialog => {
    asked.push(dialog.type())
    void dialog[answer]()
  })
  // Later: the dialog holds up whatever the page is doing.
  await page.evaluate('void setTimeout(() => history.back())')
  await until('the question', () => asked.length === 1)
  await page.waitForURL(`**/forms/${id}*`)
  t.equal(await name.inputValue(), 'Newsletter', 'what was typed is still there')
  answer = 'accept'
  await page.evaluate('void setTimeout(() => history.back())')
  await page.getByRole('heading', { name: 'Forms' }).waitFor()
  t.same(asked, ['confirm', 'confirm'])
})

t.test(
  'unsaved words are asked about once: by the browser when the page goes, else by the console',
  async t => {
    const { appliance, page, go, inspect } = await open(t)
    const { body } = await appliance.post('/api/v1/lists', { name: 'News' }, { key: appliance.key })
    const asked: string[] = []
    page.on('dialog', dialog => {
      asked.push(dialog.type())
      // The page stays.
      void dialog.dismiss()
    })
    for (const [path, label] of [
      [`/lists/${String(body.data.id)}`, 'Description'],
      ['/segments/new', 'Name'],
    ] as const) {
      await go(path)
      const field = page.getByLabel(label, { exact: true })
      await field.click()
      await page.keyboard.type('Every Monday')
      // Later: the dialog holds up whatever the page is doing.
      await page.evaluate('void setTimeout(() => location.reload())')
      await until('the browser to ask', () => asked.length > 0)
      t.equal(await field.inputValue(), 'Every Monday', 'the page is still there')
      await page.getByRole('link', { name: 'Contacts', exact: true }).first().click()
      await until('the console to ask', () => asked.length > 1)
      t.equal(await field.inputValue(), 'Every Monday')
      t.same(asked, ['beforeunload', 'confirm'], path)
      await inspect('console-unsaved')
      await field.fill('')
      asked.length = 0
    }
  },
)
