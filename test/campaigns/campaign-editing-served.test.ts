/** Campaigns edited by several people: conflicts by entity tag, and what is none. */
import t, { type Test } from 'tap'
import { untilLater } from '../support/until.js'
import { addresses, openCampaigns } from './open-campaigns.js'

async function open(t: Test) {
  const opened = await openCampaigns(t)
  const { baseUrl, key, clock } = opened
  const call = async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
    const response = await fetch(`${baseUrl}/api/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await response.text()
    return {
      status: response.status,
      etag: response.headers.get('etag') ?? '',
      body: text === '' ? undefined : JSON.parse(text),
    }
  }
  const tagOf = async (id: string) => (await call('GET', `/campaigns/${id}`)).etag
  return {
    ...opened,
    call,
    tagOf,
    completed: (id: string) =>
      untilLater(
        clock,
        'the end',
        async () => (await call('GET', `/campaigns/${id}`)).body.data.status === 'completed',
      ),
  }
}

const TEST = { variants: [{}, { subject: 'Other news' }], sample_percent: 20 }
const CONFLICT = { status: 412, body: { error: { code: 'precondition_failed', path: 'If-Match' } } }

// proves: decisions: Automations > Status draft active paused other
// answers: DELETE /campaigns/{id}: precondition_failed; PATCH /campaigns/{id}: precondition_failed
t.test(
  'of two people who edit a campaign the second gets a conflict, and nothing is overwritten',
  async t => {
    const { call, draft, tagOf } = await open(t)
    const path = `/campaigns/${await draft(addresses(2))}`
    const { etag } = await call('GET', path)
    t.match(etag, /^"[\w-]{22}\.[\w-]{22}"$/)
    t.match(await call('GET', path, undefined, { 'If-None-Match': etag }), { status: 304, body: undefined })

    const first = await call('PATCH', path, { ab_test: TEST }, { 'If-Match': etag })
    t.match(first, { status: 200, body: { data: { ab_test: { sample_percent: 20 } } } })
    t.not(first.etag, etag)
    t.equal((await call('GET', path)).etag, first.etag)
    for (const body of [{ subject: 'Mine' }, { ab_test: null }, { archive: true }, {}])
      t.match(await call('PATCH', path, body, { 'If-Match': etag }), CONFLICT, JSON.stringify(body))
    t.match(
      (await call('PATCH', path, { subject: 'Mine' }, { 'If-Match': etag })).body.error.message,
      /read it again/,
    )
    t.match(await call('DELETE', path, undefined, { 'If-Match': etag }), CONFLICT)
    t.match((await call('GET', path)).body.data, {
      subject: 'News',
      archive: false,
      ab_test: { sample_percent: 20 },
    })

    const editors = await Promise.all(
      ['A', 'B'].map(name => call('PATCH', path, { name }, { 'If-Match': first.etag })),
    )
    t.same(editors.map(({ status }) => status).sort(), [200, 412])
    t.equal((await call('PATCH', path, { name: 'C' }, { 'If-Match': '*' })).status, 200)
    t.equal((await call('PATCH', path, { name: 'D' })).status, 200, 'without If-Match the last one wins')
    t.match(await call('PATCH', path, { name: 'E' }, { 'If-Match': 'E' }), { status: 400 })

    const copy = await call('POST', `${path}/duplicate`, {})
    t.equal(copy.etag, await tagOf(copy.body.data.id))
    const { template_id, list_id } = copy.body.data
    const made = await call('POST', '/campaigns', { name: 'New', subject: 'New', template_id, list_id })
    t.equal(made.etag, await tagOf(made.body.data.id))
    const last = { 'If-Match': await tagOf(made.body.data.id) }
    t.equal((await call('DELETE', `/campaigns/${made.body.data.id}`, undefined, last)).status, 200)
  },
)

// proves: decisions: Automations > Status draft active paused other
// answers: PATCH /campaigns/{id}: precondition_failed
t.test('sending a draft is a conflict for those who edit it, counting its mail is none', async t => {
  const { call, draft, tagOf, sendIt, post, completed, change } = await open(t)
  const id = await draft(addresses(2), { archive: true, rate_per_hour: 3_600 })
  const path = `/campaigns/${id}`
  const seen = await tagOf(id)
  await sendIt(id)
  t.match(await call('PATCH', path, { subject: 'Late' }, { 'If-Match': seen }), CONFLICT)
  t.match(await call('PATCH', path, { subject: 'Late' }, { 'If-Match': '*' }), { status: 409 })
  const paused = await call('POST', `${path}/pause`, {})
  // The rest of a tag covers counts, and the first mail may be counted meanwhile.
  const version = (etag: string) => etag.split('.')[0]
  t.equal(version(paused.etag), version(await tagOf(id)))
  t.equal((await post(`${path}/resume`, {})).status, 200)
  t.not(version(await tagOf(id)), version(paused.etag))

  await completed(id)
  const etag = await tagOf(id)
  change([`update campaigns set opens = opens + 1, unique_opens = unique_opens + 1 where id = '${id}'`])
  t.match((await call('GET', path)).body.data, { stats: { opens: 1 } })
  t.match(await call('PATCH', path, { archive: false }, { 'If-Match': etag }), {
    status: 200,
    body: { data: { archive: false, stats: { opens: 1 } } },
  })
})
