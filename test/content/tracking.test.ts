/** Link and pixel tracking: what is tracked, what is not, and that every other octet is unchanged. */
import t from 'tap'
import { parseTemplate } from '../../src/content/merge/parse-template.js'
import { renderTemplate } from '../../src/content/merge/render-template.js'
import { trackedUrls, withParameters } from '../../src/content/tracking/followed-url.js'
import { trackTemplate } from '../../src/content/tracking/track-template.js'
import { LinkPartCache, readClick } from '../../src/mail/links/click-link.js'
import { openLinkKeys } from '../../src/mail/links/link-keys.js'
import { linksOf } from '../../src/mail/links/links.js'

const KEYS = openLinkKeys([{ version: 1, secret: Buffer.alloc(32, 1) }])
const PUBLIC = 'https://mail.example.com'
const WORKSPACE = '01900000-0000-7000-8000-00000000000a'
const MESSAGE = '01900000-0000-7000-8000-000000000001'
const parts = new LinkPartCache(KEYS)

const BOTH = { opens: true, clicks: {} }
const CLICKS = { opens: false, clicks: {} }

/** The mail that Ann gets, with `[url]` for each link that is counted and `[pixel]` for the pixel. */
function seen(html: string, tracked = CLICKS, data: Record<string, unknown> = {}): string {
  const links = linksOf(KEYS, PUBLIC, {
    workspaceId: WORKSPACE,
    messageId: MESSAGE,
    recipient: 'ann@x.example',
  })
  const tracking = trackedUrls({
    workspaceId: WORKSPACE,
    links,
    parts,
    publicUrl: PUBLIC,
    parameters: tracked.clicks,
  })
  const system = { unsubscribe_url: links.unsubscribeUrl, preferences_url: links.preferencesUrl }
  return renderTemplate(trackTemplate(parseTemplate(html, 'html'), tracked), { system, data, tracking })
    .replace(/https:\/\/mail\.example\.com\/c\/([\w.-]+)/g, (_, token: string) => {
      const click = readClick(KEYS, token)
      return click?.messageId === MESSAGE ? `[${click.url}]` : 'FORGED'
    })
    .replace(links.unsubscribeUrl, 'UNSUBSCRIBE')
    .replace(links.preferencesUrl, 'PREFERENCES')
    .replace(/<img src="https:\/\/mail\.example\.com\/o\/[\w-]+\.gif"[^>]*>/g, '[pixel]')
}

t.test('http and https links are tracked in any markup', t => {
  for (const [html, expected] of [
    ['<a href="https://x.example/">x</a>', '<a href="[https://x.example/]">x</a>'],
    [`<a href='https://x.example/'>`, `<a href='[https://x.example/]'>`],
    ['<a href=https://x.example/a?b=1>x</a>', '<a href=[https://x.example/a?b=1]>x</a>'],
    ['<A CLASS=b HREF = "HTTP://x.example">', '<A CLASS=b HREF = "[HTTP://x.example]">'],
    ['<area shape=rect href="https://x.example/m">', '<area shape=rect href="[https://x.example/m]">'],
    [
      '<a\n\ttitle="a > b"\n href="https://x.example/1">',
      '<a\n\ttitle="a > b"\n href="[https://x.example/1]">',
    ],
    ['<a/href="https://x.example/2"/>', '<a/href="[https://x.example/2]"/>'],
    [
      '<a href="https://x.example/1" href="https://x.example/2">',
      '<a href="[https://x.example/1]" href="https://x.example/2">',
    ],
    ['<a href="https://x.example/?a=1&amp;b=2&copy=3">', '<a href="[https://x.example/?a=1&b=2&copy=3]">'],
    ['<a href="https&#58;//x.example/&#x2F;">', '<a href="[https://x.example//]">'],
    ['<a href=" \n https://x.example/a b\t">', '<a href="[https://x.example/a%20b]">'],
    ['<svg><a href="https://x.example/s"></a></svg>', '<svg><a href="[https://x.example/s]"></a></svg>'],
    ['<a href="https://x.example/ä/日">', '<a href="[https://x.example/ä/日]">'],
    ['1 < 2 <a href="https://x.example/">', '1 < 2 <a href="[https://x.example/]">'],
    ['<p><a x=1<a href="https://x.example/">', '<p><a x=1<a href="[https://x.example/]">'],
    ['<!--><a href="https://x.example/">', '<!--><a href="[https://x.example/]">'],
    ['<!-- a --!><a href="https://x.example/">', '<!-- a --!><a href="[https://x.example/]">'],
    ['<!doctype html "><a href="https://x.example/">', '<!doctype html "><a href="[https://x.example/]">'],
    [
      '<style>a>b{}</style ><a href="https://x.example/">',
      '<style>a>b{}</style ><a href="[https://x.example/]">',
    ],
    ['<noscript><a href="https://x.example/">', '<noscript><a href="[https://x.example/]">'],
    [
      '<!--[if !mso]><!--><a href="https://x.example/"><!--<![endif]-->',
      '<!--[if !mso]><!--><a href="[https://x.example/]"><!--<![endif]-->',
    ],
  ] as const)
    t.equal(seen(html), expected)
  t.end()
})

