/** Captured mail in the admin API: what it says, and its HTML as a page that can do nothing. */
import t from 'tap'
import { tokenWith } from '../support/program/operators.js'
import { openTestAppliance } from '../support/program/appliance.js'

const CAPTURED = '/api/admin/v1/captured'

t.test('a captured mail is read by its parts', async t => {
  const postroad = await openTestAppliance(t)
  const viewer = await tokenWith(postroad, [{ workspaceId: '*', role: 'viewer' }])
  const ofOneWorkspace = await tokenWith(postroad, [{ workspaceId: postroad.workspaceId, role: 'owner' }])
  const mail = { to: ['ann@one.test'], from_email: 'me@sender.test', subject: 'Hi', html: '<p>Hello</p>' }
  const { body } = await postroad.send(postroad.key, mail)
  const [{ message_id: id } = { message_id: '' }] = body.data.results as { message_id: string }[]
  await postroad.messageOnce(postroad.key, id, 'delivered')
  const content = await postroad.get(`${CAPTURED}/${id}/content`, { key: viewer })
  t.match(content.body.data, { has_html: true, text: /Hello/, attachments: [] })
  const names = (content.body.data.headers as { name: string }[]).map(({ name }) => name)
  for (const name of ['From', 'To', 'Subject', 'Message-ID', 'DKIM-Signature'])
    t.ok(names.includes(name), name)
  const page = await fetch(`${postroad.baseUrl}${CAPTURED}/${id}/rendered`, {
    headers: { Authorization: `Bearer ${viewer}` },
  })
  t.match(page.headers.get('content-security-policy'), /^sandbox; default-src 'none'; /)
  t.match(await page.text(), /<p>Hello<\/p>/)
  t.equal((await postroad.get(`${CAPTURED}/${id}/content`, { key: ofOneWorkspace })).status, 403)
  t.equal((await postroad.get(`${CAPTURED}/none/rendered`, { key: viewer })).status, 404)
})

t.test('captured mail is found by words of its recipient and subject', async t => {
  const postroad = await openTestAppliance(t)
  const viewer = await tokenWith(postroad, 'viewer')
  for (const [to, subject] of [
    ['ann@one.test', 'Your Invoice 7'],
    ['bob@one.test', 'Your order'],
    ['ann@two.test', '100% off'],
  ] as const) {
    const mail = { to: [to], from_email: 'me@sender.test', subject, text: 'Hello' }
    const { body } = await postroad.send(postroad.key, mail)
    const [{ message_id: id } = { message_id: '' }] = body.data.results as { message_id: string }[]
    await postroad.messageOnce(postroad.key, id, 'delivered')
  }
  const find = async (search: string) => {
    const { body } = await postroad.get(`${CAPTURED}?search=${encodeURIComponent(search)}`, { key: viewer })
    const { data, pagination } = body as { data: { recipient: string }[]; pagination: { total: number } }
    t.equal(pagination.total, data.length)
    return data.map(({ recipient }) => recipient)
  }
  t.same(await find('ANN'), ['ann@two.test', 'ann@one.test'])
  t.same(await find('ann invoice'), ['ann@one.test'])
  t.same(await find('%'), ['ann@two.test'])
  t.same(await find('nobody'), [])
  t.same(await find(''), ['ann@two.test', 'bob@one.test', 'ann@one.test'])
  t.equal((await postroad.get(`${CAPTURED}?search=${'x'.repeat(201)}`, { key: viewer })).status, 400)
})
