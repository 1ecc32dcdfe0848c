/** Sending domains by the admin API: across workspaces, by role. */
import t from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { tokenWith } from '../support/program/operators.js'

const DOMAINS = '/api/admin/v1/domains'
const ELSEWHERE = '0192f000-0000-7000-8000-00000000abcd'

t.test('an operator of one workspace adds, lists and removes domains there, and sees no others', async t => {
  const postroad = await openTestAppliance(t)
  const { workspaceId } = postroad
  const here = { key: await tokenWith(postroad, [{ workspaceId, role: 'operator' }]) }
  const all = { key: await tokenWith(postroad, 'operator') }
  const added = await postroad.post(DOMAINS, { workspace_id: workspaceId, domain: 'Shop.example' }, here)
  t.match(added, {
    status: 201,
    body: {
      data: {
        domain: 'shop.example',
        verified: false,
        workspace_id: workspaceId,
        zone_file: /_postroad\.shop\.example\. 3600 IN TXT/,
        report_permission: '*._report._dmarc.mx.postroad.test. 3600 IN TXT "v=DMARC1;"',
      },
    },
  })
  const elsewhere = await postroad.post(DOMAINS, { workspace_id: ELSEWHERE, domain: 'shop.example' }, here)
  t.match(elsewhere, { status: 404 })
  t.match(await postroad.post(DOMAINS, { workspace_id: ELSEWHERE, domain: 'shop.example' }, all), {
    status: 404,
    body: { error: { message: `no workspace ${ELSEWHERE}` } },
  })
  const names = async (query: string, caller: { key: string }) =>
    ((await postroad.get(`${DOMAINS}${query}`, caller)).body.data as { domain: string }[]).map(
      ({ domain }) => domain,
    )
  t.same(await names(`?workspace_id=${workspaceId}`, here), ['shop.example'])
  t.match(await postroad.get(DOMAINS, here), { status: 403 })
  t.same((await names('', all)).sort(), ['mail.postroad.test', 'shop.example'])
  t.same(await names('?domain=SHOP.example', all), ['shop.example'])
  const shared = (await postroad.get(`${DOMAINS}?domain=mail.postroad.test`, all)).body.data[0]
  t.match(await postroad.get(`${DOMAINS}/${shared.id}`, here), { status: 403 }, "the server's own domain")
  t.match(await postroad.get(`${DOMAINS}/${shared.id}`, all), { status: 200 })
  const viewer = { key: await tokenWith(postroad, [{ workspaceId, role: 'viewer' }]) }
  const { id } = added.body.data
  t.match(await postroad.get(`${DOMAINS}/${id}`, viewer), { status: 200 })
  t.match(await postroad.delete(`${DOMAINS}/${id}`, viewer), { status: 403 })
  t.match(await postroad.delete(`${DOMAINS}/${id}`, here), { status: 200 })
  t.match(await postroad.delete(`${DOMAINS}/${id}`, here), { status: 404 })
})

t.test(
  'only an operator of all workspaces can vouch for a domain, and the activity log names them',
  async t => {
    const postroad = await openTestAppliance(t)
    const { workspaceId } = postroad
    const body = { workspace_id: workspaceId, domain: 'printer.lan', vouch: true }
    const here = { key: await tokenWith(postroad, [{ workspaceId, role: 'owner' }]) }
    t.match(await postroad.post(DOMAINS, body, here), { status: 403 })
    const all = { key: await tokenWith(postroad, 'operator') }
    const added = await postroad.post(DOMAINS, body, all)
    t.match(added, { status: 201, body: { data: { vouched: true, verified: true } } })
    const path = `${DOMAINS}/${added.body.data.id}/rotate-dkim`
    t.match(await postroad.post(path, { force: true }, here), { status: 200 })
    t.match(await postroad.post(path, {}, here), { status: 409 })
    const { body: log } = await postroad.get('/api/v1/activity', postroad)
    t.match(log.data, [
      { action: 'domain.rotated', actor: { type: 'operator_token', peer: '127.0.0.1' } },
      { action: 'domain.added', actor: { type: 'operator_token' }, details: { vouched: true } },
    ])
  },
)

