/** The visual editor's structure: how each block type renders, and how invalid ones are rejected. */
import { Parser } from 'htmlparser2'
import t from 'tap'
import type { TSchema } from 'typebox'
import { BLOCK_CONTENTS, BLOCK_TYPES } from '../../src/content/blocks/structure.js'
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

t.test('the fourteen block types of the contract exist', async t => {
  const contract =
    'header, text, button, image, divider, spacer, columns, social, dynamic, conditional, hero, profile, html, dropshadow'
  const built = [...BLOCK_TYPES].sort()
  t.same(built, contract.split(', ').sort())
  t.same(EACH.map(({ type }) => type).sort(), built)
})

t.test('every block type renders balanced markup, with and without content', async t => {
  for (const one of EACH) {
    t.same(unbalanced(render(one)), [], one.type)
    t.same(unbalanced(render(block(one.type))), [], `${one.type} without content`)
  }
})

t.test('a mail with every block type shows all their content once merged', async t => {
  const html = sent({ n: 5, items: [{ name: 'a' }, { name: 'b' }] }, ...EACH)
  t.equal(
    textOf(html),
    'Head Some text Go left right Mastodon a; b; many Hero Words More Ann Founder Hello raw card',
  )
  t.match(html, 'href="https://x.example/?a=1&amp;b=2"')
  t.match(html, 'alt="A &quot;picture&quot;"')
  t.match(textOf(sent({ n: 1 }, ...EACH)), 'Mastodon few Hero')
})

t.test('block text is escaped except for its merge tags', async t => {
  const html = sent({ name: '<i>' }, block('header', { text: '<b>{{name|you}} & "all"</b>' }))
  t.match(html, '&lt;b&gt;&lt;i&gt; &amp; &quot;all&quot;&lt;/b&gt;')
  t.match(sent({ link: 'javascript:x' }, block('button', { text: 'x', url: '{{link}}' })), 'href="#"')
})

t.test('columns have the requested width, in pixels for Outlook', async t => {
  const html = render(
    block('columns', { columns: [{ width: 25 }, { width: 75 }] }),
    block('columns', { columns: [{}, {}, {}] }),
  )
  t.same(
    [...html.matchAll(/<td width="(\d+)" valign/g)].map(([, width]) => width),
    ['150', '450', '200', '200', '200'],
  )
})

