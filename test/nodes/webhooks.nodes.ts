/** Webhooks made at one of two servers on one PostgreSQL: events after the response are delivered, wherever they happen. */
import t from 'tap'
import { openTwo } from '../support/program/nodes.js'
import { openReceiver } from '../webhooks/receiver.js'

t.test('a webhook that one node has confirmed receives the next event of the other', async t => {
  const receiver = await openReceiver(t)
  const { first, one, two } = await openTwo(t, { POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8' })
  const post = async (node: typeof one, path: string, body: object) => {
    const answer = await node.post(`/api/v1${path}`, body, { key: first.key })
    t.equal(answer.status, 201, JSON.stringify(answer.body))
    return answer.body.data
  }
  const hook = (event: string) => ({ targetUrl: receiver.url, event })
  const list = await post(one, '/lists', { name: 'News' })
  await post(one, '/webhooks/triggers', hook('contact.created'))
  await post(two, '/contacts', { email: 'ann@one.test' })
  await post(two, '/webhooks/triggers', hook('list.member_added'))
  await post(one, '/contacts', { email: 'bob@one.test', list_id: list.id })
  await receiver.has(2, 'contact.created')
  await receiver.has(1, 'list.member_added')
})