t.test('an operator of all workspaces can vouch for a domain that waits for its records', async t => {
  const postroad = await openTestAppliance(t)
  const { workspaceId } = postroad
  const owner = ['--workspace', workspaceId]
  const { id } = await postroad.json<{ id: string }>('domain', 'add', 'printer.lan', ...owner)
  const mail = { to: 'ann@one.test', from_email: 'me@printer.lan', subject: 'Hi', text: 'Hi.' }
  t.match(await postroad.send(postroad.key, mail), { body: { error: { code: 'domain_invalid' } } })
  const path = `${DOMAINS}/${id}/vouch`
  const here = { key: await tokenWith(postroad, [{ workspaceId: workspaceId, role: 'owner' }]) }
  t.match(await postroad.post(path, '', here), { status: 403 })
  t.match(await postroad.get(`${DOMAINS}/${id}`, here), { body: { data: { vouched: false } } })
  const all = { key: await tokenWith(postroad, 'operator') }
  t.match(await postroad.post(path, '', all), {
    status: 200,
    body: { data: { vouched: true, verified: true, next_check_at: null } },
  })
  await postroad.clock.advance(2_000)
  t.match(await postroad.send(postroad.key, mail), { status: 200 })
  t.match(
    await postroad.json('domain', 'vouch', 'printer.lan', ...owner),
    { vouched: true },
    'once more changes nothing',
  )
  t.match(await postroad.run('domain', 'vouch', 'other.lan', ...owner), { status: 1, err: /no domain/ })
  const { body: log } = await postroad.get('/api/v1/activity', postroad)
  const vouched = (log.data as { action: string }[]).filter(({ action }) => action === 'domain.vouched')
  t.match(vouched, [{ subject: 'printer.lan', actor: { type: 'operator_token' } }])
  t.equal(vouched.length, 1)
})

t.test('the zone file is downloaded with and without SOA', async t => {
  const postroad = await openTestAppliance(t)
  const headers = { Authorization: `Bearer ${await tokenWith(postroad, 'viewer')}` }
  const download = async (query: string) => {
    const answer = await fetch(`${postroad.baseUrl}/api/admin/v1/dns-zone/file${query}`, { headers })
    t.match(answer.headers.get('content-type'), 'text/dns')
    return answer.text()
  }
  t.notMatch(await download(''), 'IN SOA')
  t.match(await download('?whole=true'), /IN SOA mx\.postroad\.test\. .*\n.*NS.*\npr\w+1\./)
})

t.test('no workspace takes a name of the appliance itself, by either API', async t => {
  const postroad = await openTestAppliance(t, {
    env: { POSTROAD_MTA_RETURN_PATH_DOMAIN: 'bounce.postroad.test' },
  })
  const { workspaceId: workspace_id } = postroad
  const here = { key: await tokenWith(postroad, [{ workspaceId: workspace_id, role: 'owner' }]) }
  const key = await postroad.makeKey()
  const refusal = { status: 400, body: { error: { code: 'validation_error', path: 'domain' } } }
  for (const domain of [
    'MX.postroad.test',
    'www.mx.postroad.test.',
    'bounce.postroad.test',
    'x.bounce.postroad.test',
    'mail.postroad.test',
  ]) {
    t.match(await postroad.post(DOMAINS, { workspace_id, domain }, here), refusal, domain)
    t.match(await postroad.post('/api/v1/domains', { domain }, { key }), refusal, domain)
  }
  for (const domain of ['postroad.test', 'news.mail.postroad.test', 'notmx.postroad.test'])
    t.match(await postroad.post('/api/v1/domains', { domain }, { key }), { status: 201 }, domain)
  const all = { key: await tokenWith(postroad, 'operator') }
  t.match(await postroad.post(DOMAINS, { workspace_id, domain: 'mail.postroad.test' }, all), { status: 201 })
})
