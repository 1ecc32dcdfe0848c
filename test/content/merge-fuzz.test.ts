/** The merge language under random templates and hostile values, checked by an independent evaluator and parser. */
import { Parser } from 'htmlparser2'
import t from 'tap'
import { MergeError } from '../../src/content/merge/merge-tree.js'
import { parseTemplate } from '../../src/content/merge/parse-template.js'
import { renderTemplate } from '../../src/content/merge/render-template.js'

/** Numbers in [0, below), the same for the same seed (a linear congruential generator). */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const DATA: Readonly<Record<string, unknown>> = {
  name: 'Ann',
  empty: '',
  n: 7,
  text7: '7.0',
  yes: true,
  no: false,
  list: ['a', 'b', 'c'],
  rows: [
    { v: 1, list: ['x'] },
    { v: 0, list: [] },
  ],
}

interface Made {
  readonly source: string
  /** What it has to become, worked out while it was made. */
  readonly result: string
}

/** Makes a template together with its result, without reading any template. `item` is what `this` stands for. */
function make(pick: (below: number) => number, depth: number, item: unknown, inLoop: boolean): Made {
  const parts = Array.from({ length: pick(4) }, () => makePart(pick, depth, item, inLoop))
  return { source: parts.map(p => p.source).join(''), result: parts.map(p => p.result).join('') }
}

function makePart(pick: (below: number) => number, depth: number, item: unknown, inLoop: boolean): Made {
  const kind = pick(depth === 0 ? 3 : 6)
  if (kind === 0) return { source: '{ text }} ', result: '{ text }} ' }
  if (kind === 1) {
    const name = ['name', 'n', 'yes', 'no', 'text7'][pick(5)]!
    return { source: `{{ ${name} }}`, result: String(DATA[name]) }
  }
  if (kind === 2) return { source: '{{empty|Fall back|uppercase}}', result: 'FALL BACK' }
  if (kind === 3) {
    const [condition, holds] = makeCondition(pick)
    const yes = make(pick, depth - 1, item, inLoop)
    const no = make(pick, depth - 1, item, inLoop)
    return {
      source: `{{#if ${condition}}}${yes.source}{{else}}${no.source}{{/if}}`,
      result: holds ? yes.result : no.result,
    }
  }
  if (kind === 4) {
    const [condition, holds] = makeCondition(pick)
    const body = make(pick, depth - 1, item, inLoop)
    return { source: `{{#unless ${condition}}}${body.source}{{/unless}}`, result: holds ? '' : body.result }
  }
  // The same body for every turn: what differs between turns is only what is added here.
  const body = make(pick, depth - 1, item, inLoop)
  const turns = (DATA['list'] as string[]).map(
    (value, at) => `${at}${value}${body.result}${at === 2 ? '.' : ','}`,
  )
  const source = `{{#each list}}{{@index}}{{this}}${body.source}{{#if @last}}.{{else}},{{/if}}{{/each}}`
  return { source, result: turns.join('') }
}

function makeCondition(pick: (below: number) => number): [string, boolean] {
  const all: [string, boolean][] = [
    ['name', true],
    ['empty', false],
    ['no', false],
    ['list', true],
    ['n == text7', true],
    ['n > 6.5', true],
    ['name == "Bob"', false],
    ['name < "Bob"', true],
    ['missing == ""', true],
    ['n != 7', false],
  ]
  return all[pick(all.length)]!
}

t.test('random templates render as expected', async t => {
  const pick = numbers(1)
  const made = Array.from({ length: 3_000 }, () => make(pick, 5, undefined, false))
  const wrong = made.filter(
    ({ source, result }) =>
      renderTemplate(parseTemplate(source, 'text'), { system: {}, data: DATA }) !== result,
  )
  t.same(wrong, [])
})

t.test('random sources render or fail with MergeError, quickly', async t => {
  const pick = numbers(2)
  const scraps = [
    '{{',
    '}}',
    '{{{',
    '}}}',
    '#if ',
    '/if',
    '#each ',
    '/each',
    'else',
    'this',
    '@index',
    '|',
    '==',
    '"',
    "'",
    '\\',
    '.',
    'list',
    'n',
    ' ',
    '\n',
    '<a href="',
    '<!--',
    '-->',
    '>',
    'é',
    '\ud800',
    '&gt;',
    '!',
  ]
  let refused = 0
  for (let count = 0; count < 20_000; count++) {
    const source = Array.from({ length: pick(25) }, () => scraps[pick(scraps.length)]).join('')
    try {
      for (const place of ['html', 'text', 'subject'] as const)
        renderTemplate(parseTemplate(source, place), { system: {}, data: DATA })
    } catch (error) {
      if (!(error instanceof MergeError)) t.fail(`${JSON.stringify(source)}: ${String(error)}`)
      refused++
    }
  }
  t.ok(refused > 1_000 && refused < 19_999, 'some were refused and some were not')
})

/** As browsers read a link on an https page; empty where they can make nothing of it. */
function protocolOf(href: string | undefined): string {
  const base = 'https://page.example'
  return href !== undefined && URL.canParse(href, base) ? new URL(href, base).protocol : ''
}

/** Tags with their attributes' names, and what links lead to; texts and values of attributes are left out. */
function skeleton(html: string): string[] {
  const seen: string[] = []
  const parser = new Parser({
    onopentag: (name, attributes) => {
      seen.push(`<${name} ${Object.keys(attributes).sort().join(' ')} ${protocolOf(attributes['href'])}>`)
    },
    onclosetag: name => seen.push(`</${name}>`),
    oncomment: () => seen.push('<!-- -->'),
  })
  parser.end(html)
  return seen
}

t.test('no hostile value becomes markup, an attribute or a script', async t => {
  const pick = numbers(3)
  const scraps = [
    '<',
    '>',
    '"',
    "'",
    '&',
    '=',
    ' ',
    '/',
    '\\',
    '`',
    '\n',
    '\t',
    '\0',
    'javascript:',
    'data:',
    '-->',
    '<script>',
    '</a>',
    'onload=',
    '&quot;',
    '&#34;',
    '%3C',
    ']]>',
    'x',
    'é',
    '\ud800',
    '{{',
    '}}',
    '://',
    '?',
    '#',
  ]
  const source = `<body class={{v}} title = "{{v}}"><p title='{{v}}' {{#if v}}lang="{{v}}"{{/if}}>{{v}}<a href="{{v}}">x</a>
    <a href='https://a.example/{{v}}?b={{v}}#{{v}}'>{{v}}</a><img src="https://a.example/{{v}}"><!-- {{v}} -->{{#each list}}<b id="{{this}}">{{this}}</b>{{/each}}</p></body>`
  const template = parseTemplate(source, 'html')
  const plain = (value: string) => renderTemplate(template, { system: {}, data: { v: value, list: [value] } })
  const expected = skeleton(plain('https:x'))
  t.ok(expected.length > 12, 'the parser sees the markup')
  for (let count = 0; count < 5_000; count++) {
    // An empty value without quotes lets the next attribute slip into its place: so HTML has it, whoever writes it.
    const value = `${Array.from({ length: 1 + pick(10) }, () => scraps[pick(scraps.length)]).join('')}.`
    const seen = skeleton(plain(value))
    // A link that browsers can make nothing of does no harm.
    const isSame = seen.every(
      (tag, at) => tag === expected[at] || tag === expected[at]?.replace('https:', ''),
    )
    if (!isSame || seen.length !== expected.length) t.same(seen, expected, JSON.stringify(value))
  }
})
