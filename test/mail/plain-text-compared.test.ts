/** The plain text of foreign mail, of the block editor's and of random markup, beside what html-to-text makes of it. */
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { readStructure } from '../../src/content/blocks/read-structure.js'
import { renderStructure } from '../../src/content/blocks/render-structure.js'
import { plainTextOf } from '../../src/mail/compose/plain-text.js'
import { foreignPlainText } from '../support/foreign-plain-text.js'

const CORPUS = fileURLToPath(new URL('../../../test/content/corpus', import.meta.url))

/** What differs, and why: each is better. */
const DIFFERENT: Readonly<Record<string, 'rows' | 'words'>> = {
  // Comments end where browsers end them.
  'broken/comments.html': 'words',
  // What a frameset shows in its place is text of another document.
  'broken/frameset.html': 'words',
  // The title of a drawing is not shown.
  'newsletters/svg-and-math.html': 'words',
  // Rows and options are lines, cells are apart.
  'broken/misnested.html': 'rows',
  'newsletters/big-table.html': 'rows',
  'newsletters/forms-and-inputs.html': 'rows',
  'newsletters/mailchimp-like.html': 'rows',
}

const letters = (text: string) => text.replace(/\s+/g, '')

t.test('foreign mail has the text that html-to-text writes, but for rows, comments and drawings', async t => {
  const names = readdirSync(CORPUS, { recursive: true, encoding: 'utf8' }).filter(name =>
    name.endsWith('.html'),
  )
  t.ok(names.length >= 50)
  for (const name of names) {
    const html = readFileSync(`${CORPUS}/${name}`, 'utf8')
    const [own, foreign] = [plainTextOf(html), foreignPlainText(html)]
    const difference = DIFFERENT[name]
    if (difference === undefined) t.equal(own, foreign, name)
    else t.not(own, foreign, name)
    if (difference === 'rows') t.equal(letters(own), letters(foreign), name)
  }
})

const block = (type: string, content: object) => ({ id: type, type, content })
const text = (html: string) => block('text', { html })

t.test("the block editor's mail has it too, with list items on the line of their marker", async t => {
  const blocks = [
    block('header', { text: 'Head', level: 2 }),
    text('<p>Some <b>text</b></p><p>Two<br>lines</p>'),
    block('button', { text: 'Go', url: 'https://x.example/?a=1&b=2' }),
    block('image', { src: 'https://x.example/a.png', alt: 'A picture' }),
    block('divider', {}),
    block('spacer', { height: 33 }),
    block('columns', { columns: [{ blocks: [text('left')] }, { blocks: [text('right')] }] }),
    block('hero', { title: 'Hero', text: 'Words', buttonText: 'More', buttonUrl: 'https://x.example/' }),
    block('profile', { src: 'https://x.example/a.png', name: 'Ann', role: 'Founder', text: 'Hello' }),
    block('dropshadow', { blocks: [text('card')] }),
  ]
  for (const one of [...blocks.map(each => [each]), blocks]) {
    const html = renderStructure(readStructure({ blocks: one }))
    t.equal(plainTextOf(html), foreignPlainText(html), one.map(({ type }) => type).join())
  }
  const list = renderStructure(readStructure({ blocks: [text('<ul><li><p>one</p></li><li> two</li></ul>')] }))
  t.equal(plainTextOf(list), '* one\n\n* two')
})

/** Everything that is read alike; rows, lists and what browsers tokenize otherwise have tests of their own. */
const SCRAPS = [
  ...['"', '=', ' ', '\n', '\t', '<!-- c -->', '<!--[if mso]>x<![endif]-->', '</body>', '</html>', '<body>'],
  ...['<a href="https://m.example/?a=1&b_c=2">', "<a href='https://m.example/2'>", '<a href=#x>', '</a>'],
  ...['<style>', '</style>', '<script>', '</script>', '<table>', '</table>', '<b>', '</b>', '<p>', '</p>'],
  ...['<div>', '</div>', '<br/>', '</br>', '<img src=x alt="A b">', '&amp;', '&nbsp;', '&#8203;', '&eacute'],
  ...[
    '<h1>',
    '</h1>',
    '<blockquote>',
    '</blockquote>',
    '<span>',
    '</span>',
    '<hr>',
    '<section>',
    '</section>',
  ],
  ...['<o:p>', '</o:p>', 'a < b', 'm.example', 'https://m.example/2', '<form>', '</form>', 'text '],
]

t.test('random markup has it, blank for blank', async t => {
  let state = 1
  const below = (limit: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
  const wrong: string[] = []
  for (let round = 0; round < 3_000; round++) {
    const html = Array.from({ length: 1 + below(25) }, () => SCRAPS[below(SCRAPS.length)] ?? '').join('')
    // A comment does not keep a link's text from being its address.
    const isCommented = /<a [^>]*>[^<]*<!--/.test(html)
    if (!isCommented && plainTextOf(html) !== foreignPlainText(html)) wrong.push(html)
  }
  t.strictSame(wrong, [])
})
