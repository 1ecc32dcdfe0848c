/** Mail planned once and rendered per recipient: the same result as composing each from scratch. */
import { Parser } from 'htmlparser2'
import t from 'tap'
import { plainTextOf } from '../../src/mail/compose/plain-text.js'
import type { MergeContact } from '../../src/content/merge/merge-values.js'
import { parseTemplate } from '../../src/content/merge/parse-template.js'
import { renderTemplate } from '../../src/content/merge/render-template.js'
import { foldConstants } from '../../src/content/rendering/fold-constants.js'
import {
  planBody,
  planSubject,
  renderMail,
  valuesOf,
  type MailSource,
} from '../../src/content/rendering/mail-plan.js'
import type { MergeData, Merging } from '../../src/content/rendering/merging.js'
import { PlanCache } from '../../src/content/rendering/plan-cache.js'

const NOW = Date.UTC(2026, 0, 5, 23)
const merging: Merging = {
  brand: { companyName: 'Birds & Co', companyAddress: '', attribution: false, timezone: 'Asia/Tokyo' },
  hasFooter: false,
}
const links = {
  unsubscribeUrl: 'https://m.example/u/1?a=b&c',
  preferencesUrl: 'https://m.example/p/1',
  viewUrl: 'https://m.example/v/1',
}

function valuesFor(data?: MergeData, contact?: MergeContact) {
  return valuesOf(merging, { ...(data && { data }), ...(contact && { contact }) }, 'ann@one.test', NOW, links)
}

function render(source: MailSource, data?: MergeData, contact?: MergeContact, how = merging) {
  const plan = { subject: planSubject(source.subject, how), body: planBody(source, how) }
  return renderMail(plan, valuesFor(data, contact))
}

const squeezed = (text: string | undefined) => text?.replace(/\s+/g, ' ').trim()

t.test('the text derived from a template equals the text of the rendered html', async t => {
  const html =
    '<h1>Hi {{name}}</h1><p>See <a href="https://x.example/{{path}}?q={{q}}">here, {{name}}</a> or ' +
    '<a href="{{unsubscribe_url}}">stop</a>.</p><img alt="{{alt}}" src="{{src}}"><p title="{{q}}">{{{raw|}}}</p>'
  for (const source of [html.replace('{{{raw|}}}', ''), html.replace('{{{raw|}}}', '{{{raw}}}')]) {
    const mail = render(
      { subject: '', html: source },
      { name: '<Ann & Bob>', path: 'a b', q: 'x&y "z"', raw: '<b>!</b>' },
    )
    t.equal(squeezed(mail.text), squeezed(plainTextOf(mail.html ?? '')))
    t.match(mail.text, 'Hi <Ann & Bob>')
    t.match(mail.text, '<https://x.example/a%20b?q=x%26y%20%22z%22>')
    t.match(mail.text, '<https://m.example/u/1?a=b&c>')
  }
})

t.test('the text follows conditions and loops for recipients in any order', async t => {
  const body = planBody(
    {
      html:
        '<p>{{#if vip}}Dear {{name}}{{else}}Hello{{/if}}</p>{{#unless quiet}}<ul><li>One</li></ul>{{/unless}}' +
        '<ol>{{#each items}}<li>{{this}}</li>{{/each}}</ol>',
    },
    merging,
  )
  const noLoops = planBody(
    {
      html: '<p>{{#if vip}}Dear {{name}}{{else}}Hello{{#if quiet}}, hush{{/if}}{{/if}}</p>{{#unless quiet}}<ul><li>One</li></ul>{{/unless}}',
    },
    merging,
  )
  for (const data of [
    { vip: true, name: 'Ann', items: ['a', 'b'] },
    { quiet: true },
    { vip: true, name: 'Bob', quiet: true, items: ['c'] },
    {},
    { vip: true, name: 'Ann', items: ['a', 'b'] },
  ])
    for (const plan of [body, noLoops]) {
      const mail = renderMail({ subject: planSubject('', merging), body: plan }, valuesFor(data))
      t.equal(squeezed(mail.text), squeezed(plainTextOf(mail.html ?? '')), JSON.stringify(data))
    }
})

t.test('a text given by the author is not derived from the html', async t => {
  t.equal(render({ subject: '', html: '<p>x</p>', text: 'Own {{name|you}}' }).text, 'Own you')
  t.same(render({ subject: 'Hi', text: 'x' }), { subject: 'Hi', text: 'x' })
})

