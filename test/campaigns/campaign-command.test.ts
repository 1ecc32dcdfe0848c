/** `postroad campaign` beside the running server: list, show, pause, resume, cancel. */
import t from 'tap'
import { addresses, MADE_UP, openCampaigns, type Shown } from './open-campaigns.js'

t.test('campaigns are listed, shown and steered from the command line', async t => {
  const { draft, sendIt, campaignOnce, run, json, workspaceId } = await openCampaigns(t)
  const id = await draft(addresses(3))
  await sendIt(id, { send_at: '2026-01-05T11:00:00Z' })
  const own = ['--workspace', workspaceId]
  const [listed] = await json<Shown[]>('campaign', 'list', ...own)
  t.match(listed, { id, status: 'scheduled', total_recipients: 3 })
  t.match((await run('campaign', 'list', ...own)).out, /^NAME +STATUS.*\nJanuary +scheduled +3 /)
  t.same(await json('campaign', 'list', '--status', 'draft', ...own), [])
  t.match(await json('campaign', 'show', id, ...own), { id, name: 'January' })
  t.match(await run('campaign', 'pause', id, ...own), { status: 0, out: /January: paused/ })
  t.match(await json('campaign', 'resume', id, ...own), { status: 'scheduled' })
  t.match(await run('campaign', 'resume', id, ...own), { status: 1, err: /cannot be resumed/ })
  t.match(await run('campaign', 'cancel', id, ...own), { status: 0, out: /January: cancelled/ })
  await campaignOnce(id, 'the cancelled', ({ status }) => status === 'cancelled')
  t.match(await run('campaign', 'show', MADE_UP, ...own), { status: 1, err: /no such campaign/ })
  t.match(await run('campaign', 'list', '--status', 'lost', ...own), { status: 2, err: /lost is not one of/ })
  t.match(await run('campaign', 'list'), { status: 2, err: /--workspace/ })
})
