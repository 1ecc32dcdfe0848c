/**
 * The console's list of nodes, of two servers on one PostgreSQL database.
 *
 * Run by `make test-pages`, for which Debian's Chromium and PostgreSQL have to be there.
 */
import t from 'tap'
import { PostgresServer } from '../support/db/postgres-server.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { ALL_LOOKS, lookAs } from '../support/program/browser.js'
import { openConsole, WIDE } from '../support/program/console.js'
import { openNodes } from '../support/program/database-nodes.js'
import { until } from '../support/until.js'

const named = (number: number, more = {}) => ({
  env: { POSTROAD_HOSTNAME: `mx${number}.example.com`, POSTROAD_MTA_CAPTURE: 'true', ...more },
})

t.test('an operator drains a node and resumes it, and is told what nobody else would do', async t => {
  const server = await PostgresServer.create()
  t.teardown(() => server.remove())
  const { nodes, first } = await openNodes(t, server.url(), [
    named(1),
    named(2, { POSTROAD_ROLES_SCHEDULER: 'false' }),
  ])
  await until('both to be known', async () => (await first.json<unknown[]>('nodes')).length === 2)
  const served = { ...first, baseUrl: nodes[0]?.baseUrl ?? '' }
  const { page, go, inspect, complaints } = await openConsole(t, served)
  await go('/health')
  const list = page.getByRole('list', { name: 'Nodes' })
  const rowOf = (name: string) => list.getByRole('listitem').filter({ hasText: name })
  const [one, two] = [rowOf('mx1.example.com'), rowOf('mx2.example.com')]
  await two.waitFor()
  t.match(await one.innerText(), /Active\s+Serving this page/)
  t.match(await one.innerText(), /Background work: jobs, campaigns, webhooks, inbound mail, statistics/)
  t.match(await two.innerText(), /API and pages, Submission, Inbound, Delivery\s+Last heartbeat \d+ ?s ago/)
  t.notMatch(await two.innerText(), /Background work|Serving this page/)

  const dialog = page.getByRole('dialog')
  await one.getByRole('button', { name: 'Drain' }).click()
  t.match(
    await dialog.innerText(),
    /No other node has these roles, so their work will wait: Background work\./,
  )
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  t.match(await one.innerText(), /Active/, 'nothing happened')
  await two.getByRole('button', { name: 'Drain' }).click()
  t.notMatch(await dialog.innerText(), /No other node/)
  await inspect('console-nodes-drain')
  await dialog.getByRole('button', { name: 'Drain' }).click()
  await page.getByText('mx2.example.com is draining.').waitFor()
  await two.getByText('Drained', { exact: true }).waitFor()

  await one.getByRole('button', { name: 'Drain' }).click()
  t.match(await dialog.innerText(), /their work will wait: Delivery, Background work\./)
  await page.keyboard.press('Escape')
  for (const looking of ALL_LOOKS) {
    await lookAs(page, looking)
    await inspect(`console-nodes, ${looking.shape}, ${looking.scheme}`)
  }
  await lookAs(page, WIDE)
  await two.getByRole('button', { name: 'Resume' }).click()
  await dialog.getByRole('button', { name: 'Resume' }).click()
  await page.getByText('mx2.example.com is resumed.').waitFor()
  await two.getByText('Active', { exact: true }).waitFor()
  t.same(complaints(), [], 'the browser complains of nothing')

  const viewer = await openConsole(t, served, { account: { role: 'viewer' } })
  await viewer.go('/health')
  const seen = viewer.page.getByRole('list', { name: 'Nodes' })
  await seen.getByText('mx2.example.com').waitFor()
  t.equal(await seen.getByRole('button').count(), 0, 'a viewer changes nothing')
})

t.test('with SQLite there is no list of nodes', async t => {
  const appliance = await openTestAppliance(t)
  const { page, go } = await openConsole(t, appliance)
  await go('/health')
  await page.getByRole('heading', { name: 'Locked sign-ins' }).waitFor()
  await page.getByText('No mail is sent').or(page.getByText('Needs attention')).first().waitFor()
  t.equal(await page.getByRole('heading', { name: 'Nodes' }).count(), 0)
})
