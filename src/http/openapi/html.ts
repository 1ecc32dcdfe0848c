/** HTML text for the API page: escapes everything and renders backticks as code. Pure. */
import { escapeHtml } from '../../core/escape-html.js'

export function code(text: string): string {
  return `<code>${escapeHtml(text)}</code>`
}

/** Renders text between backticks as code. */
export function inline(text: string): string {
  return text
    .split('`')
    .map((part, index) => (index % 2 === 1 ? code(part) : escapeHtml(part)))
    .join('')
}

/** Blank lines separate paragraphs. */
export function prose(text: string): string {
  return text
    .split('\n\n')
    .map(paragraph => `<p>${inline(paragraph)}</p>`)
    .join('')
}