t.test("links and drawings in Outlook's conditional comments are tracked", t => {
  const url = 'https://x.example/?a=1&amp;b=2'
  for (const html of [
    `<!--[if mso]><v:roundrect href="${url}" arcsize="10%"><center>Go</center></v:roundrect><![endif]--><p>x</p>`,
    `<p>x<!--[if (gte mso 9)|(IE)]><table><tr><td><a class=x href='${url}'>Go</a></td></tr></table><![endif]--></p>`,
    `<!--[if mso]><a href="${url}">1</a><V:RECT HREF="${url}"></V:RECT><![endif]--><a href="${url}">2</a>`,
  ])
    t.equal(seen(html), html.replaceAll(url, '[https://x.example/?a=1&b=2]'))
  t.end()
})

t.test('everything else is unchanged', t => {
  for (const html of [
    '<a href="mailto:a@x.example">',
    '<a href="tel:+1">',
    '<a href="#top">',
    '<a href="/path">',
    '<a href="//x.example/">',
    '<a href="ftp://x.example/">',
    '<a href="javascript:alert(1)">',
    '<a href="java&#115;cript:alert(1)//https://x.example">',
    '<a href="">',
    '<a href>',
    '<a href=>',
    '<a =href="https://x.example/">',
    '<a data-href="https://x.example/">',
    '<link href="https://x.example/a.css"><base href="https://x.example/">',
    '<img src="https://x.example/a.png">',
    '</a href="https://x.example/">',
    '<abbr href="https://x.example/">',
    '<!-- <a href="https://x.example/"> -->',
    '<!--[if mso]><a href=https://x.example/>in quotes, what ends the URL cannot end the comment</a><![endif]-->',
    '<!--[if mso]><a title="x"><!-- href="https://x.example/"',
    '<!--[if mso]><a href="https://x.example/--><p title="">',
    '<!--[if mso]><style>a{}</style><link href="https://x.example/"><![endif]-->',
    '<v:rect href="https://x.example/">',
    '<script>document.write(\'<a href="https://x.example/">\')</script>',
    '<style>/* <a href="https://x.example/"> */</style>',
    '<textarea><a href="https://x.example/"></textarea>',
    '<title><a href="https://x.example/"></title>',
    '<svg><![CDATA[<a href="https://x.example/">]]></svg>',
    '<? <a href="https://x.example/"',
    `<a href="https://x.example/${'a'.repeat(2_100)}">`,
    '<a href="https://x.example/',
    '<a href="https://x.example/&eacute;">',
    '<a href="https://x.example/?a=1&para">',
    '<a href="https://x.example/&#128;">',
    '< a href="https://x.example/">',
    '<p title="<a href=\'https://x.example/\'>">',
    `<p>"<a title='` + `>" href="https://x.example/">`,
  ])
    t.equal(seen(html, CLICKS), html)
  t.end()
})

t.test('merged URLs lead each recipient to their own target', t => {
  const html =
    '<a href="https://x.example/{{id}}?n={{name}}">1</a>{{#each items}}<a href="{{this.url}}">{{this.n}}</a>{{/each}}' +
    '{{#if vip}}<a href="https://x.example/vip">{{else}}<a href="https://x.example/all">{{/if}}' +
    '<a href="https://x.example/{{#if vip}}v{{else}}a{{/if}}">2</a>'
  const data = {
    id: 7,
    name: 'A & B',
    vip: true,
    items: [
      { url: 'https://y.example/?a=1&b=2', n: 1 },
      { url: 'mailto:a@x.example', n: 2 },
    ],
  }
  t.equal(
    seen(html, CLICKS, data),
    '<a href="[https://x.example/7?n=A%20%26%20B]">1</a><a href="[https://y.example/?a=1&b=2]">1</a>' +
      '<a href="mailto:a@x.example">2</a><a href="[https://x.example/vip]"><a href="[https://x.example/v]">2</a>',
  )
  t.end()
})

