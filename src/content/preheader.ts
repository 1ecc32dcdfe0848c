/**
 * The preheader of a mail: text that mail clients show beside the subject in their lists, and nobody sees in the mail itself.
 *
 * Clients show the first text of the HTML there, so it stands hidden at the start of the body, followed by invisible characters that keep
 * what comes next out of the preview. Pure. Linear in the length of the HTML.
 */
import { TAG } from '../mail/html/names.js'
import { MarkupPlace, readMarkup } from '../mail/html/read-markup.js'

/** `mso-hide` is for Outlook, which ignores `display` of some elements. */
const HIDDEN = 'display:none;max-height:0;max-width:0;overflow:hidden;opacity:0;mso-hide:all'
/** Previews show up to about 150 characters. A combining grapheme joiner with a space that has width and no ink. */
const FILLER = '&#847;&zwnj;&nbsp;'.repeat(75)

/** @param preheader may have merge tags; otherwise text, not HTML */
export function withPreheader(html: string, preheader: string): string {
  const at = startOfBody(html)
  const text = preheader.replace(/[&<>]/g, sign => (sign === '&' ? '&amp;' : sign === '<' ? '&lt;' : '&gt;'))
  return `${html.slice(0, at)}<div style="${HIDDEN}">${text}${FILLER}</div>${html.slice(at)}`
}

/** After the start tag of the first `body`; 0 if there is none. */
function startOfBody(html: string): number {
  let found = 0
  readMarkup(new MarkupPlace(), html, {
    startTag(place, end) {
      if (found === 0 && place.tag === TAG.body) found = end
    },
  })
  return found
}
