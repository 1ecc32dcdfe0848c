/** The merge language as its authors see it: values, contexts and error messages. */
import { parseFragment, type DefaultTreeAdapterTypes } from 'parse5'
import t from 'tap'
import { MergeError, type MergePlace } from '../../src/content/merge/merge-tree.js'
import type { MergeValues } from '../../src/content/merge/merge-values.js'
import { parseTemplate } from '../../src/content/merge/parse-template.js'
import { renderTemplate } from '../../src/content/merge/render-template.js'

const contact = {
  email: 'ann@example.com',
  firstName: 'Ann',
  lastName: null,
  attributes: { company: 'Birds & Co', 'shoe size': '38', plan: { name: 'pro' } },
}
const system = { unsubscribe_url: 'https://m.example/u/1?a=b&c=d', company_name: '', current_year: '2026' }

function render(source: string, data: Record<string, unknown> = {}, place: MergePlace = 'text'): string {
  return renderTemplate(parseTemplate(source, place), { system, data, contact })
}

function faultOf(source: string, place: MergePlace = 'text') {
  try {
    parseTemplate(source, place)
  } catch (error) {
    if (error instanceof MergeError) return error
    throw error
  }
  throw new Error('nothing was found wrong')
}

t.test('contact tags, attributes and system tags are replaced', async t => {
  t.equal(render('{{firstName}} {{first_name}} <{{email}}>'), 'Ann Ann <ann@example.com>')
  t.equal(render('{{company}}, {{attributes.company}}'), 'Birds & Co, Birds & Co')
  t.equal(render('{{attributes.shoe size}} {{attributes.plan.name}}'), '38 pro')
  t.equal(render('{{ current_year }}{{company_name}}'), '2026')
})

t.test('template_data overrides contact tags but not system tags', async t => {
  const data = { email: 'other@example.com', current_year: '1999', attributes: { company: 'Own' } }
  t.equal(render('{{email}} {{current_year}} {{attributes.company}}', data), 'other@example.com 2026 Own')
})

t.test(
  'every key of template_data is a tag, looked up by full name first, then by its dotted path',
  async t => {
    t.equal(render('{{order.id}}', { order: { id: 7 } }), '7')
    t.equal(render('{{order.id}}', { 'order.id': 'whole', order: { id: 7 } }), 'whole')
    t.equal(render('{{Größe in cm}}', { 'Größe in cm': 5 }), '5')
    t.equal(render('{{items.1.name}} {{items.length}}', { items: [{}, { name: 'b' }] }), 'b 2')
  },
)

t.test('an empty value uses the fallback, and the format applies to both', async t => {
  t.equal(render('{{lastName|friend}}'), 'friend')
  t.equal(render('{{lastName|friend|uppercase}} {{firstName|x|lowercase}}'), 'FRIEND ann')
  t.equal(render('[{{lastName||uppercase}}] [{{nothing}}] [{{blank|b}}]', { blank: '  ' }), '[] [] [b]')
  t.equal(
    render('{{a||capitalize}}; {{b||capitalize}}; {{c||capitalize}}', {
      a: 'JOHN SMITH',
      b: 'ann-marie mcDonald',
      c: 'émile',
    }),
    'John Smith; Ann-Marie McDonald; Émile',
  )
})

t.test('objects render as nothing; numbers and booleans as text', async t => {
  t.equal(render('{{a|none}} {{b}} {{c}} {{d}}', { a: { x: 1 }, b: 0, c: false, d: 1.5 }), 'none 0 false 1.5')
})

t.test('conditions: missing, empty, 0 and false are not true', async t => {
  const condition = (value: unknown) => render('{{#if x}}yes{{else}}no{{/if}}', { x: value })
  t.same([undefined, null, '', 0, false, []].map(condition), ['no', 'no', 'no', 'no', 'no', 'no'])
  t.same([1, 'a', 'false', '0', true, [0], {}].map(condition), Array(7).fill('yes'))
  t.equal(render('{{#unless x}}a{{else}}b{{/unless}}{{#unless firstName}}a{{else}}b{{/unless}}'), 'ab')
})

t.test('comparisons are numeric if both sides are numbers, else textual', async t => {
  const cases: [string, unknown, boolean][] = [
    ['x == 5', '5.0', true],
    ['x != 5', 6, true],
    ['x > 10', '9', false],
    ['x >= 10', 10, true],
    ['x < 10', '9', true],
    ['x <= "b"', 'a', true],
    ['x == "Ann"', 'Ann', true],
    ["x == 'Ann'", 'ann', false],
    ['x == true', true, true],
    ['x == true', 'true', true],
    ['x == ""', undefined, true],
    ['x == null', null, true],
    ['x == y', 'same', true],
    ['x > "2026-01-01"', '2026-02-01', true],
    ['x == "a=b>c"', 'a=b>c', true],
  ]
  for (const [expression, x, holds] of cases)
    t.equal(render(`{{#if ${expression}}}1{{else}}0{{/if}}`, { x, y: 'same' }), holds ? '1' : '0', expression)
})

