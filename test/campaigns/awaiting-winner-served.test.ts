/** Campaigns whose A/B test waits for a person, as operators find them across workspaces. */
import t from 'tap'
import { tokenWith } from '../support/program/operators.js'
import { untilLater } from '../support/until.js'
import { addresses, MADE_UP, openCampaigns } from './open-campaigns.js'

const ADMIN = '/api/admin/v1'
const TEST = { variants: [{}, { subject: 'Other news' }], sample_size: 2, decide_after_minutes: null }

t.test('campaigns that wait for a person to choose the winner are listed until somebody does', async t => {
  const opened = await openCampaigns(t)
  const { draft, sendIt, post, clock, baseUrl, workspaceId, as, makeKey } = opened
  const owner = await tokenWith(opened, 'owner')
  const ask = async (query: string, token = owner) => {
    const response = await fetch(`${baseUrl}${ADMIN}/campaigns${query}`, {
      headers: { Authorization: `Bearer ${token}` },
    })
    return { status: response.status, body: (await response.json()) as Listed }
  }
  const waiting = async (query = '') =>
    (await ask(`?awaits_winner=true${query}`)).body.data.map(({ name }) => name)
  const sent = async (
    name: string,
    ab_test: object | null,
    on: ReturnType<typeof as> = as(opened.key),
    phase = 'waiting',
  ) => {
    const id = await draft(
      addresses(4, `${name.replace(' ', '-').toLowerCase()}.test`),
      { name, ab_test },
      on,
    )
    await sendIt(id, {}, on)
    await untilLater(clock, `the sample of ${name}`, async () => {
      if (!ab_test) return (await on.get(`/campaigns/${id}`)).body.data.status === 'completed'
      return (await on.get(`/campaigns/${id}/ab-test`)).body.data.phase === phase
    })
    return id
  }
  await sent('Plain', null)
  await sent('By rule', { ...TEST, decide_after_minutes: 600 })
  const first = await sent('First', TEST)
  const second = await sent('Second', TEST)
  const third = await sent('Third', TEST)
  await sent('Sandbox', TEST, as(await makeKey('--sandbox')), 'decided')
  t.same(await waiting(), ['Third', 'Second', 'First'])
  t.match((await ask('?awaits_winner=true&limit=1&offset=2')).body, {
    data: [{ id: first, workspace_id: workspaceId, status: 'sending', ab_test: { sample_size: 2 } }],
    pagination: { total: 3, has_more: false },
  })
  t.same(
    (await ask('')).body.data.map(({ name }) => name),
    ['Third', 'Second', 'First', 'By rule', 'Plain'],
    'all of them, but those of sandboxes',
  )

  await post(`/campaigns/${first}/ab-test/winner`, { variant: 'A' })
  await post(`/campaigns/${second}/cancel`, {})
  await post(`/campaigns/${third}/pause`, {})
  t.same(await waiting(), ['Third'], 'a paused one still waits')

  const { id: other } = await opened.json<{ id: string }>('workspace', 'create', 'other')
  t.same(await waiting(`&workspace_id=${workspaceId}`), ['Third'])
  t.same(await waiting(`&workspace_id=${other}`), [])
  t.equal((await ask(`?workspace_id=${MADE_UP}`)).status, 404)
  t.equal((await ask('?awaits_winner=perhaps')).status, 400)
  const marketer = await tokenWith(opened, [{ workspaceId: other, role: 'marketer' }])
  t.equal((await ask('', marketer)).status, 403)
  t.equal((await ask(`?workspace_id=${workspaceId}`, marketer)).status, 404)
  t.match(await ask(`?workspace_id=${other}`, marketer), { status: 200, body: { data: [] } })

  t.equal((await opened.delete(`${ADMIN}/workspaces/${workspaceId}`, { key: owner })).status, 200)
  t.same(await waiting(), [], 'nobody can choose in a workspace that was removed')
})

interface Listed {
  readonly data: readonly { readonly name: string }[]
}
