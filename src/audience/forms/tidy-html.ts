/**
 * Lays out the HTML of a form for people who paste it into their page: one element per line, indented by what contains it.
 *
 * For our own templates only, whose attribute values are in double quotes and whose texts are escaped. Pure.
 */

/** Their content is on lines of its own. */
const BLOCKS = new Set(['form', 'div', 'select'])
const WITHOUT_END = new Set(['input', 'br'])
const TOKEN = /<[^"<>]*(?:"[^"<>]*"[^"<>]*)*>|[^<]+/g

export function tidyHtml(html: string): string {
  const lines: string[] = []
  let depth = 0
  let line = ''
  /** Elements of the line that are not closed yet. */
  let open = 0
  const endLine = () => {
    if (line.trim() !== '') lines.push('  '.repeat(depth) + line.trim())
    line = ''
  }
  for (const [token] of html.matchAll(TOKEN)) {
    const [, closing, name = ''] = /^<(\/?)([a-z][a-z0-9]*)/.exec(token) ?? []
    if (name === '') line += token.replace(/\s+/g, ' ')
    else if (BLOCKS.has(name)) {
      endLine()
      if (closing) depth -= 1
      line = tidyTag(token)
      endLine()
      if (!closing) depth += 1
    } else {
      if (open === 0) endLine()
      line += tidyTag(token)
      if (!WITHOUT_END.has(name)) open += closing ? -1 : 1
      if (open === 0) endLine()
    }
  }
  endLine()
  return `${lines.join('\n')}\n`
}

function tidyTag(tag: string): string {
  const spaced = tag.replace(/"[^"]*"|\s+/g, part => (part.startsWith('"') ? part : ' '))
  return spaced.replace(/ ?\/?>$/, '>')
}