t.test('settings determine width, fonts and colours', async t => {
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

t.test('an invalid structure is rejected with the path of the fault', async t => {
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

t.test('an unknown block field is rejected with its path at any depth', async t => {
  const at = 'json_structure.blocks.0.content'
  const odd = block('text', { html: 'x', foo: 1 })
  const wrong: [object, string][] = [
    ...BLOCK_TYPES.map((type): [object, string] => [block(type, { foo: 1 }), `${at}.foo`]),
    [block('text', JSON.parse('{"__proto__": "x"}')), `${at}.__proto__`],
    [block('text', { text: 'HTML or not?' }), `${at}.text`],
    [block('button', { color: '#000000' }), `${at}.color`],
    [block('columns', { columns: [{}, { blocks: [odd] }] }), `${at}.columns.1.blocks.0.content.foo`],
    [block('columns', { columns: [{ span: 6 }] }), `${at}.columns.0.span`],
    [block('conditional', { condition: 'a', blocks: [odd] }), `${at}.blocks.0.content.foo`],
    [block('conditional', { condition: 'a', else: [odd] }), `${at}.else.0.content.foo`],
    [block('dynamic', { source: 'a', blocks: [odd] }), `${at}.blocks.0.content.foo`],
    [block('dropshadow', { children: [odd] }), `${at}.children.0.content.foo`],
    [block('social', { links: [{ platform: 'x', url: '#', foo: 1 }] }), `${at}.links.0.foo`],
    [{ ...block('conditional'), condition: 'vip' }, 'json_structure.blocks.0.condition'],
  ]
  for (const [one, path] of wrong)
    t.throws(() => readStructure({ blocks: [one] }), { code: 'validation_error', path, message: path }, path)
  t.throws(() => readStructure({ blocks: [], setting: {} }), {
    code: 'validation_error',
    path: 'json_structure.setting',
  })
  t.throws(() => readStructure({ blocks: [], settings: { font: 'x' } }), {
    code: 'validation_error',
    path: 'json_structure.settings.font',
  })
})

t.test('an error names the block, the known fields and the field as submitted', async t => {
  const message = (content: object, type = 'header') => {
    try {
      readStructure({ blocks: [{ id: 'intro', type, content }] })
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }
  t.equal(
    message({ foo: 1 }),
    'json_structure.blocks.0.content.foo is not a known field; ' +
      'known fields: text, level, alignment, color (header block "intro")',
  )
  t.equal(
    message({ title: 5 }),
    'json_structure.blocks.0.content.title must be a string (header block "intro")',
  )
  t.equal(
    message({ text: 'a', heading: 'b' }),
    'json_structure.blocks.0.content.heading repeats text (header block "intro")',
  )
  t.match(message({ links: [{ network: 'x' }] }, 'social'), /content\.links\.0\.url is required/)
})

t.test('unambiguous spellings of a field are accepted', async t => {
  const same: [string, object, object][] = [
    [
      'header',
      { title: 'T', align: 'right', text_color: '#010203' },
      { text: 'T', alignment: 'right', color: '#010203' },
    ],
    [
      'button',
      { label: 'Go', href: 'https://x.example/', background_color: '#010203' },
      { text: 'Go', url: 'https://x.example/', backgroundColor: '#010203' },
    ],
    [
      'image',
      { image: 'https://x.example/a.png', alt_text: 'A' },
      { src: 'https://x.example/a.png', alt: 'A' },
    ],
    [
      'hero',
      { title: 'T', subtitle: 'S', image_url: 'https://x.example/a.png' },
      { title: 'T', text: 'S', src: 'https://x.example/a.png' },
    ],
    [
      'profile',
      { name: 'Ann', title: 'Founder', avatar: 'https://x.example/a.png' },
      { name: 'Ann', role: 'Founder', src: 'https://x.example/a.png' },
    ],
    [
      'social',
      { links: [{ network: 'Web', href: 'https://x.example/' }] },
      { links: [{ platform: 'Web', url: 'https://x.example/' }] },
    ],
    [
      'columns',
      { columns: [{ children: [block('text', { content: 'x' })] }] },
      { columns: [{ blocks: [block('text', { html: 'x' })] }] },
    ],
    [
      'conditional',
      { field: 'plan', value: 'pro', blocks: [block('spacer')] },
      { condition: 'plan == "pro"', blocks: [block('spacer')] },
    ],
  ]
  for (const [type, written, documented] of same)
    t.equal(render(block(type, written)), render(block(type, documented)), type)
})

t.test('a conditional block is shown only to matching recipients, in either notation', async t => {
  const [yes, no] = [[block('text', { html: 'YES' })], [block('text', { html: 'NO' })]]
  const shown = (rule: object, data: Record<string, unknown>) =>
    textOf(sent(data, block('conditional', { ...rule, blocks: yes, elseBlocks: no })))
  const cases: [object, Record<string, unknown>, Record<string, unknown>][] = [
    [{ condition: 'plan == "pro"' }, { plan: 'pro' }, { plan: 'free' }],
    [{ field: 'plan', operator: 'equals', value: 'pro' }, { plan: 'pro' }, {}],
    [{ field: 'plan', operator: 'not_equals', value: 'free' }, { plan: 'pro' }, { plan: 'free' }],
    [{ field: 'total', operator: 'gte', value: 100 }, { total: 100 }, { total: 99.5 }],
    [{ field: 'total', operator: 'lt', value: -1.5 }, { total: -2 }, { total: 0 }],
    [{ field: 'is_vip', value: true }, { is_vip: true }, { is_vip: false }],
    [{ field: 'plan', operator: 'is_set' }, { plan: 'x' }, { plan: '' }],
    [{ field: 'plan', operator: 'is_not_set' }, {}, { plan: 'x' }],
    [{ field: 'shop', value: 'Marks & "S" &lt;' }, { shop: 'Marks & "S" &lt;' }, { shop: 'Marks' }],
    [{ field: 'name', value: "O'Hara" }, { name: "O'Hara" }, { name: 'Ohara' }],
  ]
  for (const [rule, holds, fails] of cases) {
    t.equal(shown(rule, holds), 'YES', JSON.stringify(rule))
    t.equal(shown(rule, fails), 'NO', JSON.stringify(rule))
  }
})

t.test('a missing, duplicate or malformed condition is rejected with its path', async t => {
  const blocks = [block('text', { html: 'For some only' })]
  const wrong: [object, string][] = [
    [{ blocks }, 'condition'],
    [{ condition: ' ', blocks }, 'condition'],
    [{ elseBlocks: blocks }, 'condition'],
    [{ condition: 'a', field: 'b', blocks }, 'field'],
    [{ operator: 'equals', value: 'x', blocks }, 'field'],
    [{ field: 'a', blocks }, 'value'],
    [{ field: 'a', operator: 'is_set', value: true, blocks }, 'value'],
    [{ field: 'a', operator: 'contains', value: 'x', blocks }, 'operator'],
    [{ field: 'a', value: `both " and '`, blocks }, 'value'],
    [{ field: 'a', value: '}}{{/if}}', blocks }, 'value'],
    [{ field: 'a b == c', value: 'x', blocks }, 'field'],
    [{ condition: 'a === b', blocks }, 'condition'],
    [{ condition: 'a}}{{/if}}{{#if b', blocks }, 'condition'],
    [{ condition: '{{vip}}', blocks }, 'condition'],
    [{ condition: 'this.vip', blocks }, 'condition'],
  ]
  for (const [content, field] of wrong)
    t.throws(
      () => readStructure({ blocks: [block('conditional', content)] }),
      { code: 'validation_error', path: `json_structure.blocks.0.content.${field}` },
      JSON.stringify(content),
    )
  t.throws(() => readStructure({ blocks: [block('dynamic', { blocks })] }), {
    code: 'validation_error',
    path: 'json_structure.blocks.0.content.source',
  })
  const inLoop = block('conditional', { condition: 'this.vip', blocks })
  t.doesNotThrow(() => readStructure({ blocks: [block('dynamic', { source: 'items', blocks: [inLoop] })] }))
})

t.test('a script URL is rejected however it is disguised', async t => {
  const refused = [
    'javascript:alert(1)',
    ' JavaScript:x',
    'java\nscript:x',
    '\u0001vbscript:x',
    'data:text/html,x',
  ]
  const places: [string, string, (url: string) => object][] = [
    ['button', 'url', url => ({ text: 'x', url })],
    ['image', 'src', src => ({ src })],
    ['image', 'url', url => ({ src: 'https://x.example/a.png', url })],
    ['profile', 'url', url => ({ url })],
    ['hero', 'buttonUrl', buttonUrl => ({ buttonUrl })],
    ['social', 'links.0.url', url => ({ links: [{ platform: 'x', url }] })],
    ['social', 'links.0.icon', icon => ({ links: [{ platform: 'x', url: '#', icon }] })],
  ]
  for (const [type, field, content] of places)
    for (const url of refused)
      t.throws(
        () => readStructure({ blocks: [block(type, content(url))] }),
        { code: 'validation_error', path: `json_structure.blocks.0.content.${field}` },
        `${type} ${JSON.stringify(url)}`,
      )
  for (const url of [
    'https://x.example/',
    '/x',
    '#',
    '{{link}}',
    'mailto:a@b.example',
    'myapp://open',
    'x?a=javascript:',
  ])
    t.doesNotThrow(() => readStructure({ blocks: [block('button', { text: 'x', url })] }), url)
  t.doesNotThrow(() => readStructure({ blocks: [block('image', { src: 'data:image/png;base64,AAAA' })] }))
})

t.test('published defaults are the rendered defaults', async t => {
  for (const type of BLOCK_TYPES) {
    const { properties, examples } = BLOCK_CONTENTS[type] as TSchema as {
      properties: Record<string, { default?: unknown }>
      examples: [object]
    }
    const [example] = examples
    const isRule = 'condition' in properties
    const standard = Object.entries(properties).flatMap(([name, field]) =>
      field.default === undefined || isRule ? [] : [[name, field.default]],
    )
    t.equal(
      render(block(type, { ...Object.fromEntries(standard), ...example })),
      render(block(type, example)),
      type,
    )
  }
})

t.test('the nesting of blocks is limited', async t => {
  const nested = (levels: number): object =>
    levels === 0 ? block('text') : block('dropshadow', { blocks: [nested(levels - 1)] })
  t.doesNotThrow(() => readStructure({ blocks: [nested(4)] }))
  t.throws(() => readStructure({ blocks: [nested(5)] }), { code: 'validation_error' })
  const wide = block('dropshadow', { blocks: Array(100).fill(block('text')) })
  t.throws(() => readStructure({ blocks: Array(20).fill(wide) }), {
    code: 'validation_error',
    message: /limit of 2000/,
  })
})
