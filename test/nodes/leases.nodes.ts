/** Kinds of background work that two nodes share: all of it is done once, wherever it arises, also after one of them was killed. */
import t from 'tap'
import { LEASES, type LeaseName } from '../../src/cluster/leases.js'
import { expireSign, openNodes, standing } from '../support/program/nodes.js'
import { until } from '../support/until.js'
import { openReceiver } from '../webhooks/receiver.js'

t.test(
  'a campaign, automation, import and webhook are each done once by two nodes that share the kinds',
  async t => {
    const receiver = await openReceiver(t)
    const env = { POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8' }
    const { first, one, two, list } = await openNodes(t, [env, env])
    await first.run('workspace', 'set', first.workspaceId, 'default_from_email=news@sender.test')
    const shares = async () => (await list()).map(({ leases }) => leases.length)
    await until('the work to be shared', async () => String(await shares()) === '4,3')
    t.same((await list()).flatMap(({ leases }) => leases).sort(), [...LEASES].sort(), 'each is held once')
    for (const [at, node] of [one, two].entries()) {
      // A node learns of a lease when the commit is confirmed, which may be after the list was read.
      const leases = await until('the node to know its share', async () => {
        const known = (await node.get('/health')).body.data.node.leases as readonly LeaseName[]
        return known.length === [4, 3][at] && known
      })
      const metrics = await (await fetch(`${node.baseUrl}/metrics`)).text()
      const shown = LEASES.filter(name => metrics.includes(`postroad_node_lease{lease="${name}"} 1`))
      t.same(shown, leases)
    }

    const key = { key: first.key }
    let next = 0
    const post = async (path: string, body: object | string, headers = {}) => {
      // By turns, so that what one node does is asked for at the other.
      const node = next++ % 2 === 0 ? one : two
      const answer = await node.post(`/api/v1${path}`, body, { ...key, headers })
      if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer.body)}`)
      return answer.body.data
    }
    const seen = () => standing(first, [one, two], first.key)
    const count = (what: string) =>
      Number(first.sql<{ n: number }>(`select count(*)::int as n from ${what}`)[0]?.n)
    const people = await post('/lists', { name: 'News' })
    const template = await post('/templates', { name: 'T', html: '<p>Hello</p>' })
    const flow = await post('/automations', {
      ...{ name: 'Welcome', trigger_type: 'list_joined', trigger_config: { listId: people.id } },
      steps: [{ step_type: 'tag', config: { tagName: 'new' } }],
    })
    await one.patch(`/api/v1/automations/${flow.id}`, { status: 'active' }, key)
    await post('/webhooks/triggers', { targetUrl: `${receiver.url}/hook`, event: 'email.delivered' })
    const run = async (name: string, contacts: number) => {
      const addresses = Array.from({ length: contacts }, (_, at) => `${name}${at}@d${at % 12}.test`)
      const csv = ['email', ...addresses].join('\n')
      const before = count('contacts')
      await post(`/contacts/import?list_id=${people.id}`, csv, { 'Content-Type': 'text/csv' })
      await until('the import', () => count('contacts') === before + contacts, 60_000, seen)
      const { id } = await post('/campaigns', {
        ...{ name, subject: 'News', template_id: template.id, list_id: people.id },
      })
      await post(`/campaigns/${id}/send/api`, {}, { 'Idempotency-Key': name })
      return id as string
    }
    const campaign = await run('a', 40)
    await until(
      'all to be delivered',
      () => count("campaign_recipients where status = 'delivered'") === 40,
      60_000,
      seen,
    )
    await until('all to be tagged', () => count('contact_tags') === 40, 60_000, seen)
    await receiver.has(40)
    await until(
      'all to be counted',
      async () => (await two.get('/api/v1/analytics', key)).body.data?.delivered === 40,
      60_000,
      seen,
    )
    await until(
      'the campaign to be completed',
      async () => (await two.get(`/api/v1/campaigns/${campaign}`, key)).body.data.status === 'completed',
    )

    await run('b', 30)
    await two.end('SIGKILL')
    expireSign(first, two)
    await until('its kinds to move', async () => String(await shares()) === String(LEASES.length), 40_000)
    await until(
      'the rest to be delivered',
      () => count("messages where status = 'delivered'") === 40 + 70,
      60_000,
      seen,
    )
    await until('all to be tagged', () => count('contact_tags') === 70, 60_000, seen)
    await until(
      'all to be counted',
      async () => (await one.get('/api/v1/analytics', key)).body.data?.delivered === 110,
      60_000,
      seen,
    )
    // Calls that were in flight when the node was killed are repeated.
    await until(
      'each delivery to be reported',
      () => new Set(receiver.received.map(({ json }) => json.data.message_id as string)).size === 110,
    )
    t.equal(count('messages'), 110, 'nobody was mailed twice')
    t.equal(count('set_aside_events'), 0)
  },
)
