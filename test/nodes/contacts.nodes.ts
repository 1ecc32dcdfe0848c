/** Contacts and lists changed at several servers on one PostgreSQL at the same time: each change is stored and counted. */
import t from 'tap'
import { openTwo } from '../support/program/nodes.js'

t.test('400 contacts created at two nodes at once, all in one list, are all created and counted', async t => {
  const { first, one, two } = await openTwo(t)
  const post = (node: typeof one, path: string, body: object) =>
    node.post(`/api/v1${path}`, body, { key: first.key })
  const list = (await post(one, '/lists', { name: 'News' })).body.data
  const answers = await Promise.all(
    Array.from({ length: 400 }, async (_, at) => {
      const node = at % 2 === 0 ? one : two
      const email = `p${at}@one.test`
      return (await post(node, '/contacts', { email, list_id: list.id })).status
    }),
  )
  t.same(
    answers.filter(status => status !== 201),
    [],
  )
  const get = async (path: string) => (await two.get(`/api/v1${path}`, { key: first.key })).body
  t.equal((await get(`/lists/${list.id}`)).data.member_count, 400)
  t.match(await get('/contacts?limit=1'), { pagination: { total: 400 } })
})
