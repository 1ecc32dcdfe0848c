import t from 'tap'
import { plainTextOf } from '../../src/mail/compose/plain-text.js'

t.test('links are kept once, images and anchors within the page left out', async t => {
  t.equal(plainTextOf('<a href="https://example.com/a">Shop</a>'), 'Shop <https://example.com/a>')
  t.equal(plainTextOf('<a href="https://example.com/a">https://example.com/a</a>'), 'https://example.com/a')
  t.equal(plainTextOf('<a href="https://example.com/a"><img src="x" alt="y"></a>'), '<https://example.com/a>')
  t.equal(plainTextOf('<a href="mailto:ann@example.com">Write</a>'), 'Write <ann@example.com>')
  t.equal(plainTextOf('<a href="#top">Top</a>'), 'Top')
  t.equal(plainTextOf('a<img src="x" alt="y">b'), 'ab')
})

t.test('a link is printed as a browser reads it, a mailto link as its address', async t => {
  const link = (href: string) => `<a href="${href}">Go</a>`
  const long = `${link('https://x.example')}<p></p>`.repeat(12_000)
  for (const [href, shown] of [
    ['\n  https://example.com/a\n    b?c=1 \n', 'https://example.com/a%20%20%20%20b?c=1'],
    ['https://example.com/long\r\n\tline', 'https://example.com/longline'],
    ['https://example.com/a b?q=c d', 'https://example.com/a%20b?q=c%20d'],
    ['mailto:ann@example.com?subject=Hello there&amp;body=x', 'ann@example.com'],
    ['MAILTO:ann@example.com', 'ann@example.com'],
  ] as const) {
    t.equal(plainTextOf(link(href)), `Go <${shown}>`)
    t.equal(
      plainTextOf(link(href) + long).split('\n')[0],
      `Go <${shown}>Go <https://x.example>`,
      'in long HTML',
    )
  }
})

t.test('paragraphs, headings and lists are laid out as such', async t => {
  t.equal(
    plainTextOf(
      '<h2>Head</h2><p>One</p><p>Two<br>lines</p><ul><li>a<li>b<ol><li>x</li><li>y</li></ol></ul><blockquote>Q</blockquote>',
    ),
    'Head\n\nOne\n\nTwo\nlines\n\n* a\n* b\n  1. x\n  2. y\n\nQ',
  )
})

t.test('rows of tables are lines, their cells are apart, and layout tables stay as they are', async t => {
  t.equal(
    plainTextOf(
      '<p>Bill</p><table><tr><th>Item</th><th>Price</th></tr><tr><td>Jug</td><td>12&nbsp;€</td></tr></table>Thanks',
    ),
    'Bill\n\nItem Price\nJug 12\u00a0€\n\nThanks',
  )
  t.equal(
    plainTextOf(
      '<table><tr><td>&#8203;</td></tr><tr><td><table><tr><td>a</td></tr></table></td></tr></table>',
    ),
    'a',
  )
})

t.test('items begin on the line of their marker, whatever block they begin with', async t => {
  t.equal(plainTextOf('<ul><li><p>one</p></li><li>\n two</li></ul>'), '* one\n\n* two')
  t.equal(plainTextOf('<ol><li><ul><li>a</li></ul></li><li>b</li></ol>'), '1.\n  * a\n2. b')
  t.equal(plainTextOf('<dl><dt>Jug</dt><dd>Holds water</dd></dl>'), 'Jug\nHolds water')
})

t.test('only the body is text, wherever it is', async t => {
  t.equal(plainTextOf('<div>x<body>a<p>b</body>y</div>'), 'a\n\nb')
  t.equal(plainTextOf('<title>x</title>a<br>b'), 'a\nb')
})

t.test('styles, scripts, comments and the title are not text', async t => {
  const html =
    '<html><head><title>T</title><style>p{}</style></head><body><!-- c --><script>s()</script><p>Text</p></body></html>'
  t.equal(plainTextOf(html), 'Text')
})

t.test('what is not drawn is not text, with all that is in it, and what follows is', async t => {
  const preheader =
    '<div style="color:#fff;DISPLAY: none;max-height:0">In lists <b>only</b><br>&#847;&zwnj;&nbsp;</div>'
  t.equal(plainTextOf(`<body>${preheader}<p>Hello</p><p>Bye</p></body>`), 'Hello\n\nBye')
  t.equal(
    plainTextOf(
      '<p hidden>a <a href="https://x.example/">b</a></p><a href="https://x.example/"><i hidden>c</i>d</a>',
    ),
    'd <https://x.example/>',
  )
  t.equal(plainTextOf('<ul style="display:none"><li>a<ul><li>b</ul></ul><ul><li>c</ul>'), '* c')
  t.equal(plainTextOf('<div style="display:none"><body><p>Hello'), 'Hello', 'the body is')
  t.equal(plainTextOf('<p style="display:block">a</p><p style="x-display:none">b'), 'a\n\nb')
})

t.test('long lines are not wrapped, entities are characters, NBSP stays', async t => {
  t.equal(plainTextOf(`<p>${'word '.repeat(50)}</p>`), 'word '.repeat(50).trim())
  t.equal(plainTextOf('<p>fish &amp; chips &lt;3 &euro;5&nbsp;now</p>'), 'fish & chips <3 €5\u00a0now')
})

t.test('HTML with tens of thousands of tags keeps all its text and links', async t => {
  const row =
    '<tr><td>Row &amp; <b>cell</b></td><td><a class=x href="https://example.com/?a=1&amp;b=2">Go</a></td></tr>\n'
  const text = plainTextOf(
    `<style>p > a {}</style><!-- > --><table>${row.repeat(3_000)}</table><script>if (a<b) {}</script>`,
  )
  const lines = text.split('\n')
  t.equal(lines.length, 6_000)
  t.same(lines.slice(-2), ['Row & cell', 'Go <https://example.com/?a=1&b=2>'])
})

t.test('256 KB of hostile HTML neither throw nor explode', async t => {
  const size = 256 * 1024
  const all = (piece: string) => piece.repeat(Math.floor(size / piece.length))
  // One more than the converter takes as a tree is another way through it, so each kind comes in both amounts.
  const some = (piece: string, count: number) =>
    piece.repeat(count) + 'x '.repeat((size - piece.length * count) / 2)
  const pieces = [
    '<div>',
    '<b>x',
    '<a href=https://example.com/>x',
    '<ul><li>x',
    '<ol><li><p>x',
    '<blockquote>x<br>',
    '<table><tr><td>x',
    '<li><p>',
    '<html><body>',
    '<svg>',
    '<pre>\n',
    '<hr>',
    '<!--',
    '<style>',
    '<title>',
    '</p>',
    '<',
    '<a ',
    '&#1',
    '&amp;',
  ]
  for (const piece of pieces)
    for (const html of [all(piece), some(piece, 3_000)]) t.ok(plainTextOf(html).length <= 4 * size, piece)
  for (const opening of [
    '<div>',
    '<blockquote>',
    '<ul><li>',
    '<a href=https://example.com/>',
    '<h1>',
    '<table><tr><td>',
  ])
    t.ok(plainTextOf(opening.repeat(400) + some('x<br>', 6_000)).length <= 4 * size, opening)
})