t.test('else if evaluates the next condition', async t => {
  const source = '{{#if n > 10}}many{{else if n > 1}}some{{else if n}}one{{else}}none{{/if}}!'
  t.same(
    [11, 5, 1, 0].map(n => render(source, { n })),
    ['many!', 'some!', 'one!', 'none!'],
  )
})

t.test('loops provide item, index, first and last, and nest', async t => {
  const rows = [
    { name: 'a', tags: ['x', 'y'] },
    { name: 'b', tags: [] },
  ]
  t.equal(
    render(
      '{{#each rows}}{{@index}}{{this.name}}{{#if @first}} first{{/if}}{{#if @last}} last{{/if}};{{/each}}',
      { rows },
    ),
    '0a first;1b last;',
  )
  t.equal(
    render('{{#each rows}}{{this.name}}:{{#each this.tags}}{{this}},{{else}}none{{/each}} {{/each}}', {
      rows,
    }),
    'a:x,y, b:none ',
  )
  t.equal(render('{{#each rows}}{{firstName}}{{/each}}', { rows }), 'AnnAnn')
  t.equal(render('{{#each email}}x{{else}}no list{{/each}}'), 'no list')
})

t.test('an HTML value is escaped for its context', async t => {
  const html = (source: string, x: unknown) => render(source, { x }, 'html')
  t.equal(
    html('<p>{{x}}</p>', '<b>"Tom" & \'Jerry\'</b>'),
    '<p>&lt;b&gt;&quot;Tom&quot; &amp; &#39;Jerry&#39;&lt;/b&gt;</p>',
  )
  t.equal(html('<p title="{{x}}">', '" onload="x'), '<p title="&quot; onload=&quot;x">')
  t.equal(html('<p title={{x}}>', 'a onload=b'), '<p title=a&#32;onload&#61;b>')
  t.equal(
    html('<a href="https://x.example/?q={{x}}&r=1">', 'Tom & Jerry%20'),
    '<a href="https://x.example/?q=Tom%20%26%20Jerry%20&r=1">',
  )
  t.equal(
    html('<a href="https://x.example/{{x}}">', 'a b/ü?c=d&e'),
    '<a href="https://x.example/a%20b/%C3%BC?c=d&amp;e">',
  )
  t.equal(html('<a href="{{x}}">', 'https://x.example/?a=b&c=d'), '<a href="https://x.example/?a=b&amp;c=d">')
  t.equal(
    html("<a class=b href = '{{x}}'>", "https://x.example/'><b>"),
    "<a class=b href = 'https://x.example/&#39;%3E%3Cb%3E'>",
  )
  t.equal(html('<a href="mailto:{{x}}">', 'ann@example.com'), '<a href="mailto:ann@example.com">')
})

t.test('a merged script link is replaced', async t => {
  for (const x of [
    'javascript:alert(1)',
    ' JavaScript:alert(1)',
    'java\tscript:alert(1)',
    '\u0001javascript:x',
    'data:text/html,x',
    'vbscript:x',
  ])
    t.equal(render('<a href="{{x}}">', { x }, 'html'), '<a href="#">', JSON.stringify(x))
  t.equal(render('<img src="{{x}}">', { x: 'cid:logo' }, 'html'), '<img src="cid:logo">')
})

t.test('three braces insert template_data unescaped, and nothing else', async t => {
  t.equal(render('{{{x}}} {{{firstName}}}{{{current_year}}}', { x: '<b>&</b>' }, 'html'), '<b>&</b> ')
  t.equal(render('{{#each x}}{{{this}}}{{/each}}', { x: ['<i>', '</i>'] }, 'html'), '<i></i>')
})

t.test('a subject stays one line without tags', async t => {
  t.equal(
    render('Hi {{x}}', { x: 'a\r\nBcc: b@example.com <b>c</b>' }, 'subject'),
    'Hi a Bcc: b@example.com c',
  )
  t.equal(render('{{{x}}}', { x: 'a\nb' }, 'subject'), 'a b')
})

t.test("no name reaches the program's own properties", async t => {
  const names = [
    '__proto__',
    'constructor',
    'toString',
    'x.__proto__',
    'x.constructor.name',
    'attributes.__proto__.x',
  ]
  for (const name of names) t.equal(render(`[{{${name}}}]`, { x: {} }), '[]', name)
  t.equal(render('{{__proto__}}', JSON.parse('{"__proto__": "own"}') as Record<string, unknown>), 'own')
})

t.test('comments render as nothing; a backslash escapes braces', async t => {
  t.equal(render('a{{! not shown }}b \\{{name}}'), 'ab {{name}}')
})

