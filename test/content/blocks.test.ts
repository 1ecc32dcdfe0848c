/** The visual editor's structure: what each type of block becomes, and how a wrong one is refused. */
import { Parser } from 'htmlparser2'
import t from 'tap'
import { HOLDING_BLOCKS, PLAIN_BLOCKS } from '../../src/content/blocks/structure.js'
import { readStructure } from '../../src/content/blocks/read-structure.js'
import { renderStructure } from '../../src/content/blocks/render-structure.js'
import { parseTemplate } from '../../src/content/merge/parse-template.js'
import { renderTemplate } from '../../src/content/merge/render-template.js'

const block = (type: string, content: object = {}) => ({ id: type, type, content })
const render = (...blocks: object[]) => renderStructure(readStructure({ blocks }))
const sent = (data: Record<string, unknown>, ...blocks: object[]) =>
  renderTemplate(parseTemplate(render(...blocks), 'html'), { system: {}, data })

/** Names of the tags that are opened and never closed, or closed and never opened; Outlook's own markup stands in comments. */
function unbalanced(html: string): string[] {
  const open: string[] = []
  const wrong: string[] = []
  const empty = new Set(['img', 'meta', 'br'])
  for (const [, slash, name = ''] of html.replace(/<!--.*?-->/gs, '').matchAll(/<(\/?)([a-z][a-z0-9]*)/g))
    if (slash === '' && !empty.has(name)) open.push(name)
    else if (slash === '/' && open.pop() !== name) wrong.push(name)
  return [...wrong, ...open]
}

function textOf(html: string): string {
  const texts: string[] = []
  const parser = new Parser({ ontext: text => texts.push(text) })
  parser.end(html)
  return texts.join(' ').replace(/\s+/g, ' ').trim()
}

const EACH = [
  block('header', { text: 'Head', level: 2, alignment: 'center', color: '#123456' }),
  block('text', { html: '<p>Some <b>text</b></p>' }),
  block('button', { text: 'Go', url: 'https://x.example/?a=1&b=2', fullWidth: true }),
  block('image', { src: 'https://x.example/a.png', alt: 'A "picture"', width: 'full' }),
  block('divider', { style: 'dashed', thickness: 3, width: 50 }),
  block('spacer', { height: 33 }),
  block('columns', {
    columns: [
      { blocks: [block('text', { html: 'left' })], width: 30 },
      { blocks: [block('text', { html: 'right' })] },
    ],
  }),
  block('social', { links: [{ platform: 'Mastodon', url: 'https://m.example/@a' }] }),
  block('dynamic', { source: 'items', blocks: [block('text', { html: '{{this.name}};' })] }),
  block('conditional', {
    condition: 'n > 3',
    blocks: [block('text', { html: 'many' })],
    elseBlocks: [block('text', { html: 'few' })],
  }),
  block('hero', { title: 'Hero', text: 'Words', buttonText: 'More', buttonUrl: 'https://x.example/' }),
  block('profile', { src: 'https://x.example/ann.png', name: 'Ann', role: 'Founder', text: 'Hello' }),
  block('html', { html: '<u>raw</u>' }),
  block('dropshadow', { blocks: [block('text', { html: 'card' })] }),
]

t.test('there are the fourteen types of the contract', async t => {
  const contract =
    'header, text, button, image, divider, spacer, columns, social, dynamic, conditional, hero, profile, html, dropshadow'
  const built = [...Object.keys(PLAIN_BLOCKS), ...Object.keys(HOLDING_BLOCKS)]
  t.same(built.sort(), contract.split(', ').sort())
  t.same(EACH.map(({ type }) => type).sort(), built)
})

t.test('every type of block becomes balanced markup, with content and without', async t => {
  for (const one of EACH) {
    t.same(unbalanced(render(one)), [], one.type)
    t.same(unbalanced(render(block(one.type))), [], `${one.type} without content`)
  }
})

t.test('a mail of all blocks says what its blocks say, once merged', async t => {
  const html = sent({ n: 5, items: [{ name: 'a' }, { name: 'b' }] }, ...EACH)
  t.equal(
    textOf(html),
    'Head Some text Go left right Mastodon a; b; many Hero Words More Ann Founder Hello raw card',
  )
  t.match(html, 'href="https://x.example/?a=1&amp;b=2"')
  t.match(html, 'alt="A &quot;picture&quot;"')
  t.match(textOf(sent({ n: 1 }, ...EACH)), 'Mastodon few Hero')
})

t.test('text of a block is text; its merge tags are merge tags', async t => {
  const html = sent({ name: '<i>' }, block('header', { text: '<b>{{name|you}} & "all"</b>' }))
  t.match(html, '&lt;b&gt;&lt;i&gt; &amp; &quot;all&quot;&lt;/b&gt;')
  t.match(sent({ link: 'javascript:x' }, block('button', { text: 'x', url: '{{link}}' })), 'href="#"')
})

t.test('columns are as wide as asked, and Outlook is told in pixels', async t => {
  const html = render(
    block('columns', { columns: [{ width: 25 }, { width: 75 }] }),
    block('columns', { columns: [{}, {}, {}] }),
  )
  t.same(
    [...html.matchAll(/<td width="(\d+)" valign/g)].map(([, width]) => width),
    ['150', '450', '200', '200', '200'],
  )
})

t.test('settings give width, fonts and colours', async t => {
  const settings = {
    fontFamily: "'Open Sans', sans-serif",
    contentWidth: 700,
    backgroundColor: '#000',
    defaultTextColor: '#abcdef',
  }
  const html = renderStructure(readStructure({ blocks: [block('text', { html: 'x' })], settings }))
  for (const part of ["'Open Sans', sans-serif", 'max-width:700px', 'bgcolor="#000"', 'color:#abcdef'])
    t.ok(html.includes(part), part)
})

t.test('what is wrong is refused with its place', async t => {
  const wrong: [object, string][] = [
    [{}, 'json_structure.blocks'],
    [{ blocks: [{ type: 'text', content: {} }] }, 'json_structure.blocks.0.id'],
    [{ blocks: [block('video')] }, 'json_structure.blocks.0.type'],
    [{ blocks: [block('toString')] }, 'json_structure.blocks.0.type'],
    [{ blocks: [block('text'), block('header', { level: 4 })] }, 'json_structure.blocks.1.content.level'],
    [{ blocks: [block('divider', { color: 'red;x:y' })] }, 'json_structure.blocks.0.content.color'],
    [
      { blocks: [block('columns', { columns: [{ blocks: [block('video')] }] })] },
      'json_structure.blocks.0.content.columns.0.blocks.0.type',
    ],
    [{ blocks: [], settings: { fontFamily: 'x;}</style>' } }, 'json_structure.settings.fontFamily'],
  ]
  for (const [structure, path] of wrong)
    t.throws(() => readStructure(structure), { code: 'validation_error', path }, path)
})

t.test('blocks in blocks are bounded', async t => {
  const nested = (levels: number): object =>
    levels === 0 ? block('text') : block('dropshadow', { blocks: [nested(levels - 1)] })
  t.doesNotThrow(() => readStructure({ blocks: [nested(4)] }))
  t.throws(() => readStructure({ blocks: [nested(5)] }), { code: 'validation_error' })
  const wide = block('dropshadow', { blocks: Array(100).fill(block('text')) })
  t.throws(() => readStructure({ blocks: Array(20).fill(wide) }), {
    code: 'validation_error',
    message: /more than 2000/,
  })
})
