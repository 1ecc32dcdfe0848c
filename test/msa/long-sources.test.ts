/** Long html and text are read and tried out in another thread, and refused in the same words as short ones. */
import t from 'tap'
import { PlanCache } from '../../src/content/rendering/plan-cache.js'
import { RenderQueue } from '../../src/content/rendering/render-queue.js'
import { runRenderRequest, type RenderRequest } from '../../src/content/rendering/render-request.js'
import { AppError } from '../../src/core/errors.js'
import { MergeText, MergeTextCache } from '../../src/content/merge/merge-text.js'
import { prepareContent, readTexts } from '../../src/content/preparation/prepare-content.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { openTestAppliance } from '../support/program/appliance.js'

const LONG = '<p>News</p>'.repeat(5_000)

const SETTINGS = {
  ...{ companyName: null, companyAddress: null, attribution: false, timezone: 'UTC' },
  ...{ isMarketing: false, trackOpens: false, trackClicks: false },
  ...{ utmSource: null, utmMedium: null, utmCampaign: null },
}
const SUBJECT = new MergeText('Hello', 'subject')

function openThreads(isBusy = false) {
  const asked: RenderRequest[] = []
  const plans = new PlanCache()
  const renderQueue = new RenderQueue({
    clock: new FakeClock(),
    render(request) {
      asked.push(request)
      return isBusy
        ? Promise.reject(new AppError('unavailable', 'no room'))
        : Promise.resolve(runRenderRequest(request, plans))
    },
  })
  return { threads: { renderQueue, workspaceId: 'w' }, asked }
}

t.test('what is long is parsed in another thread, what is short or has no tags is not', async t => {
  const { threads, asked } = openThreads()
  const cache = new MergeTextCache()
  await readTexts({ html: '{{a}}', text: LONG }, undefined, threads, cache)
  t.same(asked, [])
  const good = `${LONG}{{a}}`
  await readTexts({ html: good }, undefined, threads, cache)
  await readTexts({ html: good }, undefined, threads, cache)
  t.same(
    asked.map(({ kind }) => kind),
    ['parse'],
    'once for all messages of a request',
  )
  const bad = { html: good, text: `${LONG}{{#if a}}` }
  await t.rejects(readTexts(bad, undefined, threads, cache), {
    ...{ code: 'validation_error', path: 'text', message: /^text: line 1, column/ },
  })
})

t.test('a long html that may pass the bounds with its data is parsed and tried in one go', async t => {
  const { threads, asked } = openThreads()
  const html = `${LONG}{{#each l}}{{this}}{{/each}}`
  const prepare = async (written: { html: string }, data: Readonly<Record<string, unknown>>) => {
    const before = asked.length
    const texts = await readTexts(written, data, threads)
    await prepareContent(SETTINGS, { subject: SUBJECT, ...texts, data }, threads)
    return asked.length - before
  }
  t.equal(await prepare({ html }, { l: ['a', 'b'] }), 1)
  t.match(asked, [{ data: { l: ['a', 'b'] } }])
  t.equal(await prepare({ html: `${LONG}{{a}}` }, { a: 'b' }), 1, 'it cannot pass them')
  t.notOk(asked.some(request => 'data' in request && 'a' in (request.data as object)))
  t.equal(await prepare({ html: '{{#each l}}{{this}}{{/each}}' }, { l: ['a'] }), 0, 'short')
  await t.rejects(prepare({ html }, { l: Array.from({ length: 20_000 }, () => 1) }), {
    ...{ code: 'validation_error', path: 'template_data' },
  })
})

t.test("a template is tried with a request's data in another thread, if the two are long", async t => {
  const { threads, asked } = openThreads()
  const template = { id: 't', html: new MergeText(`${LONG}{{#each l}}{{this}}{{/each}}`, 'html', true) }
  const prepare = (data: Readonly<Record<string, unknown>>) =>
    prepareContent(SETTINGS, { subject: SUBJECT, template, data }, threads)
  t.match(await prepare({ l: ['a'] }), { html: template.html.source, templateId: 't' })
  t.equal(asked.length, 1)
  await t.rejects(prepare({ l: Array.from({ length: 20_000 }, () => 1) }), {
    ...{ code: 'validation_error', path: 'template_data' },
  })
})

t.test('while the threads are busy, long texts are refused for now', async t => {
  const { threads } = openThreads(true)
  const html = `${LONG}{{#each l}}{{this}}{{/each}}`
  await t.rejects(readTexts({ html }, undefined, threads), { code: 'unavailable' })
  const template = { id: 't', html: new MergeText(html, 'html', true) }
  const content = { subject: SUBJECT, template, data: { l: ['a'] } }
  await t.rejects(prepareContent(SETTINGS, content, threads), { code: 'unavailable' })
})

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