t.test('constants are folded once, with the same result', async t => {
  for (const source of [
    '{{company_name}}, {{company_address|at home}} {{company_name||uppercase}} <a href="/{{company_name}}">',
    '{{#if company_address}}a{{else}}b{{#if name}}c{{/if}}{{/if}}{{#unless company_name == "x"}}d{{/unless}}',
    '{{#each list}}{{company_name}}{{this}}{{#if 1}}e{{/if}}{{else}}none{{/each}}',
  ]) {
    const template = parseTemplate(source, 'html')
    const folded = foldConstants(template, { company_name: 'Birds & Co', company_address: '' })
    t.notMatch(JSON.stringify(folded.nodes), /company_/)
    for (const data of [{}, { name: 'Ann', list: [1, 2] }])
      t.equal(renderTemplate(folded, valuesFor(data)), renderTemplate(template, valuesFor(data)))
  }
})

t.test('every rendered variant has exactly one visible unsubscribe link', async t => {
  const how = { ...merging, hasFooter: true }
  const link = '<a href="{{unsubscribe_url}}">Stop</a>'
  const counts = (html: string, ...recipients: Record<string, unknown>[]) => {
    const plan = { subject: planSubject('x', how), body: planBody({ html: `<body>${html}</body>` }, how) }
    return recipients.map(data => {
      const written = renderMail(plan, valuesOf(how, { data }, 'ann@one.test', NOW, links)).html ?? ''
      const shown = written
        .replace(/<!--.*?-->/gs, '')
        .replace(/<(div|p) style="display:none">.*?<\/\1>/gs, '')
      return [shown.match(/>Stop</g)?.length ?? 0, shown.match(/>Unsubscribe</g)?.length ?? 0]
    })
  }
  const [own, ours] = [
    [1, 0],
    [0, 1],
  ]
  t.same(counts(`{{#if vip}}${link}{{/if}}`, { vip: true }, {}, { vip: true }, { vip: '' }), [
    own,
    ours,
    own,
    ours,
  ])
  t.same(counts(`{{#unless vip}}${link}{{else}}<!-- ${link} -->{{/unless}}`, { vip: 1 }, {}), [ours, own])
  t.same(counts(`{{#if a}}<div style="display:none">{{/if}}${link}{{#if a}}</div>{{/if}}`, { a: 1 }, {}), [
    ours,
    own,
  ])
  t.same(counts(`{{#each list}}${link}{{else}}none{{/each}}`, { list: [1] }, { list: [] }, {}), [
    own,
    ours,
    ours,
  ])
  t.same(counts(`{{{raw}}}${link}{{{end}}}`, { raw: '<p>' }, { raw: '<!-- ', end: '-->' }), [own, ours])
  t.same(counts(`<div style="{{look}}">${link}</div>`, { look: '' }, { look: 'display:none' }, {}), [
    own,
    ours,
    own,
  ])
  t.same(
    counts(
      '<a href="{{unsubscribe_url}}">{{words}}</a>',
      { words: 'Stop' },
      { words: '' },
      { words: 'Stop' },
    ),
    [own, ours, own],
  )
  t.same(counts(`{{#if company_name}}${link}{{else}}{{/if}}`, {}), [own])
})

t.test('the HTML is scanned once per outcome of its conditions', async t => {
  const how = { ...merging, hasFooter: true }
  const html = '<body>{{#if vip}}<a href="{{unsubscribe_url}}">Stop</a>{{/if}}{{first_name}}</body>'
  const body = planBody({ html }, how)
  const planned = new Set<unknown>()
  for (let n = 0; n < 200; n++)
    planned.add(
      body.html?.for(valuesOf(how, { data: { vip: n % 2 === 0, n } }, `a${n}@one.test`, NOW, links)),
    )
  t.equal(planned.size, 2)
})

t.test("date tags use the date of the mail in the workspace's time zone", async t => {
  const { text } = render({ subject: '', text: '{{current_date}}|{{current_month}}|{{current_year}}' })
  t.equal(text, 'January 6, 2026|January|2026')
})

t.test('a subject stays one line of at most the permitted length', async t => {
  t.equal(render({ subject: '{{a}}', text: '' }, { a: 'x'.repeat(2_000) }).subject.length, 998)
  t.equal(
    render({ subject: '{{a}}', text: '' }, { a: `x${'😀'.repeat(600)}` }).subject.length,
    997,
    'no half characters',
  )
  t.equal(render({ subject: '{{a}}', text: '' }, { a: 'a<b>b</b>\r\nc' }).subject, 'ab c')
})

