/** Campaigns for several lists and segments, without others: who gets the mail, and what is refused. */
import t, { type Test } from 'tap'
import type { ApplianceOptions } from '../support/program/appliance.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'
import { MADE_UP, openCampaigns } from './open-campaigns.js'

/** Lists with a, b and b, c; a segment with d and e; and a list with c to leave out. e has a plan, the others none. */
async function open(t: Test, options: ApplianceOptions = {}) {
  const postroad = await openCampaigns(t, options)
  const { make, get, post, draft } = postroad
  const known = new Map<string, string>()
  const id = await draft([])
  const list = async (name: string, members: readonly string[]) => {
    const made = await make('/lists', { name })
    for (const one of members) {
      const contact = known.get(one) ?? (await make('/contacts', { email: `${one}@x.test` }))
      known.set(one, contact)
      await post(`/lists/${made}/members`, { contact_ids: [contact] })
    }
    return made
  }
  const one = await list('One', ['a', 'b'])
  const two = await list('Two', ['b', 'c'])
  const out = await list('Out', ['c'])
  await make('/contacts', { email: 'd@y.test' })
  await make('/contacts', { email: 'e@y.test', attributes: { plan: 'free' } })
  const segment = (name: string, field: string, operator: string, value: string) =>
    make('/segments', { name, conditions: { match: 'all', rules: [{ field, operator, value }] } })
  const elsewhere = await segment('Y', 'email', 'ends_with', '@y.test')
  const free = await segment('Free', 'plan', 'equals', 'free')
  return {
    ...postroad,
    ...{ id, one, two, out, elsewhere, free },
    value: postroad.one,
    leave: async (list: string, name: string) => {
      const { status } = await postroad.remove(`/lists/${list}/members`, { contact_ids: [known.get(name)] })
      if (status !== 200) throw new Error(`${status}`)
    },
    outcomes: async () => {
      const { data } = (await get(`/campaigns/${id}/recipients?limit=100`)).body as {
        data: { email: string; status: string; reason: string | null }[]
      }
      return Object.fromEntries(
        data.map(({ email, status, reason }) => [email.split('@')[0], reason ?? status]),
      )
    },
    mailed: async () => {
      const { data } = (await get(`/campaigns/${id}/recipients?limit=100`)).body as {
        data: { email: string }[]
      }
      return data.map(({ email }) => email.split('@')[0]).sort()
    },
  }
}

t.test('everybody in any of several lists and segments gets one mail, without those in others', async t => {
  const { id, one, two, out, elsewhere, free, patch, get, sendIt, campaignOnce, mailed } = await open(t)
  const audience = {
    include: [{ list_id: one }, { list_id: two }, { segment_id: elsewhere }],
    exclude: [{ list_id: out }, { segment_id: free }],
  }
  t.match(await patch(`/campaigns/${id}`, { audience }), {
    status: 200,
    body: { data: { audience, list_id: null, segment_id: null } },
  })
  t.match(await get(`/campaigns/${id}/audience`), { body: { data: { mailable: 3 } } })
  t.match(await sendIt(id), { status: 202, body: { data: { total_recipients: 3 } } })
  await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
  t.same(await mailed(), ['a', 'b', 'd'], 'who lacks what a segment asks for is not in it')
})

t.test('an audience, a list and a segment replace each other', async t => {
  const { id, one, elsewhere, patch } = await open(t)
  const audience = { include: [{ segment_id: elsewhere.toUpperCase() }] }
  t.match((await patch(`/campaigns/${id}`, { audience })).body.data, {
    audience: { include: [{ segment_id: elsewhere }], exclude: [] },
    list_id: null,
  })
  t.match((await patch(`/campaigns/${id}`, { list_id: one })).body.data, { audience: null, list_id: one })
})

t.test(
  'an audience without anybody, of things that do not exist, or beside a list is refused by its field',
  async t => {
    const { id, one, elsewhere, patch, post, get } = await open(t)
    const refused = async (body: object, path: string, status = 400) =>
      t.match(await patch(`/campaigns/${id}`, body), { status, body: { error: { path } } }, path)
    const include = [{ list_id: one }]
    await refused({ audience: { include: [] } }, 'audience.include')
    await refused({ audience: { include: Array.from({ length: 21 }, () => include[0]) } }, 'audience.include')
    await refused({ audience: { include, list_id: one } }, 'audience.list_id')
    await refused({ audience: { include: [{}] } }, 'audience.include.0')
    await refused({ audience: { include: [{ list_id: one, segment_id: elsewhere }] } }, 'audience.include.0')
    await refused(
      { audience: { include, exclude: [{ list_id: MADE_UP }] } },
      'audience.exclude.0.list_id',
      404,
    )
    await refused({ audience: { include: [{ segment_id: one }] } }, 'audience.include.0.segment_id', 404)
    await refused({ audience: { include }, list_id: one }, 'audience')
    t.match((await get(`/campaigns/${id}`)).body.data, { audience: null })
    const { body } = await get(`/campaigns/${id}`)
    const { template_id: template } = body.data as { template_id: string }
    t.match(
      await post('/campaigns', { name: 'N', subject: 'S', template_id: template, audience: { include } }),
      {
        status: 201,
        body: { data: { audience: { include } } },
      },
    )
    t.match(await post('/campaigns', { name: 'N', subject: 'S', template_id: template }), {
      status: 400,
      body: { error: { path: 'list_id' } },
    })
  },
)

