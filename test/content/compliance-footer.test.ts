/** The compliance footer: its three cases, its position, and that nothing else changes. */
import { Parser } from 'htmlparser2'
import { parse, type DefaultTreeAdapterTypes as Tree } from 'parse5'
import t from 'tap'
import { addComplianceFooter, footerCase } from '../../src/content/footer/compliance-footer.js'
import { findEndOfBody } from '../../src/content/footer/visible-html.js'
import { parseTemplate } from '../../src/content/merge/parse-template.js'
import { renderTemplate } from '../../src/content/merge/render-template.js'
import { assertLinear } from '../support/count-steps.js'

const brand = { companyName: 'Birds & Co', companyAddress: '1 Main Street, 12345 Town', attribution: true }
const system = {
  unsubscribe_url: 'https://m.example/u/1',
  preferences_url: 'https://m.example/p/1',
  company_name: 'Birds & Co',
  company_address: brand.companyAddress,
}

const render = (html: string, values = system) =>
  renderTemplate(parseTemplate(addComplianceFooter(html, brand), 'html'), { system: values })

function textOf(html: string): string {
  let text = ''
  const parser = new Parser({ ontext: piece => (text += piece) })
  parser.end(html)
  return text.replace(/\s+/g, ' ').trim()
}

t.test('a mail without an unsubscribe link gets the full footer', async t => {
  const html = '<html><body><p>Hi</p></body></html>'
  t.equal(footerCase(html, brand), 'added')
  const rendered = render(html)
  t.equal(
    textOf(rendered),
    'HiBirds & Co, 1 Main Street, 12345 TownUnsubscribe · Email preferencesSent with Postroad',
  )
  t.match(rendered, 'href="https://m.example/u/1"')
  t.match(rendered, 'href="https://m.example/p/1"')
})

t.test('an unsubscribe link without an address is completed with the address', async t => {
  const html = '<body><a href="{{unsubscribe_url}}">Stop</a></body>'
  t.equal(footerCase(html, brand), 'completed')
  t.equal(textOf(render(html)), 'StopBirds & Co, 1 Main Street, 12345 TownSent with Postroad')
})

t.test('a complete footer is kept and gets only the attribution', async t => {
  const tag = '<body><a href="{{ unsubscribe_url }}">Stop</a> {{company_address}}</body>'
  const literal = '<body><a href="{{unsubscribe_url}}">Stop</a> 1 MAIN STREET<br>12345&nbsp;Town</body>'
  for (const html of [tag, literal]) t.equal(footerCase(html, brand), 'kept')
  t.equal(textOf(render(tag)), 'Stop 1 Main Street, 12345 TownSent with Postroad')
  t.equal(addComplianceFooter(tag, { ...brand, attribution: false }), tag, 'nothing to add, nothing changed')
})

t.test("a sender's own unsubscribe link does not count", async t => {
  t.equal(footerCase('<a href="https://own.example/unsubscribe">Stop</a>', brand), 'added')
})

const LINK = '<a href="{{unsubscribe_url}}">Stop</a>'

t.test('an invisible unsubscribe link does not count', async t => {
  const hidden = [
    `<!-- ${LINK} -->`,
    `<!--[if mso]>${LINK}<![endif]-->`,
    `<style>/* ${LINK} */</style>`,
    `<script>var a = '${LINK}'</script>`,
    `<template>${LINK}</template>`,
    `<textarea>${LINK}</textarea>`,
    `<select><option>${LINK}</select>`,
    `<div style="display:none">${LINK}</div>`,
    `<div style="DISPLAY : none !important"><p style="display:block">${LINK}</p></div>`,
    `<p hidden>${LINK}</p>`,
    `<p style="visibility:hidden">${LINK}</p>`,
    `<p style="opacity:0">${LINK}</p>`,
    `<p style="font-size:0;line-height:0">${LINK}</p>`,
    `<p style="max-height:0;overflow:hidden">${LINK}</p>`,
    `<p style="color:transparent">${LINK}</p>`,
    `<p style="position:absolute;left:-9999px">${LINK}</p>`,
    `<style>.gone{display:none}</style><p class="a Gone">${LINK}</p>`,
    `<style>p#x, i { visibility: hidden }</style><p id="x">${LINK}</p>`,
    '<a href="{{unsubscribe_url}}"></a>',
    '<a href="{{unsubscribe_url}}"> &nbsp;&#8203; <br></a>',
    '<a href="{{unsubscribe_url}}"><img src="x.gif" width="1" height="1" alt="Stop"></a>',
    '<a href="{{unsubscribe_url}}"><img src="x.gif" alt=""></a>',
    '<a href="{{unsubscribe_url}}"><span style="display:none">Stop</span></a>',
    '<a href="#{{unsubscribe_url}}">Stop</a>',
    '<a title="{{unsubscribe_url}}" href="https://x.example/">Stop</a>',
    '<img src="{{unsubscribe_url}}" alt="Stop">',
  ]
  for (const one of hidden) {
    const html = `<html><head><title>x</title></head><body><p>Hi</p>${one}</body></html>`
    t.equal(footerCase(html, brand), 'added', one)
    t.equal(textOf(render(html)).match(/Unsubscribe · Email/g)?.length, 1, one)
  }
  for (const html of [
    `<html><head>${LINK}</head><body>x</body></html>`,
    `<body>x</body>${LINK}`,
    `<title>${LINK}</title>x`,
  ])
    t.equal(footerCase(html, brand), 'added', html)
})

