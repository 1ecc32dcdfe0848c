/**
 * Finds where something can be added at the end of an HTML mail: before the last `</body>` that is one.
 *
 * Called by whatever adds to mail: footer, tracking pixel. What stands in comments (the conditional ones of Outlook among them), in
 * scripts and styles, or in an attribute's value is no end tag. Pure.
 * Standards: HTML Living Standard §13.2.5 (tokenization), simplified.
 * Fails: never throws; linear in the length of the text.
 */

/** Elements whose content is text until their own end tag. */
const RAW_TEXT_ELEMENTS: ReadonlySet<string> = new Set(['script', 'style', 'textarea', 'title', 'xmp'])

/** @returns an index of `html`; where there is no `</body>`, that of the last `</html>`, else the length */
export function findEndOfBody(html: string): number {
  let body: number | undefined
  let document: number | undefined
  const marks = /<!--|<(\/?)([a-z][a-z0-9:-]*)/gi
  for (let match = marks.exec(html); match; match = marks.exec(html)) {
    const [found, slash, written = ''] = match
    if (found === '<!--') {
      marks.lastIndex = endOf(html, '-->', match.index + found.length)
      continue
    }
    const name = written.toLowerCase()
    const end = endOfTag(html, marks.lastIndex)
    if (slash === '/' && name === 'body') body = match.index
    if (slash === '/' && name === 'html') document = match.index
    marks.lastIndex = slash === '' && RAW_TEXT_ELEMENTS.has(name) ? endOfRawText(html, name, end) : end
  }
  return body ?? document ?? html.length
}

function endOf(html: string, mark: string, from: number): number {
  const at = html.indexOf(mark, from)
  return at < 0 ? html.length : at + mark.length
}

/** Behind the `>` that is in no quoted value. A quote that is never closed holds nothing: such a tag ends at its first `>`. */
function endOfTag(html: string, from: number): number {
  const quotesOrEnd = /["'>]/g
  quotesOrEnd.lastIndex = from
  for (let match = quotesOrEnd.exec(html); match; match = quotesOrEnd.exec(html)) {
    const [character] = match
    if (character === '>') return quotesOrEnd.lastIndex
    // Only behind a `=` does a quote open a value.
    if (!/=\s*$/.test(html.slice(Math.max(from, match.index - 10), match.index))) continue
    const close = html.indexOf(character, quotesOrEnd.lastIndex)
    if (close < 0) return endOf(html, '>', from)
    quotesOrEnd.lastIndex = close + 1
  }
  return html.length
}

function endOfRawText(html: string, name: string, from: number): number {
  const end = new RegExp(`</${name}(?=[\\s/>])`, 'gi')
  end.lastIndex = from
  return end.exec(html)?.index ?? html.length
}
