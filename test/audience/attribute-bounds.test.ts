/** The bound of what is known of a contact, over HTTP on the running appliance, by whichever way attributes come. */
import t, { type Test } from 'tap'
import { visit } from '../support/api/pages.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { until } from '../support/until.js'

const API = '/api/v1'
const FULL = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`a${at}`, at]))

/** With a contact that has 200 attributes, which is all it may have. */
async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const { key } = postroad
  const post = (path: string, body: object) => postroad.post(API + path, body, { key })
  const make = async (path: string, body: object) => (await post(path, body)).body.data
  const { id } = await make('/contacts', { email: 'ann@x.example', attributes: FULL })
  return {
    ...postroad,
    make,
    show: (path: string) => postroad.get(API + path, { key }),
    change: (body: object) => postroad.patch(`${API}/contacts/${id}`, body, { key }),
    upsert: (body: object) => postroad.put(`${API}/contacts`, body, { key }),
    ann: async () => (await postroad.get(`${API}/contacts/${id}`, { key })).body.data,
  }
}

t.test('attributes have a bound all together, however many changes they come by', async t => {
  const { change, upsert, ann } = await open(t)
  const tooMany = { status: 400, body: { error: { code: 'validation_error', path: 'attributes' } } }
  t.match(await change({ attributes: { more: 1 } }), tooMany)
  t.match(await upsert({ email: 'ann@x.example', attributes: { more: 1 } }), tooMany)
  t.same((await ann()).attributes, FULL)
  t.match(await change({ attributes: { a0: null, more: 1 } }), { status: 200 }, 'one in place of another')
  const text = 'x'.repeat(20_000)
  t.match(await change({ attributes: { a1: text } }), { status: 200 })
  t.match(await change({ attributes: { a2: text } }), tooMany)
  t.match(await change({ attributes: { a1: null } }), { status: 200 })
})

t.test('a form puts a contact into its list who has no room for what was filled in', async t => {
  const { make, ann, baseUrl } = await open(t)
  const list = await make('/lists', { name: 'News' })
  const fields = [{ name: 'company', label: 'Company' }]
  const form = await make('/forms', { name: 'Join', list_ids: [list.id], fields })
  const filled = { email: 'ann@x.example', company: 'ACME' }
  t.match(await visit(`${baseUrl}/f/${form.id}`, { form: filled }), { status: 200 })
  t.match(await ann(), { lists: [{ id: list.id }] })
  t.same((await ann()).attributes, FULL)
})

t.test("a row that would exceed a contact's limits is rejected and returned unchanged", async t => {
  const { make, ann, show, baseUrl, key } = await open(t)
  const list = await make('/lists', { name: 'News' })
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'text/csv' }
  const imported = async (body: string) => {
    const url = `${baseUrl}${API}/contacts/import?list_id=${list.id}`
    const answer = await fetch(url, { method: 'POST', headers, body })
    const { data } = (await answer.json()) as { data: { import_id: string } }
    return until('the import to end', async () => {
      const one = (await show(`/contacts/imports/${data.import_id}`)).body.data
      return one.completed_at !== null && one
    })
  }
  const row = 'ann@x.example,Ann,0,pro,vip'
  const done = await imported(`email,First name,a0,plan,tags\n${row}\nbob@x.example,Bob,,pro,\n`)
  t.match(done, {
    ...{ status: 'completed', created: 1, updated: 0, unchanged: 0, rejected: 1 },
    rejected_rows: [{ line: 2, reason: /exceed its attribute limits/ }],
  })
  const rejected = await fetch(`${baseUrl}${API}/contacts/imports/${done.id}/rejected`, { headers })
  t.match(await rejected.text(), row)
  const { first_name: name, lists, tags } = await ann()
  t.same({ name, lists, tags }, { name: null, lists: [], tags: [] })
  t.match(await imported('email,a0,a1\nann@x.example,seven,1\n'), { updated: 1, rejected: 0 })
  t.match(await ann(), { attributes: { a0: 'seven', a1: 1 }, lists: [{ id: list.id }] })
})
