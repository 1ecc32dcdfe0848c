/**
 * Strips tags from HTML in one pass, without building a tree.
 *
 * For HTML too large for a real parser, and for bounces. Never throws; linear in the input.
 * Standards: HTML Living Standard §13.2.5 (tokenization), simplified: a `>` inside an attribute ends the tag.
 */

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

/** @returns the text, one line per block, without empty lines; links as `text <href>` */
export function stripHtml(html: string): string {
  const source = html.replace(/[ \t\r\n\f]+/g, ' ')
  const opening = /<(\/?)([a-z][a-z0-9:-]*)|<!--|<[!?]/gi
  const pieces: string[] = []
  let href = ''
  let at = 0
  for (let match = opening.exec(source); match; match = opening.exec(source)) {
    const [found, slash, written = ''] = match
    const name = written.toLowerCase()
    pieces.push(source.slice(at, match.index))
    if (name === 'a' && href !== '') pieces.push(` <${href}>`)
    if (name !== '' && !INLINE_ELEMENTS.has(name)) pieces.push('\n')
    at = endAfter(source, found === '<!--' ? '-->' : '>', opening.lastIndex)
    if (name === 'a') href = slash === '' ? hrefOf(source.slice(match.index, at)) : ''
    if (slash === '' && SKIPPED_ELEMENTS.has(name)) at = endOfElement(source, name, at)
    opening.lastIndex = at
  }
  pieces.push(source.slice(at))
  return withoutEntities(pieces.join(''))
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
    .join('\n')
}

function hrefOf(tag: string): string {
  const match = / href ?= ?(?:"([^"]*)"|'([^']*)'|([^ >"']+))/i.exec(tag)
  const href = (match?.[1] ?? match?.[2] ?? match?.[3] ?? '').trim().replace(/^mailto:/i, '')
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
  let count = 0
  for (let at = html.indexOf('<'); at >= 0; at = html.indexOf('<', at + 1)) if (++count > limit) return true
  return false
}
