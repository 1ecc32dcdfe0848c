/** Merge tags in text: `{{name}}`, `{{name|fallback}}`, `{{name|fallback|format}}`. Pure. */

/** A tag that stands for a value; not `{{#if ...}}`, `{{else}}` and the like, nor `{{{key}}}`, nor `\{{`, which is text. */
const TAG = /(?<![\\{])\{\{\s*(?!else\s*\}\})[^\s#/{}!][^{}]*\}\}/g

/** The text in pieces: every second one is a tag. */
export function piecesOf(text: string): string[] {
  const pieces: string[] = []
  let at = 0
  for (const { 0: tag, index } of text.matchAll(TAG)) {
    pieces.push(text.slice(at, index), tag)
    at = index + tag.length
  }
  return [...pieces, text.slice(at)]
}

/** @param fallback used where a contact has no value; braces and bars would end it */
export function tagFor(name: string, fallback: string): string {
  const usable = fallback.replace(/[{}|]/g, '').trim()
  return usable === '' ? `{{${name}}}` : `{{${name}|${usable}}}`
}

/** What a tag is shown as, e.g. `first_name` for `{{first_name|there}}`. */
export function nameIn(tag: string): string {
  return tag.slice(2, -2).split('|', 1)[0]?.trim() ?? ''
}
