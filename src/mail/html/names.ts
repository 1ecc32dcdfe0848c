/**
 * Numbers for the names of HTML elements and of the attributes that matter in mail, so that reading a tag allocates nothing. Pure.
 *
 * Names are found without regard to the case of ASCII letters; 0 is any other name.
 */

const TAG_NAMES = [
  ...['a', 'abbr', 'address', 'annotation-xml', 'area', 'article', 'aside', 'audio', 'b', 'base', 'basefont'],
  ...[
    'bdi',
    'bdo',
    'big',
    'blockquote',
    'body',
    'br',
    'button',
    'canvas',
    'caption',
    'center',
    'cite',
    'code',
  ],
  ...[
    'col',
    'colgroup',
    'command',
    'data',
    'datalist',
    'dd',
    'del',
    'details',
    'dfn',
    'dialog',
    'dir',
    'div',
  ],
  ...['dl', 'dt', 'em', 'embed', 'fieldset', 'figcaption', 'figure', 'font', 'footer', 'form', 'frame'],
  ...['frameset', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'head', 'header', 'hr', 'html', 'i', 'iframe', 'img'],
  ...['input', 'ins', 'kbd', 'keygen', 'label', 'legend', 'li', 'link', 'listing', 'main', 'map', 'mark'],
  ...['math', 'menu', 'meta', 'meter', 'nav', 'nobr', 'noembed', 'noframes', 'noscript', 'object', 'ol'],
  ...[
    'optgroup',
    'option',
    'output',
    'p',
    'param',
    'picture',
    'plaintext',
    'pre',
    'progress',
    'q',
    'rp',
    'rt',
  ],
  ...['ruby', 's', 'samp', 'script', 'section', 'select', 'small', 'source', 'span', 'strike', 'strong'],
  ...['style', 'sub', 'summary', 'sup', 'svg', 'table', 'tbody', 'td', 'template', 'textarea', 'tfoot', 'th'],
  ...['thead', 'time', 'title', 'tr', 'track', 'tt', 'u', 'ul', 'var', 'video', 'wbr', 'xmp'],
  // Outlook's drawings, which may be links.
  ...['v:group', 'v:image', 'v:line', 'v:oval', 'v:rect', 'v:roundrect', 'v:shape'],
] as const
const ATTRIBUTE_NAMES = ['alt', 'class', 'height', 'hidden', 'href', 'id', 'style', 'width'] as const

export type TagName = (typeof TAG_NAMES)[number]
/** Unknown names have 0. */
export type NameId = number

export const TAG = idsOf(TAG_NAMES)
export const ATTRIBUTE = idsOf(ATTRIBUTE_NAMES)
/** Numbers of tags are below. */
export const TAG_COUNT = TAG_NAMES.length + 1
export const ATTRIBUTE_COUNT = ATTRIBUTE_NAMES.length + 1

function idsOf<N extends string>(names: readonly N[]): Readonly<Record<N, NameId>> {
  return Object.fromEntries(names.map((name, index) => [name, index + 1])) as Record<N, NameId>
}

/** Finds a name in text. @returns 0 if it is not one of the table's */
export type FindName = (text: string, from: number, to: number) => NameId

export const findTag = finderOf(TAG_NAMES)
export const findAttribute = finderOf(ATTRIBUTE_NAMES)

/** Open addressing, and a quarter full at most. */
function finderOf(names: readonly string[]): FindName {
  const size = 2 ** Math.ceil(Math.log2(4 * names.length))
  const slots = new Uint8Array(size)
  const longest = Math.max(...names.map(name => name.length))
  const slotOf = (text: string, from: number, to: number) => {
    let hash = to - from
    for (let at = from; at < to; at++) hash = Math.imul(hash, 31) + lowerCode(text.charCodeAt(at))
    return (hash ^ (hash >>> 8)) & (size - 1)
  }
  for (const [index, name] of names.entries()) {
    let slot = slotOf(name, 0, name.length)
    while (slots[slot] !== 0) slot = (slot + 1) & (size - 1)
    slots[slot] = index + 1
  }
  return (text, from, to) => {
    if (to - from > longest) return 0
    let slot = slotOf(text, from, to)
    for (;;) {
      const id = slots[slot] as number
      if (id === 0 || isName(text, from, to, names[id - 1] as string)) return id
      slot = (slot + 1) & (size - 1)
    }
  }
}

function isName(text: string, from: number, to: number, name: string): boolean {
  return to - from === name.length && startsWithName(text, from, name)
}

/** @param name lower case */
export function startsWithName(text: string, from: number, name: string): boolean {
  for (let at = 0; at < name.length; at++)
    if (lowerCode(text.charCodeAt(from + at)) !== name.charCodeAt(at)) return false
  return true
}

function lowerCode(code: number): number {
  return code >= 0x41 && code <= 0x5a ? code | 0x20 : code
}

/** @param id not 0 */
export function tagName(id: NameId): string {
  return TAG_NAMES[id - 1] ?? ''
}

/** A set of tags, looked up by number. */
export function tagsOf(...names: readonly TagName[]): { has(id: NameId): boolean } {
  const isMember = new Uint8Array(TAG_COUNT)
  for (const name of names) isMember[TAG[name]] = 1
  return { has: id => isMember[id] === 1 }
}
