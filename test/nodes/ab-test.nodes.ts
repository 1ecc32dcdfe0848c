/** Two nodes and an A/B test: the winner is decided once, whichever node is asked and whichever dies. */
import t from 'tap'
import { expireSign, openTwo } from '../support/program/nodes.js'
import { until } from '../support/until.js'

t.test(
  'of two choices at two nodes one wins, and the other node sends the rest if the first dies',
  async t => {
    const { first, one, two } = await openTwo(t)
    await first.run('workspace', 'set', first.workspaceId, 'default_from_email=news@sender.test')
    const count = (what: string) =>
      Number(first.sql<{ n: number }>(`select count(*)::int as n from ${what}`)[0]?.n)
    const post = async (path: string, body: object, headers = {}) =>
      (await two.post(`/api/v1${path}`, body, { key: first.key, headers })).body.data
    const list = await post('/lists', { name: 'News' })
    const contacts = Array.from({ length: 40 }, (_, at) => ({
      email: `c${at}@one.test`,
      list_ids: [list.id],
    }))
    await post('/contacts/batch', { contacts })
    const template = await post('/templates', { name: 'T', html: '<p>Hi</p>' })
    const { id } = await post('/campaigns', {
      ...{ name: 'January', subject: 'News', template_id: template.id, list_id: list.id },
      ab_test: {
        variants: [{ subject: 'Alpha' }, { subject: 'Beta' }],
        ...{ sample_percent: 50, decide_after_minutes: null },
      },
    })
    await post(`/campaigns/${id}/send/api`, {}, { 'Idempotency-Key': 'once' })
    await until('the sample', () => count('campaign_tests where sampled_at is not null') > 0, 120_000)
    const answers = await Promise.all(
      [one, two].map((node, at) =>
        node.post(`/api/v1/campaigns/${id}/ab-test/winner`, { variant: 'AB'[at] }, { key: first.key }),
      ),
    )
    t.same(answers.map(({ status }) => status).sort(), [200, 409])
    await one.end('SIGKILL')
    expireSign(first, one)
    await until('the end', () => count("campaigns where status = 'completed'") > 0, 120_000)
    t.same([count('messages'), count('(select distinct recipient from messages) as people')], [40, 40])
    const winner = answers[0]?.status === 200 ? 'Alpha' : 'Beta'
    t.equal(
      count(`messages inner join message_contents as c on c.id = content_id where c.subject = '${winner}'`),
      30,
    )
    t.equal(count("activities where action = 'campaign.winner_chosen'"), 1)
  },
)
