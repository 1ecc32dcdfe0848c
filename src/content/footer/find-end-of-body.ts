/**
 * Finds where to insert content at the end of an HTML mail: before its last real `</body>`.
 *
 * Used for the compliance footer. End tags in comments (including Outlook's conditional ones), scripts, styles and attribute values
 * do not count. In truncated HTML the position is before the unclosed comment, tag or style, which would hide the footer; other
 * elements that would hide it are reported for closing. Pure.
 * Standard: HTML Living Standard §13.2.6.4.7 (end tags that close what is open within their element).
 * Never throws; linear in the length of the text.
 */
import { readMarkup, startOfMarkup } from '../tracking/read-markup.js'

/** Elements that hide their content; their end tag also closes everything opened inside. */
const HIDING: ReadonlySet<string> = new Set(['select', 'template', 'object', 'button', 'details', 'dialog'])
/** Nesting limit; real mail stays far below it. */
const MAX_OPEN = 100

export interface EndOfBody {
  /** Index in the html: the last `</body>`, else the last `</html>`, else the end of the visible part. */
  readonly at: number
  /** Open elements that would hide content at this position, innermost first. */
  readonly hiding: readonly string[]
}

export function findEndOfBody(html: string): EndOfBody {
  const place = startOfMarkup()
  const ends: { body?: EndOfBody; html?: EndOfBody } = {}
  const open: string[] = []
  let lastMarkup = 0
  const endAt = (at: number): EndOfBody => ({ at, hiding: open.toReversed() })
  readMarkup(place, html, {
    markupBegins(at) {
      lastMarkup = at
    },
    startTag(name) {
      if (HIDING.has(name) && open.length < MAX_OPEN) open.push(name)
    },
    endTag(name, at) {
      if (name === 'body' || name === 'html') ends[name] = endAt(at)
      else if (HIDING.has(name) && open.includes(name)) open.length = open.lastIndexOf(name)
    },
    hrefBegins() {},
    hrefEnds() {},
  })
  return ends.body ?? ends.html ?? endAt(place.mode === 'text' ? html.length : lastMarkup)
}

/** @returns the index after the first `<body>` tag, or 0 without one */
export function findStartOfBody(html: string): number {
  let start = 0
  readMarkup(startOfMarkup(), html, {
    startTag(name, end) {
      if (name === 'body' && start === 0) start = end
    },
    endTag() {},
    hrefBegins() {},
    hrefEnds() {},
  })
  return start
}