t.test('what a scheduled campaign includes or leaves out is not deleted without force', async t => {
  const { id, one, out, free, patch, sendIt, remove, clock, get } = await open(t)
  await patch(`/campaigns/${id}`, {
    audience: { include: [{ list_id: one }], exclude: [{ list_id: out }, { segment_id: free }] },
  })
  await sendIt(id, { send_at: new Date(clock.now() + 3_600_000).toISOString() })
  for (const path of [`/lists/${one}`, `/lists/${out}`, `/segments/${free}`])
    t.match(await remove(path), { status: 409, body: { error: { message: /scheduled campaign/ } } }, path)
  t.match((await get(`/campaigns/${id}`)).body.data, { status: 'scheduled', total_recipients: 2 })
})

t.test('a copy has the same audience', async t => {
  const { id, one, two, patch, post } = await open(t)
  const audience = { include: [{ list_id: one }], exclude: [{ list_id: two }] }
  await patch(`/campaigns/${id}`, { audience })
  t.match(await post(`/campaigns/${id}/duplicate`, {}), {
    status: 201,
    body: { data: { audience, list_id: null } },
  })
})

/** a leaves its only list, b one of two, c its own, while the mail waits. */
async function leaveLists({ one, two, leave }: Awaited<ReturnType<typeof open>>): Promise<void> {
  await leave(one, 'a')
  await leave(one, 'b')
  await leave(two, 'c')
}

t.test('who leaves all lists while the campaign waits gets no mail, who stays in one does', async t => {
  const opened = await open(t)
  const { id, one, two, patch, sendIt, outcomes, clock, value } = opened
  const audience = { include: [{ list_id: one }, { list_id: two }] }
  await patch(`/campaigns/${id}`, { audience, send_time: 'usual_hour', rate_per_hour: 60 })
  await sendIt(id, { send_at: new Date(clock.now() + 3_600_000).toISOString() })
  await leaveLists(opened)
  await until('the end', async () => {
    await clock.advance(60_000)
    return value('select status from campaigns') === 'completed'
  })
  t.same(await outcomes(), { b: 'delivered' }, 'the audience is that of the start')
})

t.test(
  'who leaves all lists after the first mail of the campaign gets none, who stays in one does',
  async t => {
    const opened = await open(t)
    const { id, one, two, patch, sendIt, outcomes, clock, value } = opened
    const audience = { include: [{ list_id: two }, { list_id: one }] }
    await patch(`/campaigns/${id}`, { audience, rate_per_hour: 60 })
    await sendIt(id)
    const first = await until('the first', async () => {
      const mailed = Object.entries(await outcomes()).find(([, outcome]) => outcome === 'delivered')
      return mailed?.[0]
    })
    await leaveLists(opened)
    await until('the end', async () => {
      await clock.advance(10_000)
      return value('select status from campaigns') === 'completed'
    })
    t.same(await outcomes(), { a: 'left_list', b: 'delivered', c: 'left_list', [first]: 'delivered' })
  },
)

t.test('who leaves all lists while the mail is queued does not get it', async t => {
  const sink = await openSink(t)
  const opened = await open(t, {
    env: { POSTROAD_MTA_CAPTURE: 'false' },
    toml: `[[mta.routes]]\ndomain = "*"\nhost = "127.0.0.1"\nport = ${sink.port}\ntls = "none"`,
  })
  const { id, one, two, patch, sendIt, outcomes, clock, campaignOnce, value } = opened
  sink.atRcpt = 'defer'
  await patch(`/campaigns/${id}`, { audience: { include: [{ list_id: one }, { list_id: two }] } })
  await sendIt(id)
  await until('all to be deferred', () => value('select count(*) from attempts') === 3)
  await leaveLists(opened)
  sink.atRcpt = 'accept'
  for (let minute = 0; minute < 10; minute += 1) await clock.advance(60_000)
  await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
  t.same(await outcomes(), { a: 'left_list', b: 'delivered', c: 'left_list' })
})
