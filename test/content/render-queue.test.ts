/** Renderings that requests wait for: deduplicated, fair and bounded. */
import t, { type Test } from 'tap'
import { PlanCache } from '../../src/content/rendering/plan-cache.js'
import { RenderQueue, renderKey, type RenderQueueLimits } from '../../src/content/rendering/render-queue.js'
import {
  runRenderRequest,
  type RenderRequest,
  type RenderResult,
} from '../../src/content/rendering/render-request.js'
import { AppError } from '../../src/core/errors.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { nextTurn } from '../../src/world/time/clock.js'

const BOUNDS: RenderQueueLimits = {
  ...{ concurrency: 1, queued: 6, perNetwork: 2, limitMs: 5_000, cacheUnits: 2_000 },
}

const request = (html: string): RenderRequest => ({
  kind: 'mail',
  source: { subject: 'Hello', html },
  own: {},
  recipient: 'ann@x.example',
  date: 0,
  links: { unsubscribeUrl: '#', preferencesUrl: '#', viewUrl: '#' },
  isHtmlEnough: true,
})

/** A queue whose renderings finish on demand. */
function open(_: Test, bounds: Partial<RenderQueueLimits> = {}) {
  const clock = new FakeClock()
  const running: { html: string; settle: (result: RenderResult) => void; fail: (error: Error) => void }[] = []
  const loaded: string[] = []
  const render = (asked: RenderRequest) =>
    new Promise<RenderResult>((settle, fail) => {
      const html = asked.kind === 'mail' ? (asked.source.html ?? '') : ''
      running.push({ html, settle, fail })
    })
  const queue = new RenderQueue({ clock, render }, { ...BOUNDS, ...bounds })
  return {
    queue,
    clock,
    running,
    loaded,
    ask: (name: string, workspaceId = 'w1', network?: string) =>
      queue.render({
        key: name,
        workspaceId,
        ...(network === undefined ? {} : { network }),
        load() {
          loaded.push(name)
          return Promise.resolve(request(name))
        },
      }),
    /** Finishes the current rendering. @returns its name */
    finish: async (html?: string): Promise<string | undefined> => {
      await nextTurn()
      const one = running.shift()
      one?.settle({ kind: 'mail', subject: 'Hello', html: html ?? one.html })
      await nextTurn()
      return one?.html
    },
  }
}

const codeOf = async (asked: Promise<unknown>) =>
  asked.then(
    () => 'rendered',
    (error: unknown) => (error instanceof AppError ? error.code : String(error)),
  )

t.test('concurrent equal requests share one rendering, repeated only after it left the cache', async t => {
  const { ask, finish, loaded } = open(t)
  const asked = [ask('a'), ask('a', 'w1', 'n1'), ask('a', 'w1', 'n2')]
  await finish()
  for (const one of asked) t.match(await one, { html: 'a' })
  t.match(await ask('a'), { html: 'a' })
  t.same(loaded, ['a'])
  const large = ask('b')
  await finish('x'.repeat(3_000))
  await large
  const again = ask('a')
  await finish()
  await again
  t.same(loaded, ['a', 'b', 'a'], 'the cached result was evicted')
})

t.test('workspaces are served in turn, and inputs are loaded only when rendered', async t => {
  const { ask, finish, loaded } = open(t)
  const asked = [ask('a1'), ask('a2'), ask('a3'), ask('b1', 'w2'), ask('b2', 'w2')]
  await nextTurn()
  t.same(loaded, ['a1'])
  const order: (string | undefined)[] = []
  for (const _ of asked) order.push(await finish())
  t.same(order, ['a1', 'a2', 'b1', 'a3', 'b2'])
  await Promise.all(asked)
})

t.test('a client address with too many requests is rate limited, others are not', async t => {
  const { ask, finish } = open(t)
  const asked = [ask('a', 'w1', 'n1'), ask('b', 'w1', 'n1')]
  await t.rejects(ask('c', 'w1', 'n1'), { code: 'rate_limited', retryAfterMs: 1_000 })
  const other = ask('c', 'w1', 'n2')
  for (let n = 0; n < 3; n += 1) await finish()
  await Promise.all([...asked, other])
  const later = ask('d', 'w1', 'n1')
  await finish()
  t.match(await later, { html: 'd' }, 'places are given back')
})

t.test('a workspace that fills its share of the queue is refused, others are not', async t => {
  const { ask, finish } = open(t)
  const asked = ['a', 'b', 'c', 'd'].map(name => ask(name))
  await t.rejects(ask('e'), { code: 'unavailable' })
  asked.push(ask('f', 'w2'), ask('g', 'w3'))
  await t.rejects(ask('h', 'w2'), { code: 'unavailable' })
  for (const _ of asked) await finish()
  await Promise.all(asked)
})

t.test('a request times out; a hanging rendering keeps its slot', async t => {
  const { ask, finish, clock, running } = open(t)
  const asked = [codeOf(ask('a')), codeOf(ask('b'))]
  await nextTurn()
  await clock.advance(5_000)
  t.same(await Promise.all(asked), ['unavailable', 'unavailable'])
  const next = ask('c')
  await nextTurn()
  t.equal(running.length, 1, 'a is still under way')
  t.equal(await finish(), 'a')
  t.equal(await finish(), 'c', 'and b, for which nobody waits, is not rendered')
  t.match(await next, { html: 'c' })
})

t.test('a thread that exits fails only its rendering, and nothing is cached', async t => {
  const { ask, finish, running } = open(t)
  const lost = codeOf(ask('a'))
  await nextTurn()
  running.shift()?.fail(new AppError('unavailable', 'the thread has ended'))
  t.equal(await lost, 'unavailable')
  const again = ask('a')
  await finish()
  t.match(await again, { html: 'a' })
})

t.test('a rendering returns the mail, or what is wrong with its source or data', t => {
  const plans = new PlanCache()
  const brand = { companyName: 'Acme', companyAddress: '', attribution: false, timezone: 'UTC' }
  const filled = (html: string, data = {}) =>
    runRenderRequest({ ...request(html), merging: { brand, hasFooter: false, data } } as RenderRequest, plans)
  t.same(filled('<p>{{company_name}} {{a}}</p>', { a: '<b>' }), {
    ...{ kind: 'mail', subject: 'Hello', html: '<p>Acme &lt;b&gt;</p>' },
  })
  t.match(filled('{{#each l}}{{this}}{{/each}}', { l: Array.from({ length: 30_000 }, () => 1) }), {
    kind: 'refused',
    message: /steps/,
  })
  t.same(runRenderRequest(request('<p>{{as}} it stands</p>'), plans), {
    ...{ kind: 'mail', subject: 'Hello', html: '<p>{{as}} it stands</p>' },
  })
  const parsed = (source: string, data?: object) =>
    runRenderRequest(
      { kind: 'parse', sources: [{ source, place: 'text' }], ...(data ? { data: { ...data } } : {}) },
      plans,
    )
  t.same(parsed('{{a}}'), { kind: 'parsed' })
  t.match(parsed('{{#if a}}', {}), { kind: 'refused', message: /line 1/, place: 'text' })
  t.same(parsed('{{#each l}}{{this}}{{/each}}', { l: ['a'] }), { kind: 'parsed' })
  const refused = parsed('{{#each l}}{{this}}{{/each}}', { l: Array.from({ length: 30_000 }, () => 1) })
  t.match(refused, { kind: 'refused', message: /steps/ })
  t.notHas(refused, { place: 'text' }, 'the fault is that of the data')
  t.not(renderKey('view', 'a'), renderKey('view', 'b'))
  t.end()
})
