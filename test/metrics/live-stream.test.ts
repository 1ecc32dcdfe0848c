/** `GET /live/stream`: server-sent events about what has changed, and live figures. */
import t, { type Test } from 'tap'
import { MAX_PER_OPERATOR } from '../../src/metrics/live-streams.js'
import { openTestAppliance, type TestAppliance } from '../support/program/appliance.js'
import { signedIn, tokenWith } from '../support/program/operators.js'
import { until, untilLater } from '../support/until.js'

const PATH = '/api/admin/v1/live/stream'

interface LiveEvent {
  readonly changed: readonly string[]
  readonly figures?: { readonly balance: { readonly accepted: number } }
}

/** What a browser's EventSource sees. */
async function listen(t: Test, { baseUrl }: TestAppliance, headers: Record<string, string>, query = '') {
  const leaving = new AbortController()
  t.teardown(() => leaving.abort())
  const response = await fetch(`${baseUrl}${PATH}${query}`, { headers, signal: leaving.signal })
  const seen = { text: '', isOver: false }
  const reading = (async () => {
    const decoder = new TextDecoder()
    for await (const piece of response.body ?? []) seen.text += decoder.decode(piece as Uint8Array)
  })()
  void reading.catch(() => {}).finally(() => (seen.isOver = true))
  return {
    response,
    seen,
    leave: () => leaving.abort(),
    events: (): LiveEvent[] =>
      [...seen.text.matchAll(/^event: live\ndata: (.*)$/gm)].map(
        ([, data]) => JSON.parse(data ?? '') as LiveEvent,
      ),
    ready: () => until('the stream to begin', () => seen.text.includes('event: ready')),
  }
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })

/** Advances the clock until it is so: what was written is seen at the next computation. */
async function soon(postroad: TestAppliance, what: string, look: () => boolean): Promise<void> {
  await untilLater(postroad.clock, what, look)
}

t.test('what one operator changes is told to the others who may read it', async t => {
  const postroad = await openTestAppliance(t)
  const { id: other } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  const own = await listen(
    t,
    postroad,
    bearer(await tokenWith(postroad, 'viewer')),
    `?workspace_id=${postroad.workspaceId}`,
  )
  const stranger = await listen(
    t,
    postroad,
    bearer(await tokenWith(postroad, [{ workspaceId: other, role: 'owner' }])),
  )
  t.match(own.response.headers.get('content-type'), 'text/event-stream')
  t.match(own.response.headers.get('cache-control'), /no-store.*no-transform/)
  t.equal(own.response.headers.get('content-encoding'), null, 'never compressed')
  await own.ready()
  await stranger.ready()
  await postroad.post('/api/v1/lists', { name: 'News' }, { key: postroad.key })
  await soon(postroad, 'the list', () => own.events().some(({ changed }) => changed.includes('lists')))
  t.equal(
    stranger.events().some(({ changed }) => changed.includes('lists')),
    false,
    'another workspace is not concerned',
  )
  t.equal(own.events().at(-1)?.figures, undefined, 'figures come on request only')
})

t.test('mail, and what it leads to, is told as it happens, with live figures on request', async t => {
  const postroad = await openTestAppliance(t)
  const all = await listen(t, postroad, bearer(await tokenWith(postroad, 'viewer')), '?figures=true')
  const marketer = await listen(t, postroad, bearer(await tokenWith(postroad, 'marketer')), '?figures=true')
  await all.ready()
  await marketer.ready()
  await postroad.send(postroad.key, {
    to: ['ann@one.test'],
    subject: 'Hi',
    text: 'Hi.\n',
    from_email: 'me@sender.test',
  })
  await soon(postroad, 'the figures', () => all.events().at(-1)?.figures?.balance.accepted === 1)
  const changed = (events: readonly LiveEvent[]) => new Set(events.flatMap(event => event.changed))
  t.ok(changed(all.events()).has('messages'))
  t.ok(changed(all.events()).has('queue'))
  t.ok(changed(marketer.events()).has('messages'))
  t.notOk(changed(marketer.events()).has('queue'), 'a marketer may not read the queue')
  t.ok(marketer.events().every(({ figures }) => figures === undefined))
})

t.test('a stream ends with its session, and silence is broken by a comment', async t => {
  const postroad = await openTestAppliance(t)
  const browser = await signedIn(postroad)
  const stream = await listen(t, postroad, { Cookie: browser.cookie })
  await stream.ready()
  await postroad.clock.advance(15_000)
  await soon(postroad, 'a comment', () => stream.seen.text.includes('\n: '))
  t.equal(stream.seen.isOver, false)
  await browser.ask('DELETE', '/session')
  await soon(postroad, 'the end', () => stream.seen.isOver)
  const again = await listen(t, postroad, { Cookie: browser.cookie || 'none=1' })
  t.equal(again.response.status, 401)
})

t.test('an open stream does not count as use of the session', async t => {
  const postroad = await openTestAppliance(t)
  const browser = await signedIn(postroad)
  const other = await signedIn(postroad)
  const lastUse = async () => {
    const { body } = await other.ask('GET', `/operators/${browser.id}/sessions`)
    return (body as { data: { last_seen_at: string }[] }).data[0]?.last_seen_at
  }
  const stream = await listen(t, postroad, { Cookie: browser.cookie })
  await stream.ready()
  const before = await lastUse()
  t.ok(before)
  await postroad.clock.advance(5 * 60_000)
  await until('comments', () => stream.seen.text.includes('\n: '))
  t.equal(await lastUse(), before)
})

t.test('streams are limited per operator, and a place is free again when one leaves', async t => {
  const postroad = await openTestAppliance(t)
  const token = bearer(await tokenWith(postroad, 'viewer'))
  const streams = []
  for (let n = 0; n < MAX_PER_OPERATOR; n++) {
    const stream = await listen(t, postroad, token)
    await stream.ready()
    streams.push(stream)
  }
  const refused = await listen(t, postroad, token)
  t.equal(refused.response.status, 429)
  t.equal(refused.response.headers.get('retry-after'), '30')
  streams[0]?.leave()
  await until('a place', async () => {
    const next = await listen(t, postroad, token)
    return next.response.status === 200
  })
})

t.test('a workspace without a role there does not exist for the caller', async t => {
  const postroad = await openTestAppliance(t)
  const { id: other } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  const token = await tokenWith(postroad, [{ workspaceId: other, role: 'owner' }])
  const { response } = await listen(t, postroad, bearer(token), `?workspace_id=${postroad.workspaceId}`)
  t.equal(response.status, 404)
  const { response: keyed } = await listen(t, postroad, bearer(postroad.key))
  t.equal(keyed.status, 401)
})

t.test('open streams do not hold up a shutdown', async t => {
  const postroad = await openTestAppliance(t)
  const stream = await listen(t, postroad, bearer(await tokenWith(postroad, 'viewer')))
  await stream.ready()
  // The clock stands still: a connection that has to be waited for would wait forever.
  await postroad.stop()
  await until('the end', () => stream.seen.isOver)
  t.ok(stream.seen.isOver)
})
