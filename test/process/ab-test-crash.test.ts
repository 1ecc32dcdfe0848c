/** kill -9 during an A/B test: while the sample is drawn and mailed, and between the decision and the rest. Everybody gets one mail. */
import t from 'tap'
import { openSink } from '../support/smtp/sink.js'
import { initialise, routeTo, type Initialised } from '../support/program/process.js'
import { often } from '../support/long.js'
import { until } from '../support/until.js'

const CONTACTS = often(900, 3_000)
const SAMPLE_PERCENT = 40
const SAMPLE = (CONTACTS * SAMPLE_PERCENT) / 100

function look({ sql }: Initialised) {
  const number = (query: string) => Number(sql<{ n: number }>(`select ${query} as n`)[0]?.n)
  return {
    drawn: number('(select coalesce(max(drawn), 0) from campaign_tests)'),
    /** As the recipients say, and as is counted. */
    sampled: number('(select count(*) from campaign_recipients where variant is not null)'),
    counted: number('(select coalesce(sum(recipients), 0) from campaign_variants)'),
    waiting: number(
      "(select count(*) from campaign_recipients where status = 'pending' and variant is not null)",
    ),
    countedWaiting: number('(select coalesce(sum(pending), 0) from campaign_variants)'),
    messages: number('(select count(*) from messages)'),
    people: number('(select count(distinct recipient) from messages)'),
    decided: number('(select count(*) from campaign_tests where winner is not null)'),
    completed: number("(select count(*) from campaigns where status = 'completed')"),
    /** Whose mail is not the one they were drawn for. */
    wrong:
      number(`(select count(*) from campaign_recipients as r inner join messages as m on m.id = r.message_id
      inner join message_contents as c on c.id = m.content_id where c.subject <> case r.variant when 0 then 'Alpha' else 'Beta' end)`),
  }
}

t.test('a server killed at every stage of an A/B test sends everybody one variant once', async t => {
  const sink = await openSink(t)
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  const settings = ['default_from_email=news@shop.example', 'hourly_limit=0', 'daily_limit=0']
  await postroad.run('workspace', 'set', postroad.workspaceId, ...settings)
  let server = await postroad.serve()
  const post = async (path: string, body: object, headers = {}) =>
    (await server.post(`/api/v1${path}`, body, { key: postroad.key, headers })).body.data
  const list = await post('/lists', { name: 'News' })
  const template = await post('/templates', { name: 'T', html: '<p>Hello</p>' })
  for (let at = 0; at < CONTACTS; at += 300) {
    const contacts = Array.from({ length: Math.min(300, CONTACTS - at) }, (_, one) => ({
      email: `c${at + one}@x.example`,
      list_ids: [list.id],
    }))
    await post('/contacts/batch', { contacts })
  }
  const { id } = await post('/campaigns', {
    ...{ name: 'January', subject: 'News', template_id: template.id, list_id: list.id },
    ab_test: {
      variants: [{ subject: 'Alpha' }, { subject: 'Beta' }],
      ...{ sample_percent: SAMPLE_PERCENT, decide_after_minutes: null },
    },
  })
  await post(`/campaigns/${id}/send/api`, {}, { 'Idempotency-Key': 'once' })
  const killed = async (when: string, isSo: (seen: ReturnType<typeof look>) => boolean) => {
    await until(when, () => isSo(look(postroad)))
    await server.end('SIGKILL')
    const seen = look(postroad)
    t.comment(`${when}: ${JSON.stringify(seen)}`)
    t.equal(seen.messages, seen.people, `${when}: nobody twice`)
    t.equal(seen.sampled, seen.counted, `${when}: the sample is counted`)
    t.equal(seen.waiting, seen.countedWaiting, `${when}: what is left of it is counted`)
    t.equal(seen.wrong, 0, `${when}: everybody got what was drawn`)
    server = await postroad.serve()
    return seen
  }
  await killed('once some are drawn', ({ drawn }) => drawn > 0)
  await killed('once some of the sample are mailed', ({ messages }) => messages > 0)
  await until('the sample', () => look(postroad).messages === SAMPLE)
  await until('the wait', async () => {
    const answer = await server.get(`/api/v1/campaigns/${id}/ab-test`, { key: postroad.key })
    return answer.body.data.phase === 'waiting'
  })
  const waiting = await killed('while a person decides', ({ decided }) => decided === 0)
  t.equal(waiting.messages, SAMPLE)
  // Killed as soon as the choice is stored, answered or not.
  const choice = post(`/campaigns/${id}/ab-test/winner`, { variant: 'B' }).catch(() => undefined)
  await killed('once it is decided', ({ decided }) => decided === 1)
  await choice
  await killed('once some of the rest are mailed', ({ messages }) => messages > SAMPLE)
  await until('the end', () => look(postroad).completed === 1, 400_000)
  const end = look(postroad)
  t.match(end, { messages: CONTACTS, people: CONTACTS, sampled: SAMPLE, decided: 1, wrong: 0 })
  const count = (subject: string) =>
    Number(
      postroad.sql<{ n: number }>(
        `select count(*) as n from messages inner join message_contents as c on c.id = content_id where c.subject = '${subject}'`,
      )[0]?.n,
    )
  t.same([count('Alpha'), count('Beta')], [SAMPLE / 2, CONTACTS - SAMPLE / 2])
  const told = await server.get(`/api/v1/campaigns/${id}/ab-test`, { key: postroad.key })
  t.match(told.body.data, { phase: 'decided', winner: 'B', rest: { recipients: CONTACTS - SAMPLE } })
  // A mail that was in flight at a kill may arrive again, but never as another variant.
  const subjects = new Map<string, Set<string>>()
  for (const { recipients, raw } of sink.arrived)
    for (const to of recipients)
      subjects.set(
        to,
        (subjects.get(to) ?? new Set()).add(/^Subject: (\w+)/m.exec(raw.toString('latin1'))?.[1] ?? ''),
      )
  t.equal(subjects.size, CONTACTS, 'all arrived')
  t.same([...new Set([...subjects.values()].map(({ size }) => size))], [1], 'one variant each')
})
