/**
 * Splits the source of a merge template into text and tags. Knows the braces and nothing of what is between them.
 *
 * Called by `parse-template.ts`. Pure. Linear in the length of the source.
 * Fails: throws MergeError for a tag that is not closed.
 */
import { mergeErrorAt } from './merge-error.js'

export type Piece =
  | { readonly kind: 'text'; readonly text: string }
  /** `offset` is that of the first brace; `inner` is what is between the braces, trimmed. */
  | { readonly kind: 'tag'; readonly inner: string; readonly isRaw: boolean; readonly offset: number }

/** No tag that means anything is longer; one that is was meant as text and is not closed. */
const MOST_TAG_UNITS = 1_000

/** `\{{` is text: two braces. `{{! ... }}` is a comment and gives nothing. */
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
    if (close < 0 || close - from > MOST_TAG_UNITS) throw mergeErrorAt(source, open, 'this tag is not closed')
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