t.test('values of a message override those of the content', async t => {
  const shared = { ...merging, data: { a: 1, b: 2 } }
  const values = valuesOf(shared, { data: { b: 3 } }, 'ann@one.test', NOW, links)
  t.equal(renderTemplate(parseTemplate('{{a}}{{b}}{{email}}', 'text'), values), '13ann@one.test')
})

t.test('unused links are not generated', async t => {
  const none = new Proxy(links, {
    get() {
      throw new Error('made')
    },
  })
  const plan = { subject: planSubject('x', merging), body: planBody({ html: '<p>{{name}}</p>' }, merging) }
  t.doesNotThrow(() => renderMail(plan, valuesOf(merging, {}, 'ann@one.test', NOW, none)))
  t.equal(plan.body.hasUnsubscribeLink, false)
  t.equal(planBody({ html: '<p>x</p>' }, { ...merging, hasFooter: true }).hasUnsubscribeLink, true)
})

t.test('plans are shared by source and brand only', async t => {
  const plans = new PlanCache()
  const content = (html: string, subject = 'x') => ({ subject, html })
  const one = content('<p>{{a}}</p>')
  t.equal(plans.planOf(one, merging), plans.planOf(one, merging), 'the same content')
  const [second, third] = [content('<p>{{a}}</p>', 'y'), content('<p>{{a}}</p>', 'z')]
  t.equal(plans.planOf(second, merging).body, plans.planOf(third, merging).body)
  t.not(
    plans.planOf(content('<p>{{a}}</p>'), { ...merging, hasFooter: true }).body,
    plans.planOf(third, merging).body,
  )
  const other = { ...merging, brand: { ...merging.brand, companyName: 'Other' } }
  t.not(plans.planOf(content('<p>{{a}}</p>'), other).body, plans.planOf(third, merging).body)
  const text = { subject: 'x', text: '<p>{{a}}</p>' }
  t.equal(plans.planOf(text, merging).body.html, undefined)
})

/** Numbers in [0, below), the same for the same seed (a linear congruential generator). */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const HOSTILE = "<script>alert(1)</script>\" onload='x' </title></style>--> javascript:alert(1) &lt; \u2028"
const SCRAPS = [
  '<p>',
  '</p>',
  '<a href="{{v}}">',
  "<a href='https://x.example/{{v}}'>",
  '</a>',
  '<b title={{v}}>',
  '<!-- {{v}} -->',
  '{{v}}',
  '{{attributes.v}}',
  '{{first_name|none|uppercase}}',
  '{{#if v}}',
  '{{else}}',
  '{{/if}}',
  '{{#each list}}',
  '{{this}}',
  '{{/each}}',
  '<body>',
  '</body>',
  '{{unsubscribe_url}}',
  '{{company_address}}',
  'text ',
  '\n',
  '<img src="{{v}}" alt="{{v}}">',
  '<td width="600">',
]

t.test(
  "random mail with hostile values: nothing but the values' own letters reach the reader, in html and its text",
  async t => {
    const footed = { ...merging, hasFooter: true }
    const contact = { email: 'a@b.test', firstName: HOSTILE, lastName: null, attributes: { v: HOSTILE } }
    let rendered = 0
    for (let seed = 1; seed <= 3_000; seed++) {
      const pick = numbers(seed)
      const html = Array.from({ length: 1 + pick(14) }, () => SCRAPS[pick(SCRAPS.length)]!).join('')
      let mail: MailSource
      try {
        mail = render({ subject: '{{v}}', html }, { v: HOSTILE, list: [HOSTILE] }, contact, footed)
      } catch (error) {
        t.match(error, { name: 'MergeError' }, html)
        continue
      }
      rendered++
      const names: string[] = []
      const parser = new Parser({
        onopentag: (name, attributes) => names.push(name, ...Object.keys(attributes)),
      })
      parser.end(mail.html ?? '')
      const wrong = names.filter(name => name === 'script' || name === 'onload')
      if (wrong.length > 0 || /href=["']?javascript:/i.test(mail.html ?? ''))
        t.fail(`${html} became ${mail.html ?? ''}`)
      if (!mail.html?.includes('https://m.example/u/1')) t.fail(`${html} has no footer`)
      // eslint-disable-next-line no-control-regex -- no control character may be in a subject
      if (/[\x00-\x1f\x7f]/.test(mail.subject) || mail.subject.includes('<script')) t.fail(mail.subject)
    }
    t.ok(rendered > 500, `${rendered} were rendered`)
  },
)