t.test('comparisons written as character references are understood', async t => {
  t.equal(render('{{#if n &gt; 3 }}a{{/if}}{{#if&nbsp;n == &quot;4&quot;}}b{{/if}}', { n: 4 }, 'html'), 'ab')
})

t.test('errors have line and column', async t => {
  const faults: [string, string, number, number][] = [
    ['Hi\n  {{name', 'this tag is not closed', 2, 3],
    ['{{a {{b}}', 'this tag is not closed before the next one begins', 1, 1],
    ['{{#if a}}', 'this #if has no {{/if}}', 1, 1],
    ['x{{/if}}', '{{/if}} does not close any block', 1, 2],
    ['{{#if a}}{{/each}}', 'expected {{/if}}, found {{/each}}', 1, 10],
    ['{{#if a}}{{else if b}}', 'this #if has no {{/if}}', 1, 1],
    ['{{#with a}}{{/with}}', 'unknown block "#with"; blocks are #if, #unless and #each', 1, 1],
    ['{{else}}', '{{else}} is outside a block', 1, 1],
    ['{{#if a}}{{else}}{{else}}{{/if}}', 'this #if already has an {{else}}', 1, 18],
    ['{{#if}}{{/if}}', '#if needs a condition', 1, 1],
    ['{{#if a = 1}}{{/if}}', 'unknown comparison "="; comparisons are == != >= <= > <', 1, 1],
    ['{{#if a == }}{{/if}}', 'a comparison needs a value on both sides', 1, 1],
    ['{{a|b|shout}}', 'unknown format "shout"; formats are text, uppercase, lowercase, capitalize', 1, 1],
    ['{{a|b|text|d}}', 'a tag has at most a name, a fallback and a format', 1, 1],
    ['{{}}', 'a name is missing', 1, 1],
    ['{{> partial}}', '"> partial" is not a valid name', 1, 1],
    ['{{a..b}}', '"a..b" is not a valid name: it has an empty part between dots', 1, 1],
    ['{{this}}', '"this" is only valid inside #each', 1, 1],
    [
      '{{#each a}}{{@key}}{{/each}}',
      'unknown loop variable "@key"; loops have @index, @first and @last',
      1,
      12,
    ],
  ]
  for (const [source, reason, line, column] of faults) {
    const fault = faultOf(source)
    t.match(fault, { line, column }, source)
    t.equal(fault.message, `line ${line}, column ${column}: ${reason}`)
  }
})

t.test('depth, tags, steps and length are limited', async t => {
  const deep = (levels: number) => '{{#if a}}'.repeat(levels) + '{{/if}}'.repeat(levels)
  t.doesNotThrow(() => parseTemplate(deep(20), 'text'))
  t.match(faultOf(deep(21)).message, 'more than 20 deep')
  t.match(faultOf('{{a}}'.repeat(10_001)).message, 'more than 10000 tags')
  const values: MergeValues = { system: {}, data: { list: Array(1_000).fill('x') } }
  const squared = parseTemplate('{{#each list}}{{#each list}}{{/each}}{{/each}}', 'text')
  t.throws(() => renderTemplate(squared, values), { name: 'MergeError', message: /more than 20000 steps/ })
  const long = parseTemplate('{{#each list}}1234567890{{/each}}', 'text')
  t.throws(() => renderTemplate(long, values, { steps: 5_000, units: 9_999 }), { name: 'MergeError' })
  t.equal(renderTemplate(long, values, { steps: 5_000, units: 10_000 }).length, 10_000)
})

t.test('a template lists the names it uses', async t => {
  const { names } = parseTemplate('{{a}}{{#if b == c}}{{a}}{{/if}}{{#each d}}{{this.e}}{{/each}}', 'text')
  t.same([...names].sort(), ['a', 'b', 'c', 'd'])
})

/** The scheme of the first attribute of the first tag, as a browser finds it. */
function schemeIn(html: string): string | undefined {
  const fragment = parseFragment(html).childNodes[0] as DefaultTreeAdapterTypes.Element
  const { value = '' } = fragment.attrs[0] ?? {}
  // eslint-disable-next-line no-control-regex -- browsers drop control characters of a URL
  return /^([a-z][a-z0-9+.-]*):/i.exec(value.replace(/[\x00-\x20]/g, ''))?.[1]?.toLowerCase()
}

