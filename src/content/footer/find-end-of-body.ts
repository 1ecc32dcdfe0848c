/**
 * Finds where something can be added at the end of an HTML mail: before the last `</body>` that is one.
 *
 * Called for the compliance footer. What stands in comments (the conditional ones of Outlook among them), in scripts and styles, or in
 * an attribute's value is no end tag. In HTML that is cut off, what is added comes before the comment, tag or style that is never
 * closed, for nobody would see it in there; what else would hide it is closed in front of it. Pure.
 * Standard: HTML Living Standard §13.2.6.4.7 (end tags that close what is open within their element).
 * Fails: never throws; linear in the length of the text.
 */
import { readMarkup, startOfMarkup } from '../tracking/read-markup.js'

/** Elements whose content is not shown, or as something else: an end tag of theirs closes all that was opened in them. */
const HIDING: ReadonlySet<string> = new Set(['select', 'template', 'object', 'button', 'details', 'dialog'])
/** Deeper ones are nobody's mail. */
const MOST_OPEN = 100

export interface EndOfBody {
  /** An index of the html; where there is no `</body>`, that of the last `</html>`, else the end of what can be seen. */
  readonly at: number
  /** Elements that would hide what stands there, the innermost first. */
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
      if (HIDING.has(name) && open.length < MOST_OPEN) open.push(name)
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

/** @returns an index of the html: behind the first `<body>`, or 0 where there is none */
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
