/**
 * Real-world mail (`corpus/`) through footer and tracking: an independent parser sees the same tree except for links, pixel and footer, and
 * every other octet is the author's.
 */
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { findEndOfBody } from '../../src/content/footer/visible-html.js'
import { followedUrl, trackedUrls } from '../../src/content/tracking/followed-url.js'
import { planBody, renderMail, valuesOf } from '../../src/content/rendering/mail-plan.js'
import { planHtmlPart } from '../../src/content/rendering/relayed-plan.js'
import type { Merging } from '../../src/content/rendering/merging.js'
import { renderTemplate } from '../../src/content/merge/render-template.js'
import { parseTemplate } from '../../src/content/merge/parse-template.js'
import { LinkPartCache, readClick } from '../../src/mail/links/click-link.js'
import { openLinkKeys } from '../../src/mail/links/link-keys.js'
import { linksOf } from '../../src/mail/links/links.js'
import { treeOf, trimmed } from '../support/html-tree.js'

const CORPUS = fileURLToPath(new URL('../../../test/content/corpus', import.meta.url))
const MAILS = readdirSync(CORPUS, { recursive: true, encoding: 'utf8' })
  .filter(name => name.endsWith('.html'))
  .sort()
  .map(name => ({ name, html: readFileSync(`${CORPUS}/${name}`, 'utf8') }))

const KEYS = openLinkKeys([{ version: 1, secret: Buffer.alloc(32, 1) }])
const PUBLIC = 'https://mail.example.com'
const MESSAGE = {
  workspaceId: '01900000-0000-7000-8000-00000000000a',
  messageId: '01900000-0000-7000-8000-000000000001',
  recipient: 'ann@x.example',
}
const BRAND = {
  companyName: 'Vögel & Co',
  companyAddress: 'Hauptstraße 9',
  attribution: true,
  timezone: 'UTC',
}
const MERGING: Merging = { brand: BRAND, hasFooter: true, tracking: { opens: true, clicks: {} } }
/** Of each mail; more with CORPUS_ROUNDS. */
const ROUNDS = Number(process.env['CORPUS_ROUNDS'] ?? 4)
const FOOTER_TEXT = 'Sent with Postroad'
const links = linksOf(KEYS, PUBLIC, MESSAGE)
const parts = new LinkPartCache(KEYS)
const tracking = trackedUrls({ ...MESSAGE, links, parts, publicUrl: PUBLIC, parameters: {} })
const values = valuesOf(MERGING, {}, MESSAGE.recipient, 0, links, tracking)
const CLICK = /https:\/\/mail\.example\.com\/c\/[\w.-]+/g
const PIXEL = /<img src="https:\/\/mail\.example\.com\/o\/[^>]*>/
const FOOTER =
  /<table role="presentation" dir="(?:ltr|rtl)"(?:(?!<table)[^])*?Sent with Postroad<\/td><\/tr><\/table>/

const SIGNS = {
  followed: (href: string) =>
    href.startsWith(`${PUBLIC}/c/`) ? readClick(KEYS, href.slice(`${PUBLIC}/c/`.length))?.url : undefined,
  isPixel: (src: string) => src.startsWith(`${PUBLIC}/o/`),
  footerText: FOOTER_TEXT,
}

/** As the API's mail is made, and as finished mail is changed. */
const WAYS = {
  api(html: string): string {
    const plan = { subject: parseTemplate('x', 'subject'), body: planBody({ html }, MERGING) }
    return renderMail(plan, values).html ?? ''
  },
  finished(html: string): string {
    const place = { isMain: true, isFirst: true }
    return renderTemplate(planHtmlPart(html, MERGING, place, piece => piece).template, values)
  },
}

/** Links alone: what is added at the end closes what the author left open, as it would be closed there. */
function tracked(html: string): string {
  const merging = { ...MERGING, hasFooter: false, tracking: { opens: false, clicks: {} } }
  const place = { isMain: true, isFirst: true }
  return renderTemplate(planHtmlPart(html, merging, place, piece => piece).template, values)
}

/** With what closes in front of it what would hide it. */
function withoutFooter(html: string, done: string): string {
  const { index, 0: footer } = FOOTER.exec(done) ?? { index: done.length, 0: '' }
  const closing = findEndOfBody(html)
    .hiding.map(name => `</${name}>`)
    .join('')
  const before = done.slice(0, index)
  return (
    (before.endsWith(closing) ? before.slice(0, before.length - closing.length) : before) +
    done.slice(index + footer.length)
  )
}

/** The author's octets around what was put in; undefined where they are not all there, in order. */
function differenceOf(html: string, done: string): string | undefined {
  const pieces = withoutFooter(html, done.replace(PIXEL, '')).split(CLICK)
  const urls = [...done.matchAll(CLICK)].map(([url]) => SIGNS.followed(url))
  let at = 0
  for (const [index, piece] of pieces.entries()) {
    const next = index === 0 ? 0 : piece === '' ? html.length : html.indexOf(piece, at)
    if (next < 0 || !html.startsWith(piece, next)) return `lost: ${piece.slice(0, 200)}`
    if (index > 0 && followedUrl(html.slice(at, next)) !== urls[index - 1])
      return `${html.slice(at, next)} leads to ${urls[index - 1] ?? 'nowhere'}`
    at = next + piece.length
  }
  return at === html.length ? undefined : `cut off: ${html.slice(at, at + 200)}`
}

