/**
 * Splits a merge template into text and tags. Recognizes braces only, not their content.
 *
 * Called by `parse-template.ts`. Pure. Linear in the length of the source. Throws MergeError for an unclosed tag.
 */
import { mergeErrorAt } from './merge-error.js'

export type Piece =
  | { readonly kind: 'text'; readonly text: string }
  /** `offset` of the first brace; `inner` is the trimmed text between the braces. */
  | { readonly kind: 'tag'; readonly inner: string; readonly isRaw: boolean; readonly offset: number }

/** Length limit of a tag; a longer one is text that was never closed. */
const MAX_TAG_UNITS = 1_000

/** `\{{` is a literal `{{`. `{{! ... }}` is a comment. */
export function splitTags(source: string): Piece[] {
  const pieces: Piece[] = []
  let text = ''
  let at = 0
  for (;;) {
    const open = source.indexOf('{{', at)
    if (open < 0) break
    if (source[open - 1] === '\\' && open > at) {
      text += `${source.slice(at, open - 1)}{{`
      at = open + 2
      continue
    }
    const isRaw = source[open + 2] === '{'
    const end = isRaw ? '}}}' : '}}'
    const from = open + end.length
    const close = source.indexOf(end, from)
    if (close < 0 || close - from > MAX_TAG_UNITS) throw mergeErrorAt(source, open, 'this tag is not closed')
    const inner = source.slice(from, close).trim()
    if (inner.includes('{{'))
      throw mergeErrorAt(source, open, 'this tag is not closed before the next one begins')
    text += source.slice(at, open)
    at = close + end.length
    if (inner.startsWith('!')) continue
    if (text !== '') pieces.push({ kind: 'text', text })
    text = ''
    pieces.push({ kind: 'tag', inner, isRaw, offset: open })
  }
  text += source.slice(at)
  if (text !== '') pieces.push({ kind: 'text', text })
  return pieces
}