t.test('a visible unsubscribe link counts, whatever is hidden around it', async t => {
  const seen = [
    LINK,
    '<a href="{{unsubscribe_url|x}}"><b>Stop</b></a>',
    '<a href="{{unsubscribe_url}}"><img src="x.png" alt="Stop" width="90"></a>',
    '<p>Stop: {{unsubscribe_url}}</p>',
    `<div style="display:none">Preview</div><p>${LINK}</p>`,
    `<td style="font-size:0"><div style="font-size:14px">${LINK}</div></td>`,
    `<div style="visibility:hidden"><p style="visibility:visible">${LINK}</p></div>`,
    `<style>@media (max-width:600px){.m{display:none}} .other{display:none}</style><p class="m">${LINK}</p>`,
    `<!--[if !mso]><!-->${LINK}<!--<![endif]-->`,
    `<table><tr><td style="display:none"></td><td>${LINK}</td></tr></table>`,
  ]
  for (const one of seen) t.equal(footerCase(`<body>${one}</body>`, brand), 'completed', one)
})

t.test('an invisible address does not count', async t => {
  for (const one of [
    '<!-- {{company_address}} -->',
    '<p style="display:none">1 Main Street, 12345 Town</p>',
    '<p hidden>{{company_address}}</p>',
    '<style>/* 1 Main Street, 12345 Town */</style>',
  ])
    t.equal(footerCase(`<body>${LINK}${one}</body>`, brand), 'completed', one)
  t.equal(footerCase(`<body>${LINK}<p>1 Main Street,<br>12345&nbsp;Town</p></body>`, brand), 'kept')
})

t.test('an address counts however its letters are written', async t => {
  const german = { ...brand, companyAddress: 'Hauptstraße 9, Köln & Umgebung' }
  for (const one of [
    'Hauptstra&szlig;e 9<br>K&ouml;ln &amp; Umgebung',
    'Hauptstra&#223;e&nbsp;9, K&#xF6;ln&amp;Umgebung',
  ])
    t.equal(footerCase(`<body>${LINK}<p>${one}</p></body>`, german), 'kept', one)
})

t.test(
  'end tags that match nothing, and comments as browsers end them, change nothing of what is seen',
  async t => {
    for (const one of [
      `</table></b>${LINK}</></nothing>`,
      `<!-- a --!>${LINK}`,
      `<!-->${LINK}<!-- -->`,
      `<p style="display:none">x<p>${LINK}`,
      `<ul><li hidden>x<li>${LINK}</ul>`,
      `<img style="display:none">${LINK}`,
      `<p style="display:none">x</p ><o:p></o:p>${LINK}`,
    ])
      t.equal(footerCase(`<body>${one}</body>`, brand), 'completed', one)
    for (const one of [`<div hidden></p></b>${LINK}`, `<!-- <!-- --${LINK}-->`])
      t.equal(footerCase(`<body>${one}</body>`, brand), 'added', one)
  },
)

t.test('a mail whose end is hidden gets its footer at the start', async t => {
  for (const html of [
    '<html><body class="x"><div style="display:none"><p>never closed</body></html>',
    '<style>.all{visibility:hidden}</style><body class="x"><div class="all">',
  ]) {
    const done = addComplianceFooter(html, brand)
    t.match(done, /<body class="x"><table role="presentation"[^]*Unsubscribe/)
    t.equal(footerCase(done, brand), 'kept')
  }
})

t.test('an unset company name or address leaves no stray comma', async t => {
  t.match(textOf(render('<p>x</p>', { ...system, company_name: '' })), 'x1 Main Street, 12345 TownUnsub')
  t.match(textOf(render('<p>x</p>', { ...system, company_address: '' })), 'xBirds & CoUnsub')
})