/** @returns what is wrong */
function faultOf(html: string, done: string): string | undefined {
  const difference = differenceOf(html, done)
  if (difference !== undefined) return difference
  const [before, after] = [treeOf(html, SIGNS), treeOf(done, SIGNS)]
  if (before.tree === after.tree) return undefined
  const lines = after.tree.split('\n')
  const at = before.tree.split('\n').findIndex((line, index) => line !== lines[index])
  return `another tree: ${lines.slice(Math.max(0, at - 3), at + 3).join(' ')}`
}

/** Where a tree holds no footer or pixel that anybody could see, whatever is added to the text. */
const SHOWS_NOTHING = new Set(['broken/frameset.html'])
/** Cut off within markup: the pixel has no place. */
const WITHOUT_PIXEL = new Set([
  ...SHOWS_NOTHING,
  ...['comment', 'style'].map(one => `broken/unclosed-${one}.html`),
  'broken/truncated.html',
])

t.test(
  'mail of every kind keeps its structure and octets, and gets one footer, one pixel and its links',
  async t => {
    t.ok(MAILS.length >= 50)
    for (const { name, html } of MAILS)
      for (const [way, add] of Object.entries(WAYS)) {
        const done = add(html)
        const label = `${name} (${way})`
        if (SHOWS_NOTHING.has(name)) t.equal(differenceOf(html, done), undefined, label)
        else t.equal(faultOf(html, done), undefined, label)
        const { pixels, footers, links: counted } = treeOf(done, SIGNS).additions
        t.equal(footers, SHOWS_NOTHING.has(name) ? 0 : 1, label)
        t.equal(pixels, WITHOUT_PIXEL.has(name) ? 0 : 1, label)
        t.strictSame([...counted].sort(), followable(html), label)
      }
  },
)

/** The links that a browser would follow to http(s), as the foreign parser finds them. */
function followable(html: string): string[] {
  const found: string[] = []
  treeOf(html, {
    ...SIGNS,
    followed(href) {
      const url = trimmed(href)
      // eslint-disable-next-line no-control-regex -- a link is not followed that has one
      const isFollowed = /^https?:\/\/[^/?#\\]/i.test(url) && !/[\x00-\x20\x7f]/.test(url) && !/é/.test(url)
      if (isFollowed) found.push(url)
      return undefined
    },
  })
  return found.sort()
}

/** Small and fast; the same for the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

/** What mail is broken with. */
const SPLINTERS = [
  ...[
    '<',
    '>',
    '"',
    "'",
    '=',
    '&',
    '/',
    ' ',
    '\n',
    '\t',
    '<!--',
    '-->',
    '<![endif]-->',
    '<!--[if mso]>',
    '<!>',
    '</>',
    '</ x>',
  ],
  ...[
    '</body>',
    '</BODY >',
    '</html>',
    '<body>',
    '<html dir=rtl>',
    '<style>',
    '</style>',
    '<title>',
    '</title>',
    '<textarea>',
    '</p>',
  ],
  ...[
    '<a href="https://m.example/?a=1&b_c=2">',
    "<a href='https://m.example/2'>",
    '<a href=https://m.example/3>',
    '</a>',
    '<table>',
    '</td>',
  ],
  ...[
    '<svg>',
    '</svg>',
    '<![CDATA[',
    ']]>',
    '<noscript>',
    '<template>',
    '</template>',
    '<select>',
    '<object>',
    '<button>',
    '<details>',
    '</details>',
    '<b>',
    '<p>',
    '&amp;',
    '&#x2F;',
    '\u00a0',
    'ß',
    '🎁',
  ],
]

function broken(html: string, random: (below: number) => number): string {
  let text = html
  for (let left = 1 + random(6); left > 0; left--) {
    const at = random(text.length + 1)
    const splinter = SPLINTERS[random(SPLINTERS.length)] ?? ''
    const length = random(40)
    switch (random(4)) {
      case 0:
        text = text.slice(0, at) + text.slice(at + length)
        break
      case 1:
        text = text.slice(0, at) + text.slice(at, at + length).repeat(2) + text.slice(at + length)
        break
      case 2:
        text = random(8) === 0 ? text.slice(0, at) : text
        break
      default:
        text = text.slice(0, at) + splinter + text.slice(at)
    }
  }
  // Half of a surrogate pair is not a character and has no UTF-8 form.
  return Buffer.from(text).toString()
}

t.test('malformed mail keeps every octet and its structure', t => {
  const faults: string[] = []
  for (const [index, { name, html }] of MAILS.entries()) {
    if (SHOWS_NOTHING.has(name) || html.length > 20_000) continue
    for (let round = 0; round < ROUNDS; round++) {
      const seed = index * 10_000 + round
      const mail = broken(html, randomOf(seed))
      const [done, linked] = [WAYS.finished(mail), tracked(mail)]
      const { footers } = treeOf(done, SIGNS).additions
      const fault =
        differenceOf(mail, done) ??
        faultOf(mail, linked) ??
        (footers === 1 ? undefined : `${footers} footers`)
      if (fault !== undefined) faults.push(`${name}, seed ${seed}: ${fault}`)
    }
  }
  t.strictSame(faults, [])
  t.end()
})