t.test('adjacent values cannot form a script URL in an attribute', async t => {
  const attributes = ['href', 'src', 'action', 'formaction', 'data', 'xlink:href', 'background', 'poster']
  const urls: [string, Record<string, unknown>][] = [
    ['{{a}}{{b}}', { a: 'java', b: 'script:alert(1)' }],
    ['{{a}}{{b}}{{c}}', { a: 'JAVA', b: '', c: 'SCRIPT:alert(1)' }],
    ['{{a}}:{{b}}', { a: 'javascript', b: 'alert(1)' }],
    ['java{{a}}', { a: 'script:alert(1)' }],
    [' {{a}}script:alert(1)', { a: 'java' }],
    ['&#106;ava{{a}}', { a: 'script:alert(1)' }],
    ['{{a}}&colon;alert(1)', { a: 'javascript' }],
    ['{{a}}&#x3a;alert(1)', { a: 'javascript' }],
    ['java&Tab;{{a}}', { a: 'script:alert(1)' }],
    ['java&#10;{{a}}', { a: 'script:alert(1)' }],
    ['{{a}}{{b}}', { a: '\u0001java\n', b: '\tscript\r:alert(1)' }],
    ['{{#if a}}{{a}}{{/if}}{{b}}', { a: 'vb', b: 'script:x' }],
    ['{{#each list}}{{this}}{{/each}}', { list: ['java', 'script', ':alert(1)'] }],
    ['{{#if no}}x{{else}}java{{/if}}{{a}}', { a: 'script:alert(1)' }],
    ['{{{a}}}', { a: 'javascript:alert(1)' }],
    ['{{a}}{{{b}}}', { a: 'java', b: 'script&#58;alert(1)' }],
    ['javascript:alert({{a}})', { a: '1' }],
    ['{{a}}{{b}}', { a: 'data', b: ':text/html,x' }],
  ]
  for (const [url, data] of urls) {
    for (const attribute of attributes)
      t.equal(
        schemeIn(render(`<p ${attribute}="${url}">x</p>`, data, 'html')),
        undefined,
        `${attribute}: ${url}`,
      )
    if (!/[ >]/.test(url.replace(/\{\{.*?\}\}/g, '')))
      t.equal(schemeIn(render(`<p href=${url}>x</p>`, data, 'html')), undefined, `unquoted: ${url}`)
  }
  for (const html of [
    '<img srcset="https://x.example/a.png 1x, {{a}}{{b}} 2x">',
    '<img srcset="{{c}}">',
    '<meta http-equiv="refresh" content="0; url={{a}}{{b}}">',
    '<meta content="0;{{c}}">',
  ])
    t.notMatch(render(html, { a: 'java', b: 'script:x', c: 'javascript:x' }, 'html'), 'script:', html)
})

t.test('nor can they if the attribute ends inside a branch', async t => {
  const cases: [string, Record<string, unknown>][] = [
    ['<a href="{{a}}{{#if b}}{{b}}">x{{else}}">y{{/if}}</a>', { a: 'java', b: 'script:alert(1)' }],
    ['<a href="{{a}}{{#if b}}:alert(1)">x{{else}}">y{{/if}}</a>', { a: 'javascript', b: 1 }],
    ['{{#if b}}<a href="java{{else}}<a href="{{/if}}{{a}}">x</a>', { a: 'script:alert(1)', b: 1 }],
  ]
  cases.push(['<a href={{#if b}}java{{else}}x{{/if}}{{a}}>x</a>', { a: 'script:alert(1)', b: 1 }])
  for (const [html, data] of cases) t.equal(schemeIn(render(html, data, 'html')), undefined, html)
  t.equal(
    render(
      '<a href="{{a}}{{#if b}}?b=1">At {{c}}{{/if}}</a>',
      { a: 'https://x.example/', b: 1, c: '10:30' },
      'html',
    ),
    '<a href="https://x.example/?b=1">At 10:30</a>',
    'what is behind it stays',
  )
})

t.test('a safe URL made of several values is unchanged', async t => {
  const data = {
    scheme: 'https',
    host: 'x.example',
    base: 'https://x.example',
    path: '/a:b',
    q: 'a:b',
    id: 7,
  }
  const urls: [string, string][] = [
    ['{{scheme}}://{{host}}/', 'https://x.example/'],
    ['{{base}}{{path}}', 'https://x.example/a:b'],
    ['{{base}}/{{q}}?q={{q}}', 'https://x.example/a:b?q=a%3Ab'],
    ['{{#if base}}{{base}}{{else}}https://y.example{{/if}}/{{id}}', 'https://x.example/7'],
    ['mailto:{{q}}', 'mailto:a:b'],
    ['myapp://{{id}}', 'myapp://7'],
    ['{{none}}{{path}}', '/a:b'],
    ['{{unsubscribe_url}}', 'https://m.example/u/1?a=b&amp;c=d'],
    ['data:image/png;base64,{{id}}', 'data:image/png;base64,7'],
    ['{{{base}}}?a=1&b=2', 'https://x.example?a=1&b=2'],
  ]
  for (const [url, shown] of urls)
    t.equal(render(`<a href="${url}">x</a>`, data, 'html'), `<a href="${shown}">x</a>`)
})
