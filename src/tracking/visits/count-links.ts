/**
 * Counts the different links that clicks are counted on, in the HTML of a mail as it was written.
 *
 * Called by `visit-counter.ts` for the few mails whose links were followed in a burst. An estimate: a link in a loop counts once. Pure;
 * linear in the length of the HTML. Never throws.
 */
import { readMarkup, startOfMarkup } from '../../content/tracking/read-markup.js'

export function countLinks(html: string): number {
  const urls = new Set<string>()
  let beginsAt = 0
  readMarkup(startOfMarkup(), html, {
    hrefBegins: at => (beginsAt = at),
    hrefEnds(at) {
      const url = html.slice(beginsAt, at).trim()
      if (isTracked(url)) urls.add(url)
    },
    endTag() {},
  })
  return urls.size
}

/** Unsubscribe and preference links lead to us and are not tracked. */
function isTracked(url: string): boolean {
  if (/\{\{\s*(?:unsubscribe_url|preferences_url|view_url)\b/.test(url)) return false
  return /^https?:\/\//i.test(url) || url.startsWith('{{')
}
