/**
 * What each role sees of the console's screens about mail: every screen it may open works, and no button leads to a refusal.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import t, { type Test } from 'tap'
import type { Role } from '../../src/http/roles.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { openBrowser } from '../support/program/browser.js'
import { addOperator } from '../support/program/operators.js'

/** Screens in the navigation under Mail and Sending, and what of them changes something. */
interface Seen {
  readonly screens: readonly string[]
  readonly onMessage: readonly string[]
  readonly onDelivery: boolean
  readonly onSuppressions: boolean
  readonly onCaptured: boolean
  readonly onInbound: boolean
  readonly onDomains: boolean
}

const ALL = ['Messages', 'Delivery', 'Inbound', 'Reports', 'Captured mail', 'Bounces', 'Suppressions']
const WRITES = { onDelivery: true, onSuppressions: true, onCaptured: true, onInbound: true, onDomains: true }
const READS = {
  onDelivery: false,
  onSuppressions: false,
  onCaptured: false,
  onInbound: false,
  onDomains: false,
}
const CHANGES = ['Send again', 'Suppress recipient']

const SEEN: Readonly<Record<Role, Seen>> = {
  owner: { screens: ALL, onMessage: CHANGES, ...WRITES },
  operator: { screens: ALL, onMessage: CHANGES, ...WRITES },
  marketer: {
    screens: ['Messages', 'Reports', 'Bounces', 'Suppressions'],
    onMessage: CHANGES,
    ...{ ...READS, onSuppressions: true },
  },
  viewer: { screens: ALL, onMessage: [], ...READS },
}

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const { key, workspaceId, clock } = postroad
  await postroad.run('domain', 'add', 'shop.test', '--workspace', workspaceId, '--vouch')
  const send = async (to: string, more: object = {}) => {
    const mail = { to: [to], from_email: 'me@shop.test', subject: 'Your order', text: 'Thanks.', ...more }
    const { body } = await postroad.send(key, mail)
    const { results, message_id: id } = body.data as {
      results?: { message_id: string }[]
      message_id?: string
    }
    return results?.[0]?.message_id ?? id ?? ''
  }
  const message = await send('ann@one.test')
  await postroad.messageOnce(key, message, 'delivered')
  await send('bob@one.test', { send_at: new Date(clock.now() + 3_600_000).toISOString() })
  await postroad.post('/api/v1/suppressions', { email: 'gone@one.test', reason: 'manual' }, { key })
  return { postroad, message, see: await openBrowser(t) }
}

for (const reach of ['all workspaces', 'one workspace'] as const)
  t.test(`in ${reach}, a role sees what it may see and do, and nothing is refused`, async t => {
    const { postroad, message, see } = await open(t)
    const { baseUrl, workspaceId } = postroad
    for (const role of Object.keys(SEEN) as Role[]) {
      const isAll = reach === 'all workspaces'
      const account = { role, ...(isAll ? {} : { workspace: workspaceId }) }
      const { link } = await addOperator(postroad, { ...account, email: `${role}@postroad.test` })
      const { page } = await see({ shape: 'wide', scheme: 'light' })
      const refused: string[] = []
      page.on('response', response => {
        if (response.status() === 403 || response.status() === 404)
          refused.push(`${response.status()} ${new URL(response.url()).pathname}`)
      })
      const at = `${role} in ${reach}`
      await page.goto(`${baseUrl}/console/#/link/${link}`)
      const nav = page.getByRole('navigation', { name: 'Main' })
      await nav.waitFor()
      const { screens, onMessage, ...seen } = SEEN[role]
      const shown = screens.filter(name => isAll || !['Inbound', 'Captured mail'].includes(name))
      for (const name of ALL)
        t.equal(await nav.getByRole('link', { name }).count(), shown.includes(name) ? 1 : 0, `${at}: ${name}`)

      const visit = async (path: string) => {
        await page.goto(`${baseUrl}/console${path}`)
        await page.getByRole('heading', { level: 1 }).waitFor()
        await page.waitForLoadState('networkidle')
        t.same(refused.splice(0), [], `${at}: nothing is refused on ${path}`)
        t.equal(await page.getByText('Your role does not allow this').count(), 0, `${at}: ${path}`)
      }
      const has = async (name: string, isThere: boolean) =>
        t.equal((await page.getByRole('button', { name }).count()) > 0, isThere, `${at}: ${name}`)

      for (const name of shown) {
        const href = await nav.getByRole('link', { name }).getAttribute('href')
        await visit(String(href).replace('/console', ''))
      }
      await visit(`/messages/${message}`)
      for (const tab of ['preview', 'text', 'source', 'headers', 'attachments', 'authentication'])
        await visit(`/messages/${message}?tab=${tab}`)
      for (const name of CHANGES) await has(name, onMessage.includes(name))
      await visit('/suppressions')
      await has('Suppress', seen.onSuppressions)
      await has('Import', seen.onSuppressions)
      if (shown.includes('Delivery')) {
        await visit('/delivery?tab=messages')
        await has('Hold', seen.onDelivery)
      }
      if (shown.includes('Captured mail')) {
        await visit('/captured')
        await has('Delete all', seen.onCaptured)
      }
      await visit('/domains')
      await has('Add a domain', seen.onDomains)
      if (onMessage.length > 0) {
        await visit(`/messages/${message}`)
        await page.getByRole('button', { name: 'Send again' }).click()
        await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).click()
        await page.getByText('Sent again to ann@one.test').waitFor()
        t.same(refused.splice(0), [], `${at}: sent again`)
      }
      await page.context().close()
    }
  })
