/**
 * Makes plain text of what feeds contain: titles and summaries that may be HTML, links that may be relative.
 *
 * The results are safe to insert anywhere a merge tag may stand: one line without control characters, or an absolute http(s) URL.
 * Pure. Never throws; time is bounded by cutting long input first.
 */
import { Parser } from 'htmlparser2'
import { toUSVString } from 'node:util'

/** Characters of HTML looked at; summaries come from its beginning. */
const MAX_HTML = 100_000
/** Deeper markup is ignored: the parser's time grows with depth. */
const MAX_DEPTH = 100
/** Longer URLs count as missing. */
const MAX_URL = 2_048

const UNSEEN: ReadonlySet<string> = new Set(
  'script style template noscript iframe object svg head title'.split(' '),
)
const INLINE: ReadonlySet<string> = new Set(
  'a abbr b bdi bdo cite code data del dfn em font i ins kbd mark q s samp small span strong sub sup time tt u var wbr'.split(
    ' ',
  ),
)

/** Text of HTML on one line. @param limit characters; longer text is cut at a word and ends in `…` */
export function textOfHtml(html: string, limit: number): string {
  return /[<&]/.test(html) ? oneLine(readHtml(html).text, limit) : oneLine(html, limit)
}

/** URL of the first picture, as written; empty if there is none. */
export function firstImage(html: string): string {
  return html.includes('<') ? readHtml(html).image : ''
}

function readHtml(html: string): { readonly text: string; readonly image: string } {
  let [text, image] = ['', '']
  let [depth, unseen] = [0, 0]
  const parser = new Parser({
    onopentag(name, { src = '', width = '', height = '' }) {
      depth += 1
      if (depth > MAX_DEPTH) parser.pause()
      if (UNSEEN.has(name)) unseen += 1
      if (!INLINE.has(name)) text += ' '
      // A picture of one pixel counts visits.
      if (name === 'img' && image === '' && width !== '1' && height !== '1') image = src
    },
    ontext(piece) {
      if (unseen === 0) text += piece
    },
    onclosetag(name) {
      depth -= 1
      if (UNSEEN.has(name) && unseen > 0) unseen -= 1
      if (!INLINE.has(name)) text += ' '
    },
  })
  parser.end(html.slice(0, MAX_HTML))
  return { text, image }
}

// eslint-disable-next-line no-control-regex -- line breaks and control characters are what this removes
const BLANK = /[\s\x00-\x1f\x7f-\x9f\u200b\u2028\u2029\ufeff]+/g

/** @param limit characters */
export function oneLine(text: string, limit: number): string {
  const line = toUSVString(text.slice(0, MAX_HTML)).replace(BLANK, ' ').trim()
  if (line.length <= limit) return line
  const cut = line.slice(0, limit - 1)
  const space = cut.lastIndexOf(' ')
  const kept = space > limit / 2 ? cut.slice(0, space) : cut
  // Half of a surrogate pair.
  return `${kept.replace(/[\ud800-\udbff]$/, '').trimEnd()}…`
}

/** @param base of relative URLs @returns empty for anything but http(s) */
export function absoluteUrl(written: string, base: string): string {
  const text = written.trim()
  if (text === '' || text.length > MAX_URL || !URL.canParse(text, base)) return ''
  const { protocol, href } = new URL(text, base)
  return (protocol === 'https:' || protocol === 'http:') && href.length <= MAX_URL ? href : ''
}
