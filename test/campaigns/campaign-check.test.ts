/** The check of a campaign before it is sent: what it finds for whom, and that it sends nothing. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { until, untilLater } from '../support/until.js'
import { MADE_UP, openCampaigns } from './open-campaigns.js'

interface Check {
  readonly status: string
  readonly checked: number
  readonly total: number
  readonly html_bytes: number | null
  readonly errors: number
  readonly warnings: number
  readonly findings: readonly Finding[]
  readonly spam: { readonly score: number; readonly symbols: readonly { readonly name: string }[] } | null
}

interface Finding {
  readonly code: string
  readonly severity: string
  readonly message: string
  readonly about: string | null
  readonly recipients: number | null
  readonly contacts: readonly { readonly email: string }[]
  readonly clients: readonly string[]
  readonly opens_share: number | null
  readonly variants: readonly string[]
  readonly places: readonly {
    readonly template_id: string
    readonly block: { readonly id: string; readonly type: string; readonly path: string } | null
  }[]
}

type Campaigns = Awaited<ReturnType<typeof openCampaigns>>

async function checked({ post, get, clock }: Campaigns, id: string): Promise<Check> {
  const started = await post(`/campaigns/${id}/check`, {})
  if (started.status !== 202) throw new Error(JSON.stringify(started.body))
  let found: Check | undefined
  await untilLater(clock, 'the end of the check', async () => {
    found = ((await get(`/campaigns/${id}/check`)).body as { data: Check }).data
    return found.status !== 'running'
  })
  return found!
}

const of = ({ findings }: Check, code: string) => findings.filter(one => one.code === code)

async function draftOf(
  { make, run, workspaceId }: Campaigns,
  html: string,
  contacts: readonly object[],
  fields: object = {},
) {
  await run('workspace', 'set', workspaceId, 'company_address=1 High Street, Springfield')
  const list = await make('/lists', { name: 'News' })
  for (const contact of contacts) await make('/contacts', { ...contact, list_id: list })
  const template = await make('/templates', { name: 'T', html })
  return make('/campaigns', {
    name: 'January',
    subject: 'News',
    template_id: template,
    list_id: list,
    ...fields,
  })
}

const WORDS = `<p>${'Here is what is new in our shop this month. '.repeat(5)}</p>`

// proves: Campaigns and templates > POST /campaigns
// operations: POST /campaigns/{id}/check; GET /campaigns/{id}/check
t.test('it finds who lacks which merge value, and whose links are empty or broken', async t => {
  const postroad = await openCampaigns(t)
  const id = await draftOf(
    postroad,
    `${WORDS}<p>Hello {{firstName}}, {{attributes.plan|free}} {{#if lastName}}{{lastName}}{{/if}}</p>
      <a href="{{attributes.page}}">yours</a>`,
    [
      { email: 'ann@one.test', first_name: 'Ann', attributes: { page: 'https://shop.test/ann' } },
      { email: 'bob@one.test', first_name: 'Bob' },
      { email: 'cyd@one.test', attributes: { page: 'shop.test/cyd' } },
      { email: 'dee@one.test', first_name: 'Dee', attributes: { page: 'mailto:dee@shop.test' } },
      { email: 'eve@one.test', first_name: 'Eve', attributes: { page: 'https:///eve' }, subscribed: false },
    ],
  )
  const check = await checked(postroad, id)
  t.match(check, { status: 'completed', checked: 4, total: 4, errors: 2, warnings: 3 })
  t.match(of(check, 'merge_value_missing'), [
    { severity: 'warning', about: 'attributes.page', recipients: 1, contacts: [{ email: 'bob@one.test' }] },
    { severity: 'warning', about: 'firstName', recipients: 1, contacts: [{ email: 'cyd@one.test' }] },
  ])
  t.match(of(check, 'link_empty'), [
    { severity: 'error', recipients: 1, contacts: [{ email: 'bob@one.test' }] },
  ])
  t.match(of(check, 'link_broken'), [
    { severity: 'error', recipients: 1, contacts: [{ email: 'cyd@one.test' }] },
  ])
  t.equal(postroad.one('select count(*) from messages'), 0, 'nothing is sent')
  t.equal((await postroad.get(`/campaigns/${id}`)).body.data.status, 'draft')
})

t.test('it finds what clients clip, do not support or distrust', async t => {
  const postroad = await openCampaigns(t)
  const id = await draftOf(
    postroad,
    `<div style="display:flex"><img src="https://127.0.0.1:9/a.png"><img src="logo.png" alt="Logo"></div>
      <a href="https://bit.ly/xyz">more</a><i title="${'y'.repeat(80_000)}{{attributes.long|-}}"></i>`,
    [
      { email: 'ann@one.test', attributes: { long: 'x'.repeat(30_000) } },
      { email: 'bob@one.test', attributes: {} },
    ],
    { subject: 'BUY NOW!!' },
  )
  const check = await checked(postroad, id)
  t.ok((check.html_bytes ?? 0) > 102 * 1_024)
  t.match(of(check, 'too_large'), [{ recipients: 1, contacts: [{ email: 'ann@one.test' }] }])
  t.match(of(check, 'image_without_alt'), [{ about: 'https://127.0.0.1:9/a.png', recipients: null }])
  t.match(of(check, 'image_broken'), [{ about: 'logo.png' }])
  t.match(of(check, 'image_unreachable'), [
    { about: 'https://127.0.0.1:9/a.png', message: /cannot be reached/ },
  ])
  t.match(of(check, 'feature_unsupported'), [
    {
      about: 'display:flex',
      severity: 'notice',
      clients: ['Outlook for Windows', 'GMX and WEB.DE'],
      opens_share: null,
    },
  ])
  t.match(of(check, 'suspicious_link'), [{ about: 'https://bit.ly/xyz' }])
  for (const code of ['mostly_images', 'subject_shouts', 'unsubscribe_link_added'])
    t.equal(of(check, code).length, 1, code)
})

t.test('features are reported that the clients of this audience lack, with their share of opens', async t => {
  const postroad = await openCampaigns(t)
  const { workspaceId, clock } = postroad
  const id = await draftOf(
    postroad,
    `${WORDS}<div style="display:flex;object-fit:cover;aspect-ratio:1/2">${WORDS}</div>`,
    [{ email: 'ann@one.test' }],
  )
  const clients = { gmail: 30, 'outlook-windows': 10, 'apple-mail': 20, other: 40 }
  postroad.change(
    Object.entries(clients).map(
      ([value, opens]) =>
        `insert into daily_group_counters (workspace_id, dimension, day, value, opens)
          values ('${workspaceId}', 'client', ${clock.now() - (clock.now() % 86_400_000)}, '${value}', ${opens})`,
    ),
  )
  t.match(of(await checked(postroad, id), 'feature_unsupported'), [
    { about: 'aspect-ratio', clients: ['Gmail', 'Outlook for Windows'], opens_share: 0.4 },
    { about: 'display:flex', clients: ['Outlook for Windows'], opens_share: 0.1 },
    { about: 'object-fit', clients: ['Outlook for Windows'], opens_share: 0.1 },
  ])
})

t.test('it asks for links and images once each, and reports those that are gone', async t => {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    response
      .writeHead(request.url === '/moved' ? 302 : request.url === '/gone' ? 404 : 200, { location: '/gone' })
      .end('x')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const html = `${WORDS}<a href="${base}/there">a</a><a href="${base}/moved">b</a><a href="${base}/there">c</a><img src="${base}/i.png" alt="">`
  const contacts = [{ email: 'ann@one.test' }, { email: 'bob@one.test' }]

  const closed = await openCampaigns(t)
  const refused = await checked(closed, await draftOf(closed, html, contacts))
  t.equal(of(refused, 'link_unreachable').length, 2, 'private addresses are refused')
  t.same(asked, [])

  const postroad = await openCampaigns(t, { env: { POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8' } })
  await postroad.run('workspace', 'set', postroad.workspaceId, 'allow_private_webhooks=true')
  const check = await checked(postroad, await draftOf(postroad, html, contacts))
  t.match(of(check, 'link_unreachable'), [{ about: `${base}/moved`, message: /404/ }])
  t.same(of(check, 'image_unreachable'), [])
  t.same(asked.toSorted(), ['/gone', '/i.png', '/moved', '/there'])
})

t.test('links of one workspace that never answer hold up no check of another', async t => {
  const hanging = new Set<string>()
  const server = createServer(({ url = '' }) => void hanging.add(url))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close().closeAllConnections())
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const postroad = await openCampaigns(t, { env: { POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8' } })
  await postroad.run('workspace', 'set', postroad.workspaceId, 'allow_private_webhooks=true')
  const html = `${WORDS}${[1, 2, 3, 4].map(n => `<a href="${base}/${n}">a</a>`).join('')}`
  const contacts = [{ email: 'ann@one.test' }]
  const first = await draftOf(postroad, html, contacts)
  const { body } = await postroad.get(`/campaigns/${first}`)
  const { template_id, list_id } = (body as { data: Record<string, string> }).data
  const slow = [first]
  for (let n = 1; n < 9; n++)
    slow.push(await postroad.make('/campaigns', { name: `C${n}`, subject: 'News', template_id, list_id }))
  for (const id of slow) t.equal((await postroad.post(`/campaigns/${id}/check`, {})).status, 202)
  await until('links to be asked', () => hanging.size > 0)
  const { id: workspaceId } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  await postroad.run('workspace', 'set', workspaceId, 'default_from_email=news@other.test')
  const other = {
    ...postroad,
    ...postroad.as(await postroad.makeKey('--workspace', workspaceId)),
    workspaceId,
  }
  const found = await checked(other, await draftOf(other, WORDS, contacts))
  t.match(found, { status: 'completed', checked: 1 })
  for (const id of slow)
    t.match(await postroad.get(`/campaigns/${id}/check`), { body: { data: { status: 'running' } } })
})

t.test('what spam filters distrust in subject, text and links is found', async t => {
  const postroad = await openCampaigns(t)
  const id = await draftOf(
    postroad,
    '<a href="https://evil.test/x">www.bank.test/login</a> <a href="https://www.shop.test/a">shop.test</a> <a href="https://a.test">jugs</a>',
    [{ email: 'ann@one.test' }],
    { subject: 'Re: your order' },
  )
  const check = await checked(postroad, id)
  t.match(of(check, 'link_text_misleads'), [
    { severity: 'warning', about: 'www.bank.test/login → https://evil.test/x' },
  ])
  t.equal(of(check, 'subject_feigns_reply').length, 1)
  t.equal(of(check, 'little_text').length, 1)
  t.equal(check.spam, null, 'there is no score without rspamd')
  t.same(of(check, 'spam_not_checked'), [])
})

t.test('links without a URL, and those that lead nowhere from a mail, are found once', async t => {
  const postroad = await openCampaigns(t)
  const id = await draftOf(
    postroad,
    `${WORDS}<a name="top" id="top"></a><a href="#top">Up</a><a href="">a</a><a href="https://">b</a><a href="/shop?a=1&amp;b=2">c</a>
      <a href="mailto:ann@one.test">d</a><a href="tel:+4930">e</a><a href="{{attributes.page}}">f</a><a href="{{attributes.site}}">g</a>`,
    [{ email: 'ann@one.test', attributes: { page: 'shop.test/ann', site: '' } }],
  )
  const check = await checked(postroad, id)
  t.match(of(check, 'link_empty'), [{ recipients: null, severity: 'error' }, { recipients: 1 }])
  t.match(of(check, 'link_broken'), [{ about: '/shop?a=1&b=2', recipients: null }, { recipients: 1 }])
  t.equal(of(check, 'link_broken').length, 2, "a recipient's own link is not said twice")
})

const block = (id: string, type: string, content: object) => ({ id, type, content })
const text = (id: string, html: string) => block(id, 'text', { html })

async function structured(postroad: Campaigns, blocks: readonly object[], contacts: readonly object[]) {
  const { make, patch } = postroad
  const id = await draftOf(postroad, WORDS, contacts)
  const template = await make('/templates', { name: 'B', json_structure: { blocks } })
  await patch(`/campaigns/${id}`, { template_id: template })
  return { id, template }
}

const idsOf = (findings: readonly Finding[]) =>
  findings.map(({ places }) => places.map(place => place.block?.id ?? null))

t.test('what is in blocks of a template names them, wherever they are', async t => {
  const postroad = await openCampaigns(t)
  const columns = [
    { blocks: [text('left', '<p>{{attributes.plan|free}} {{attributes.plan}}</p>')] },
    {
      blocks: [
        block('right', 'button', { text: 'Mine', url: '{{attributes.page}}' }),
        block('shop', 'button', { text: 'Shop', url: 'https://' }),
      ],
    },
  ]
  const { id, template } = await structured(
    postroad,
    [
      text('words', WORDS),
      text('hello', '<p>Hello {{firstName}}</p>'),
      block('logo', 'image', { src: 'https://127.0.0.1:9/logo.png' }),
      block('photo', 'image', { src: 'https://127.0.0.1:9/photo.png', alt: 'A jug' }),
      block('two', 'columns', { columns }),
      block('items', 'dynamic', {
        source: 'attributes.items',
        blocks: [text('item', '<p>{{this.name}} <a href="https://bit.ly/xyz">more</a></p>')],
      }),
      block('if', 'conditional', {
        field: 'attributes.plan',
        operator: 'is_set',
        elseBlocks: [],
        blocks: [block('code', 'html', { html: '<div style="display:flex"><img src="a.png"></div>' })],
      }),
      text('bye', '<p>Bye {{firstName}}</p>'),
    ],
    [
      { email: 'ann@one.test', first_name: 'Ann', attributes: { page: 'https://shop.test/ann', plan: 'x' } },
      { email: 'bob@one.test', attributes: { page: 'shop.test/bob', items: [{ name: 'Jug' }, {}] } },
    ],
  )
  const check = await checked(postroad, id)
  const where = (code: string, about?: string) =>
    idsOf(of(check, code).filter(one => about === undefined || one.about === about))
  t.same(where('merge_value_missing', 'firstName'), [['hello', 'bye']])
  t.same(where('merge_value_missing', 'attributes.plan'), [['left']], 'a fallback is enough')
  t.same(where('merge_value_missing', 'this.name'), [['item']])
  t.same(where('link_empty'), [['shop']])
  t.same(where('link_broken'), [['right']])
  t.same(where('suspicious_link'), [['item']])
  t.same(where('image_without_alt', 'https://127.0.0.1:9/logo.png'), [['logo']], 'a block without alt text')
  t.same(where('image_unreachable', 'https://127.0.0.1:9/photo.png'), [['photo']])
  t.same(where('feature_unsupported', 'display:flex'), [['code']])
  t.same(where('unsubscribe_link_added'), [[]], 'not in the template')
  t.same(of(check, 'link_broken')[0]?.places, [
    {
      template_id: template,
      block: {
        id: 'right',
        type: 'button',
        path: 'json_structure.blocks.4.content.columns.1.blocks.0',
      },
    },
  ])
})

t.test('the path of a block has the spelling of the document, and repeated ids do not matter', async t => {
  const postroad = await openCampaigns(t)
  const { id } = await structured(
    postroad,
    [
      text('a', WORDS),
      block('a', 'conditional', {
        field: 'email',
        operator: 'is_not_set',
        else: [text('a', '<p>{{firstName}}</p>')],
      }),
    ],
    [{ email: 'ann@one.test' }],
  )
  t.match(of(await checked(postroad, id), 'merge_value_missing'), [
    { places: [{ block: { id: 'a', type: 'text', path: 'json_structure.blocks.1.content.else.0' } }] },
  ])
})

t.test('a template of HTML is named without a block; what is only in the subject has no place', async t => {
  const postroad = await openCampaigns(t)
  const id = await draftOf(
    postroad,
    `<p>{{firstName}}</p><img src="logo.png">`,
    [{ email: 'ann@one.test' }],
    { subject: 'News {{lastName}}' },
  )
  const check = await checked(postroad, id)
  const template = String((await postroad.get(`/campaigns/${id}`)).body.data.template_id)
  const places = [{ template_id: template, block: null }]
  const missing = (about: string) => of(check, 'merge_value_missing').find(one => one.about === about)?.places
  t.same(missing('firstName'), places)
  t.same(missing('lastName'), [])
  for (const code of ['image_without_alt', 'image_broken', 'mostly_images'])
    t.same(of(check, code)[0]?.places, places, code)
})

t.test('a fault of several variants names the template of each', async t => {
  const postroad = await openCampaigns(t)
  const { make, patch } = postroad
  const { id, template } = await structured(
    postroad,
    [text('one', `${WORDS}{{firstName}}`)],
    [{ email: 'ann@one.test' }, { email: 'bob@one.test' }],
  )
  const other = await make('/templates', {
    name: 'C',
    json_structure: { blocks: [text('two', `${WORDS}{{firstName}}`)] },
  })
  const variants = [{ template_id: template }, { template_id: other }]
  t.equal((await patch(`/campaigns/${id}`, { ab_test: { variants, sample_percent: 100 } })).status, 200)
  const [missing] = of(await checked(postroad, id), 'merge_value_missing')
  t.same(missing?.variants, [])
  t.match(missing?.places, [
    { template_id: template, block: { id: 'one' } },
    { template_id: other, block: { id: 'two' } },
  ])
})

/** Answers as rspamd's normal worker does. */
async function rspamd(t: Test, answer: { status?: number; body: unknown }) {
  const asked: { url: string; headers: IncomingHttpHeaders; body: string }[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      asked.push({ url: `${request.method} ${request.url}`, headers: request.headers, body })
      response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' })
      response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { asked, env: { POSTROAD_CAMPAIGNS_RSPAMD_URL: url } }
}

t.test("rspamd's score of one recipient's mail is shown with what counted", async t => {
  const { asked, env } = await rspamd(t, {
    body: {
      is_skipped: false,
      score: 6.675,
      required_score: 15,
      action: 'add header',
      symbols: {
        MIME_GOOD: { name: 'MIME_GOOD', score: -0.1, metric_score: -0.1, description: 'Known content-type' },
        SUBJ_ALL_CAPS: {
          name: 'SUBJ_ALL_CAPS',
          score: 3,
          description: 'All capital letters',
          options: ['9'],
        },
        MIME_TRACE: { name: 'MIME_TRACE', score: 0, metric_score: 0, options: ['0:+'] },
      },
      messages: {},
    },
  })
  const postroad = await openCampaigns(t, { env })
  const id = await draftOf(postroad, `${WORDS}Hello {{firstName}}`, [
    { email: 'ann@one.test', first_name: 'Ann' },
  ])
  const check = await checked(postroad, id)
  t.same(check.spam, {
    score: 6.675,
    required_score: 15,
    action: 'add header',
    symbols: [
      { name: 'SUBJ_ALL_CAPS', score: 3, description: 'All capital letters' },
      { name: 'MIME_GOOD', score: -0.1, description: 'Known content-type' },
    ],
  })
  t.match(of(check, 'spam_suspected'), [
    { severity: 'warning', about: 'add header', message: /6\.7 of 15\.0/ },
  ])
  t.equal(asked.length, 1)
  t.match(asked[0], { url: 'POST /checkv2', headers: { rcpt: 'ann@one.test' } })
  t.match(asked[0]?.body, /^To: ann@one\.test\r\n[^]*^List-Unsubscribe: <http[^]*Hello Ann/m)
  const another = await draftOf(postroad, WORDS, [{ email: 'bob@one.test', subscribed: false }])
  t.equal((await checked(postroad, another)).spam?.score, 6.675, 'also if nobody is reached')
})

t.test('a check goes on without rspamd that fails or answers something else', async t => {
  for (const answer of [{ status: 500, body: 'oops' }, { body: 'no JSON' }, { body: { score: 'high' } }]) {
    const { env } = await rspamd(t, answer)
    const postroad = await openCampaigns(t, { env })
    const id = await draftOf(postroad, WORDS, [{ email: 'ann@one.test' }])
    const check = await checked(postroad, id)
    t.match(check, { status: 'completed', spam: null, checked: 1 })
    t.match(of(check, 'spam_not_checked'), [{ severity: 'notice' }], JSON.stringify(answer))
  }
})

// proves: Campaigns and templates > POST /campaigns
t.test('what would refuse the campaign is found before it is sent', async t => {
  const postroad = await openCampaigns(t)
  const { make, post, get, remove, sendIt, campaignOnce, run, workspaceId } = postroad
  const id = await draftOf(postroad, WORDS, [{ email: 'ann@one.test', subscribed: false }])
  t.match(of(await checked(postroad, id), 'no_recipients'), [{ severity: 'error' }])
  await run('workspace', 'set', workspaceId, 'company_address=', 'default_from_email=')
  const template = String((await get(`/campaigns/${id}`)).body.data.template_id)
  t.equal((await remove(`/templates/${template}?force=true`)).status, 200)
  t.match(await checked(postroad, id), { findings: [{ severity: 'error' }], checked: 0 })

  t.equal((await get(`/campaigns/${MADE_UP}/check`)).status, 404)
  t.equal((await post(`/campaigns/${MADE_UP}/check`, {})).status, 404)
  await run('workspace', 'set', workspaceId, 'default_from_email=news@shop.test')
  const list = await make('/lists', { name: 'Others' })
  await make('/contacts', { email: 'bob@one.test', list_id: list })
  const other = await make('/templates', { name: 'U', html: WORDS })
  const sent = await make('/campaigns', { name: 'F', subject: 'News', template_id: other, list_id: list })
  t.equal((await get(`/campaigns/${sent}/check`)).status, 404, 'not checked yet')
  await sendIt(sent)
  await campaignOnce(sent, 'the end', ({ status }) => status === 'completed')
  t.match(await post(`/campaigns/${sent}/check`, {}), {
    status: 409,
    body: { error: { message: /completed/ } },
  })
})

t.test('a check that a stopped server left is made by the next one, and a new one replaces it', async t => {
  const postroad = await openCampaigns(t)
  const { post, one, get } = postroad
  const id = await draftOf(postroad, `${WORDS}{{firstName}}`, [{ email: 'ann@one.test' }])
  await checked(postroad, id)
  const first = one('select id from campaign_checks')
  t.equal((await post(`/campaigns/${id}/check`, {})).status, 202)
  t.not(one('select id from campaign_checks'), first)
  t.equal(one('select count(*) from campaign_checks'), 1)
  await untilLater(
    postroad.clock,
    'the end',
    async () => (await get(`/campaigns/${id}/check`)).body.data.status === 'completed',
  )
  await postroad.remove(`/campaigns/${id}`)
  t.equal(one('select count(*) from campaign_checks'), 0, 'deleted with its campaign')
})
