/**
 * A link's address as it is shown in plain text. Pure. Never throws.
 *
 * Standard: URL Standard §4.4 (characters removed before parsing).
 */

const ENCODED: Readonly<Record<string, string>> = { ' ': '%20', '<': '%3C', '>': '%3E' }

/**
 * The address as a browser reads it: without blanks around it, and without tabs and line ends, which mail programs insert; spaces, and
 * brackets, which would end it in text, are percent-encoded. Of a mailto link, the mail address alone.
 */
export function linkTarget(href: string): string {
  const url = href.trim().replace(/[\t\r\n]+/g, '')
  const target = /^mailto:/i.test(url) ? (url.slice('mailto:'.length).split('?', 1)[0] ?? '') : url
  return target.replace(/[ <>]/g, character => ENCODED[character] ?? '')
}
