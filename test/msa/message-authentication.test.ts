/** Whether a message's signatures and envelope sender speak for its author, as receivers judge it. */
import t, { type Test } from 'tap'
import { tokenWith } from '../support/program/operators.js'
import { openTestAppliance } from '../support/program/appliance.js'
import type { FakeZone } from '../../src/world/dns/fake-dns.js'

interface Judged {
  from_domain: string
  dkim: { domain: string; signer: string; key: string; result: string; aligned: boolean }[]
  spf: {
    domain: string
    aligned: boolean
    checks: { address: string; result: string; term: string | null }[]
  }
  dmarc: { result: string; domain: string | null; policy: string | null; record: string | null }
}

async function open(t: Test) {
  const zone: FakeZone = {}
  const postroad = await openTestAppliance(t, {
    zone,
    env: {
      POSTROAD_MTA_SOURCE_ADDRESSES: '192.0.2.7',
      POSTROAD_MTA_RETURN_PATH_DOMAIN: 'bounce.shop.test',
    },
  })
  const viewer = await tokenWith(postroad, 'viewer')
  await postroad.run('domain', 'add', 'shop.test', '--workspace', postroad.workspaceId, '--vouch')
  const listed = await postroad.get('/api/v1/domains', { key: postroad.key })
  const [{ id } = { id: '' }] = listed.body.data as { id: string }[]
  const { body } = await postroad.get(`/api/v1/domains/${id}`, { key: postroad.key })
  const records = body.data.dns_records as {
    purpose: string
    name: string
    alternative?: { value: string }
  }[]
  const keys = records.filter(({ purpose }) => purpose === 'dkim')
  const publish = (values = keys.map(({ alternative }) => alternative?.value ?? '')) => {
    for (const [at, { name }] of keys.entries()) zone[name] = { TXT: [values[at] ?? ''] }
  }
  const send = async (from = 'me@shop.test') => {
    const mail = { to: ['ann@one.test'], subject: 'Hi', from_email: from, text: 'Hello.' }
    const { body } = await postroad.send(postroad.key, mail)
    return (body.data.results as { message_id: string }[])[0]?.message_id ?? ''
  }
  const judge = async (id: string) => {
    const path = `/api/admin/v1/messages/${id}/authentication`
    const { status, body } = await postroad.get(path, { key: viewer })
    if (status !== 200) throw new Error(JSON.stringify(body))
    return body.data as Judged
  }
  return { postroad, zone, publish, send, judge }
}

t.test('an aligned signature whose key is published passes, whatever SPF says', async t => {
  const { zone, publish, send, judge } = await open(t)
  publish()
  zone['_dmarc.shop.test'] = { TXT: ['v=DMARC1; p=reject'] }
  const judged = await judge(await send())
  t.match(judged, {
    from_domain: 'shop.test',
    spf: { domain: 'bounce.shop.test', aligned: true, checks: [{ address: '192.0.2.7', result: 'none' }] },
    dmarc: { result: 'pass', domain: 'shop.test', policy: 'reject', record: 'v=DMARC1; p=reject' },
  })
  t.ok(judged.dkim.length > 0)
  for (const one of judged.dkim)
    t.match(one, {
      domain: 'shop.test',
      signer: 'appliance',
      key: 'published',
      result: 'pass',
      aligned: true,
    })
})

t.test('SPF alone is enough if it is aligned', async t => {
  const { zone, send, judge } = await open(t)
  zone['_dmarc.shop.test'] = { TXT: ['v=DMARC1; p=none'] }
  zone['bounce.shop.test'] = { TXT: ['v=spf1 ip4:192.0.2.7 -all'] }
  const judged = await judge(await send())
  t.same(new Set(judged.dkim.map(({ key, result }) => `${key} ${result}`)), new Set(['missing fail']))
  t.match(judged.spf.checks, [{ result: 'pass', term: 'ip4:192.0.2.7' }])
  t.equal(judged.dmarc.result, 'pass')
  zone['_dmarc.shop.test'] = { TXT: ['v=DMARC1; p=none; aspf=s'] }
  t.match(await judge(await send()), { spf: { aligned: false }, dmarc: { result: 'fail' } }, 'strict')
})

t.test('what is wrong in DNS is named', async t => {
  const { zone, publish, send, judge } = await open(t)
  const id = await send()
  t.match(await judge(id), { dmarc: { result: 'none', domain: null, record: null, policy: null } })
  zone['_dmarc.shop.test'] = { TXT: ['v=DMARC1; p=quarantine'] }
  t.equal((await judge(id)).dmarc.result, 'fail')
  const resultsWith = async (value: string) => {
    publish(Array.from({ length: 4 }, () => value))
    const { dkim, dmarc } = await judge(id)
    return [dkim[0]?.key, dkim[0]?.result, dmarc.result]
  }
  t.same(await resultsWith('v=DKIM1; p='), ['revoked', 'fail', 'fail'])
  t.same(await resultsWith('v=DKIM1; k=rsa; p=AAAA'), ['different', 'fail', 'fail'])
  for (const name of Object.keys(zone)) if (name.includes('_domainkey')) zone[name] = 'servfail'
  const { dkim, dmarc } = await judge(id)
  t.same([dkim[0]?.key, dkim[0]?.result, dmarc.result], ['unanswered', 'unknown', 'unknown'])
})

t.test('mail from the shared address is judged by that domain', async t => {
  const { zone, publish, send, judge } = await open(t)
  publish()
  zone['_dmarc.postroad.test'] = { TXT: ['v=DMARC1; p=reject'] }
  const judged = await judge(await send('me@elsewhere.test'))
  t.equal(judged.from_domain, 'mail.postroad.test')
  t.match(judged.spf, { aligned: false })
  t.match(judged.dmarc, { domain: 'postroad.test', policy: 'reject', result: 'fail' })
})

t.test('only operators of its workspace are told', async t => {
  const { postroad, send } = await open(t)
  const other = await postroad.json<{ id: string }>('workspace', 'create', 'Other')
  const elsewhere = await tokenWith(postroad, [{ workspaceId: other.id, role: 'owner' }])
  const path = `/api/admin/v1/messages/${await send()}/authentication`
  t.equal((await postroad.get(path, { key: elsewhere })).status, 404)
  t.equal((await postroad.get(path, { key: postroad.key })).status, 401)
})
