/**
 * Converts an HTML body to its plain-text alternative.
 *
 * HTML with more tags than any real mail has its tags stripped instead. Pure. Never throws; linear in the length of the HTML.
 */
import { linkTarget } from '../html/link-target.js'
import { PlainTextWriter } from '../html/plain-text-writer.js'

/** Including closing tags; 256 KB of terse real markup have some 10,000. */
const MAX_TAGS = 12_000
/** @returns text with links, without images; LF line endings, unwrapped */
export function plainTextOf(html: string): string {
  if (hasMoreTags(html, MAX_TAGS)) return stripHtml(html)
  const writer = new PlainTextWriter(html)
  writer.read()
  return writer.written
}

const SKIPPED_ELEMENTS: ReadonlySet<string> = new Set(['script', 'style', 'title'])

/** All other elements start a new line. */
const INLINE_ELEMENTS: ReadonlySet<string> = new Set(
  'a abbr b bdi bdo big cite code em font i img ins del kbd label mark q s small span strike strong sub sup u var'.split(
    ' ',
  ),
)

/** The common entities; others are kept as written. */
const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
}

/**
 * Strips tags in one linear pass: for HTML too large for a parser, and for bounces. A `>` inside an attribute ends the tag.
 *
 * @returns the text, one line per block, without empty lines; links as `text <href>`
 */
export function stripHtml(html: string): string {
  const opening = /<(\/?)([a-z][a-z0-9:-]*)|<!--|<[!?]/gi
  const pieces: string[] = []
  let href = ''
  let at = 0
  for (let match = opening.exec(html); match; match = opening.exec(html)) {
    const [found, slash, written = ''] = match
    const name = written.toLowerCase()
    pieces.push(collapsed(html.slice(at, match.index)))
    if (name === 'a' && href !== '') pieces.push(` <${href}>`)
    if (name !== '' && !INLINE_ELEMENTS.has(name)) pieces.push('\n')
    at = endAfter(html, found === '<!--' ? '-->' : '>', opening.lastIndex)
    if (name === 'a') href = slash === '' ? hrefOf(html.slice(match.index, at)) : ''
    if (slash === '' && SKIPPED_ELEMENTS.has(name)) at = endOfElement(html, name, at)
    opening.lastIndex = at
  }
  pieces.push(collapsed(html.slice(at)))
  return withoutEntities(pieces.join(''))
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
    .join('\n')
}

function collapsed(text: string): string {
  return text.replace(/[ \t\r\n\f]+/g, ' ')
}

function hrefOf(tag: string): string {
  const match = /\shref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))/i.exec(tag)
  const href = linkTarget(match?.[1] ?? match?.[2] ?? match?.[3] ?? '')
  return href.startsWith('#') ? '' : href
}

/** An unclosed construct extends to the end of the text. */
function endAfter(html: string, mark: string, from: number): number {
  const at = html.indexOf(mark, from)
  return at < 0 ? html.length : at + mark.length
}

function endOfElement(html: string, name: string, from: number): number {
  const close = new RegExp(`</${name}`, 'gi')
  close.lastIndex = from
  return close.exec(html) ? endAfter(html, '>', close.lastIndex) : html.length
}

function withoutEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|([a-z]{2,4}));/g, (entity, decimal?: string, name = '') => {
    if (decimal === undefined) return ENTITIES[String(name)] ?? entity
    const code = Number(decimal)
    return code >= 0x20 && code <= 0x10ffff ? String.fromCodePoint(code) : ' '
  })
}

/** Counts every `<`, including those in comments and attributes, as a measure of parsing time. */
export function hasMoreTags(html: string, limit: number): boolean {
  if (html.length <= limit) return false
  let count = 0
  for (let at = html.indexOf('<'); at >= 0; at = html.indexOf('<', at + 1)) if (++count > limit) return true
  return false
}
