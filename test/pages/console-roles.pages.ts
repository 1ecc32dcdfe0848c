/**
 * What each role sees of the console's screens about mail: every screen it may open works, and no button leads to a refusal.
 *
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import type { Response } from 'playwright-core'
import t from 'tap'
import type { Role } from '../../src/http/roles.js'
import { once } from '../support/once.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { openConsole, signInByLink } from '../support/program/console.js'
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

const filledAppliance = once(async () => {
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
  return { postroad, message }
})

/** One browser, in which one operator after the other signs in. */
const sharedConsole = once(async () => openConsole(t, (await filledAppliance()).postroad))

const PARTS = ['Preview', 'Text', 'Source', 'Headers', 'Attachments', 'Authentication']

/** That an owner in all workspaces is refused nothing is seen in `console.pages.ts`, on every screen. */
const rolesIn = (reach: string) =>
  (Object.keys(SEEN) as Role[]).filter(role => reach === 'one workspace' || role !== 'owner')

for (const reach of ['all workspaces', 'one workspace'] as const)
  for (const role of rolesIn(reach))
    t.test(`in ${reach}, the ${role} sees what it may see and do, and nothing is refused`, async t => {
      const { postroad, message } = await filledAppliance()
      const isAll = reach === 'all workspaces'
      const { page, go, settled } = await sharedConsole()
      const { link } = await addOperator(postroad, {
        role,
        ...(isAll ? {} : { workspace: postroad.workspaceId }),
      })
      await signInByLink(page, postroad, link)
      const refused: string[] = []
      const note = (response: Response) => {
        if (response.status() === 403 || response.status() === 404)
          refused.push(`${response.status()} ${new URL(response.url()).pathname}`)
      }
      page.on('response', note)
      t.teardown(() => page.off('response', note))
      const { screens, onMessage, ...seen } = SEEN[role]
      const has = async (name: string, isThere: boolean) =>
        t.equal((await page.getByRole('button', { name }).count()) > 0, isThere, name)
      const isAllowed = async (screen: string) => {
        await settled()
        t.same(refused.splice(0), [], `${screen}: nothing is refused`)
        t.equal(await page.getByText('Your role does not allow this').count(), 0, screen)
      }

      await go('/')
      await isAllowed('Overview')
      const nav = page.getByRole('navigation', { name: 'Main' })
      const shown = screens.filter(name => isAll || !['Inbound', 'Captured mail'].includes(name))
      for (const name of ALL)
        t.equal(await nav.getByRole('link', { name }).count(), shown.includes(name) ? 1 : 0, name)
      for (const name of [...shown, 'Domains']) {
        await nav.getByRole('link', { name }).click()
        await page.getByRole('heading', { level: 1, name }).waitFor()
        await isAllowed(name)
        if (name === 'Suppressions')
          for (const button of ['Suppress', 'Import']) await has(button, seen.onSuppressions)
        if (name === 'Captured mail') await has('Delete all', seen.onCaptured)
        if (name === 'Domains') await has('Add a domain', seen.onDomains)
      }
      if (shown.includes('Delivery')) {
        await go('/delivery?tab=messages')
        await isAllowed('Messages of the queue')
        await has('Hold', seen.onDelivery)
      }
      await go(`/messages/${message}`)
      await isAllowed('A message')
      // Who may do more may read as much.
      for (const part of isAll || role === 'owner' || role === 'operator' ? [] : PARTS) {
        await page.getByRole('link', { name: new RegExp(`^${part}`) }).click()
        await isAllowed(part)
      }
      for (const name of CHANGES) await has(name, onMessage.includes(name))
      if (onMessage.length === 0) return
      await page.getByRole('button', { name: 'Send again' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).click()
      await page.getByText('Sent again to ann@one.test').waitFor()
      t.same(refused.splice(0), [], 'sent again')
    })
