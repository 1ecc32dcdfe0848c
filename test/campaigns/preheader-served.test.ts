/** What mail clients show beside the subject: set for a campaign, first in the HTML, unseen in the mail and in its text. */
import t from 'tap'
import { simpleParser } from 'mailparser'
import { withPreheader } from '../../src/content/preheader.js'
import { openCampaigns } from './open-campaigns.js'

t.test(
  'a preheader is the first text of the HTML, filled in for each recipient, and not in the plain text',
  async t => {
    const { draft, patch, sendIt, campaignOnce, get, capture } = await openCampaigns(t)
    const id = await draft(['ann@x.test'], { preheader: ' For {{firstName|you}}:\n<b> & jugs ' })
    t.match(await get(`/campaigns/${id}`), {
      body: { data: { preheader: 'For {{firstName|you}}: <b> & jugs' } },
    })
    const [{ id: ann }] = (await get('/contacts')).body.data as [{ id: string }]
    await patch(`/contacts/${ann}`, { first_name: 'A&B' })
    await sendIt(id)
    await campaignOnce(id, 'the end', ({ status }) => status === 'completed')
    const { message_id: message } = (await get(`/campaigns/${id}/recipients`)).body.data[0]
    const mail = await simpleParser(Buffer.from(String((await capture(message)).body.data.raw), 'latin1'))
    const html = String(mail.html)
    t.match(html, /^<div style="display:none;[^"]*">For A&amp;B: &lt;b&gt; &amp; jugs&#847;/)
    t.match(html, 'Hello A&amp;B')
    t.notMatch(mail.text, 'For A')
    t.match(mail.text, /^Hello A&B/)
    t.match(html.slice(html.indexOf('Hello')), /unsubscribe/i, 'the footer is seen')
  },
)

t.test('a preheader is cleared by null or an empty one, and refused with a faulty tag', async t => {
  const { draft, patch, get } = await openCampaigns(t)
  const id = await draft(['ann@x.test'], { preheader: 'Jugs' })
  for (const preheader of [null, ' ']) {
    await patch(`/campaigns/${id}`, { preheader: 'Jugs' })
    t.match(await patch(`/campaigns/${id}`, { preheader }), {
      status: 200,
      body: { data: { preheader: null } },
    })
  }
  t.match(await patch(`/campaigns/${id}`, { preheader: '{{#if a}}x' }), {
    status: 400,
    body: { error: { code: 'validation_error', path: 'preheader' } },
  })
  t.match(await patch(`/campaigns/${id}`, { preheader: 'x'.repeat(501) }), { status: 400 })
  t.match((await get(`/campaigns/${id}`)).body.data, { preheader: null })
})

t.test('it stands after the start of the body, wherever that is', async t => {
  const before = (html: string) => withPreheader(html, 'Jugs').split('<div style="display:none')[0]
  t.equal(before('<p>Hi</p>'), '')
  t.equal(
    before('<html><head><title>a <body> b</title></head><BODY class="a>b">\n<p>Hi</p></body></html>'),
    '<html><head><title>a <body> b</title></head><BODY class="a>b">',
  )
  t.equal(before('<!-- <body> --><body><p>Hi</p>'), '<!-- <body> --><body>')
  t.equal(before('<p>Hi</p><body'), '')
})