t.test('the footer is inserted before the end of the body in any notation', async t => {
  const cases: [string, string][] = [
    ['<body>a</body>', '</body>'],
    ['<BODY>a</BODY ></HTML>', '</BODY ></HTML>'],
    ['<html><p>a</html>', '</html>'],
    ['<p>a', ''],
    ['<body>a</body><!-- </body> -->', '</body><!-- </body> -->'],
    ['<body>a<!--[if mso]></body><![endif]--></body\n>', '</body\n>'],
    ['<body>a<style>/* </body> */</style></body>', '</body>'],
    ['<body>a<script>"</body>"</script><p title="</body>">b</p></body>', '</body>'],
    ['<body>a</body><body>b</body></html>', '</body></html>'],
    ["<body><p title='a>b'>a</p></body>", '</body>'],
    ["<body><p>don't</p></body>", '</body>'],
    ['<body>b<p title="never closed>a</p></body>', '<p title="never closed>a</p></body>'],
    ['<body>a<!-- never closed </body>', '<!-- never closed </body>'],
    ['<body>a<style>p > a { never closed </body>', '<style>p > a { never closed </body>'],
    ['<p>a</p><p', '<p'],
  ]
  for (const [html, rest] of cases) t.equal(html.slice(findEndOfBody(html).at), rest, html)
})

t.test('elements that would hide the footer are closed before it', async t => {
  const hiding = ['select', 'template', 'object', 'button', 'details', 'dialog', 'textarea', 'title', 'style']
  const mails = [
    ...hiding.map(name => `<body><p>a</p><${name}><p>never closed</body></html>`),
    ...hiding.map(name => `<${name.toUpperCase()} class="x"><div>never closed`),
    '<body><select><option>a</select><select><option>b</body>',
    '<body><template><template></template><p>a</body>',
    '<body><details><dialog><button><p>a</body>',
    '<body><select><option>a</select></template></object><p>a</body>',
  ]
  for (const html of mails) {
    const around = elementsAround(parse(addComplianceFooter(html, brand)), 'Unsubscribe')
    t.not(around, undefined, html)
    t.strictSame(
      around?.filter(name => hiding.includes(name)),
      [],
      html,
    )
  }
})

/** @returns names of the elements around a text, as a parser that is not ours reads them; undefined where it is nowhere */
function elementsAround(node: Tree.Node, text: string): string[] | undefined {
  if (node.nodeName === '#text') return (node as Tree.TextNode).value.includes(text) ? [] : undefined
  const children = 'content' in node ? node.content.childNodes : 'childNodes' in node ? node.childNodes : []
  for (const child of children) {
    const around = elementsAround(child, text)
    if (around) return [node.nodeName, ...around]
  }
  return undefined
}

t.test("the author's markup is unchanged", async t => {
  const html = '<!DOCTYPE html>\r\n<html>\n<body >\t<p>é{{x}}</p>\r\n</body>\n</html>\n'
  const done = addComplianceFooter(html, brand)
  const { at } = findEndOfBody(html)
  t.ok(done.startsWith(html.slice(0, at)) && done.endsWith(html.slice(at)))
})

t.test('the footer has the width, direction and language of the mail', async t => {
  const html = '<html lang="de-AT" dir="rtl"><body><div style="max-width: 640px"></div></body></html>'
  const done = addComplianceFooter(html, brand)
  t.match(done, 'max-width:640px')
  t.match(done, 'dir="rtl"')
  t.match(done, '>Abmelden</a>')
  t.match(addComplianceFooter('<p>x', brand), 'max-width:600px')
  t.match(addComplianceFooter('<html lang="xx"><p>x', brand), '>Unsubscribe</a>')
})

t.test('a workspace without name and address gets no empty line', async t => {
  const done = addComplianceFooter('<p>x</p>', { companyName: '', companyAddress: '', attribution: true })
  t.notMatch(done, /company|<td[^>]*><br>/)
})

t.test('a condition or tag around the end of the body does not hide the footer', async t => {
  for (const html of [
    '<body>{{#if vip}}<p>x</p></body>{{/if}}',
    '<body>{{#each list}}<p>x</p></body>{{/each}}</html>',
    '<p>{{name|</body>}}</p>',
  ]) {
    const done = addComplianceFooter(html, brand)
    t.ok(done.startsWith(html), html)
    t.match(textOf(render(html)), 'Unsubscribe')
  }
  t.match(addComplianceFooter('<body>{{#if a}}<p>{{/if}}</body>', brand), /<\/table><\/body>$/)
})

t.test('hostile HTML is processed in linear time', async t => {
  const scraps = [
    '<a title="',
    '<!--',
    '</body',
    '<style>',
    "<p a='",
    '<body ',
    '="',
    '<html lang',
    '{{unsubscribe_url|',
    ' width=',
  ]
  for (const scrap of scraps)
    assertLinear(t, count => addComplianceFooter(scrap.repeat(count), brand), 500, scrap)
})
