/** Long html and text are read and tried out in another thread, and refused in the same words as short ones. */
import t from 'tap'
import { PlanCache } from '../../src/content/rendering/plan-cache.js'
import { RenderQueue } from '../../src/content/rendering/render-queue.js'
import { runRenderRequest, type RenderRequest } from '../../src/content/rendering/render-request.js'
import { AppError } from '../../src/core/errors.js'
import {
  readableName,
  readElsewhere,
  tryElsewhere,
  type KnownReadable,
} from '../../src/msa/merged-content.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { openTestAppliance } from '../support/program/appliance.js'

const LONG = '<p>News</p>'.repeat(5_000)

function openDesk(isBusy = false) {
  const asked: RenderRequest[] = []
  const plans = new PlanCache()
  const desk = new RenderQueue({
    clock: new FakeClock(),
    render(request) {
      asked.push(request)
      return isBusy
        ? Promise.reject(new AppError('unavailable', 'no room'))
        : Promise.resolve(runRenderRequest(request, plans))
    },
  })
  return { desk, asked }
}

t.test('what is long is read in another thread, what is short or has no tags is not', async t => {
  const { desk, asked } = openDesk()
  const known: KnownReadable = new Map()
  await readElsewhere(desk, 'w', { html: '{{a}}', text: LONG }, known)
  t.same([...known], [])
  const [good, bad] = [`${LONG}{{a}}`, `${LONG}{{#if a}}`]
  await readElsewhere(desk, 'w', { html: good, text: bad }, known)
  await readElsewhere(desk, 'w', { html: good, text: bad }, known)
  t.equal(known.get(readableName('html', good)), null)
  t.match(known.get(readableName('text', bad)), /line 1, column/)
  t.same(
    asked.map(({ kind }) => kind),
    ['parse', 'parse'],
  )
})

t.test(
  'what may pass the bounds with its data is tried there; while the threads are busy it is refused for now',
  async t => {
    const { desk, asked } = openDesk()
    const source = { html: `${LONG}{{#each l}}{{this}}{{/each}}` }
    t.equal(await tryElsewhere(desk, 'w', source, { l: ['a', 'b'] }), true)
    t.equal(await tryElsewhere(desk, 'w', { html: `${LONG}{{a}}` }, { a: 'b' }), false, 'it cannot pass them')
    t.equal(
      await tryElsewhere(desk, 'w', { html: '{{#each l}}{{this}}{{/each}}' }, { l: ['a'] }),
      false,
      'short',
    )
    t.equal(asked.length, 1)
    await t.rejects(tryElsewhere(desk, 'w', source, { l: Array.from({ length: 20_000 }, () => 1) }), {
      code: 'validation_error',
      path: 'template_data',
    })
    const busy = openDesk(true)
    await t.rejects(tryElsewhere(busy.desk, 'w', source, { l: ['a'] }), { code: 'unavailable' })
    await t.rejects(readElsewhere(busy.desk, 'w', source, new Map()), { code: 'unavailable' })
  },
)

t.test('sends for which the threads have no time are 503, and say when to try again', async t => {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey()
  const mail = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello' }
  // Two are parsed at a time, and fifty wait.
  const sends = Array.from({ length: 120 }, (_, n) =>
    postroad.send(key, { ...mail, text: `${n}${'{{a}}'.repeat(9_000)}` }),
  )
  const refused = (await Promise.all(sends)).filter(({ status }) => status !== 200)
  t.ok(refused.length > 0)
  for (const { status, headers, body } of refused) {
    t.match({ status, body }, { status: 503, body: { error: { code: 'unavailable' } } })
    t.equal(headers.get('retry-after'), '1')
  }
})

t.test('a send with long html is refused as one with short html is', async t => {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey()
  const mail = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello' }
  for (const before of ['', LONG]) {
    t.match(await postroad.send(key, { ...mail, html: `${before}\n{{#if a}}` }), {
      status: 400,
      body: { error: { code: 'validation_error', path: 'html', message: /^html: line 2, column 1/ } },
    })
    const data = { l: Array.from({ length: 9_000 }, () => 'x') }
    const html = `${before}{{#each l}}{{this}}{{this}}{{/each}}`
    t.match(await postroad.send(key, { ...mail, html, template_data: data }), {
      status: 400,
      body: { error: { path: 'template_data', message: /^with this template_data, .*steps/ } },
    })
    const readable = `${before}{{#each l}}{{this}}{{/each}}`
    t.match(await postroad.send(key, { ...mail, html: readable, template_data: { l: ['x'] } }), {
      status: 200,
    })
  }
})

t.test('thirty sends of 1 MB of tags are answered, and so is /health before they are', async t => {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey()
  const mail = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello' }
  const tag = `{{#if a${' '.repeat(900)}b}}x{{/if}}`
  let unanswered = 30
  const sends = Array.from({ length: unanswered }, async (_, n) => {
    const answer = await postroad.send(key, { ...mail, text: `${n}${tag.repeat(1_100)}` })
    unanswered -= 1
    return answer
  })
  t.match(await postroad.get('/health'), { status: 200 })
  t.ok(unanswered > 0)
  t.same(new Set((await Promise.all(sends)).map(({ status }) => status)), new Set([200]))
})