t.test('a URL whose scheme depends on a value is checked when rendered', t => {
  t.equal(seen('<a href="{{url}}">', CLICKS, { url: 'tel:+49' }), '<a href="tel:+49">')
  t.equal(
    seen('<a href="{{url}}">', CLICKS, { url: 'https://x.example/' }),
    '<a href="[https://x.example/]">',
  )
  t.equal(seen('<a href={{url}}>', CLICKS, { url: 'https://x.example/' }), '<a href=[https://x.example/]>')
  t.equal(seen('<a href="mailto:{{to}}">', CLICKS, { to: 'a@x.example' }), '<a href="mailto:a@x.example">')
  t.end()
})

t.test('a URL that starts or ends inside a block is not tracked', t => {
  const html = '<a {{#if a}}href="https://x.example/{{/if}}b">c</a> <a href="https://y.example/">'
  t.equal(
    seen(html, CLICKS, { a: true }),
    '<a href="https://x.example/b">c</a> <a href="[https://y.example/]">',
  )
  t.end()
})

t.test('unsubscribe and preference links are never tracked', t => {
  const html =
    '<a href="{{unsubscribe_url}}"><a href="{{preferences_url}}"><a href="{{#if a}}{{unsubscribe_url}}{{/if}}">'
  t.equal(seen(html, CLICKS), '<a href="UNSUBSCRIBE"><a href="PREFERENCES"><a href="">')
  const ours = `${PUBLIC}/u/AQAB`
  t.equal(seen('<a href="{{url}}">', CLICKS, { url: ours }), `<a href="${ours}">`)
  t.end()
})

t.test('the pixel is at the end of the body, outside any condition', t => {
  for (const [html, expected] of [
    ['<body><p>a</p></body></html>', '<body><p>a</p>[pixel]</body></html>'],
    ['<p>a</p></BODY >\n</html>', '<p>a</p>[pixel]</BODY >\n</html>'],
    ['<p>a</p></html>', '<p>a</p>[pixel]</html>'],
    ['<p>a</p>', '<p>a</p>[pixel]'],
    ['<p></body>a</p></body>', '<p></body>a</p>[pixel]</body>'],
    ['<p>a</p></body><!-- </body> -->', '<p>a</p>[pixel]</body><!-- </body> -->'],
    ['{{#if no}}<p></body>{{/if}}a', 'a[pixel]'],
    ['a <!-- never closed', 'a <!-- never closed'],
    ['a <b title="never closed>', 'a <b title="never closed>'],
  ] as const)
    t.equal(seen(html, { opens: true, clicks: {} }), expected)
  t.end()
})

t.test('tracking that is off changes nothing', t => {
  const html = '<body><a href="https://x.example/">a</a></body>'
  const { nodes } = trackTemplate(parseTemplate(html, 'html'), { opens: false })
  t.same(nodes, [html])
  const opened = trackTemplate(parseTemplate(html, 'html'), { opens: true })
  t.same(opened.nodes, [html.slice(0, -7), { kind: 'pixel' }, '</body>'])
  t.equal(renderTemplate(trackTemplate(parseTemplate(html, 'html'), BOTH), { system: {} }), html)
  t.end()
})

t.test("the workspace's parameters are added to the target URL", t => {
  const utm = { utm_source: 'news letter', utm_medium: 'email' }
  t.equal(
    seen('<a href="https://x.example/?utm_source=own#top">', { opens: false, clicks: utm }),
    '<a href="[https://x.example/?utm_source=own&utm_medium=email#top]">',
  )
  t.equal(
    seen('<a href="https://x.example/{{id}}">', { opens: false, clicks: utm }, { id: 1 }),
    '<a href="[https://x.example/1?utm_source=news%20letter&utm_medium=email]">',
  )
  t.equal(
    withParameters('https://x.example?', utm),
    'https://x.example?utm_source=news%20letter&utm_medium=email',
  )
  t.equal(withParameters('https://x.example/?a=%zz', {}), 'https://x.example/?a=%zz')
  t.end()
})
