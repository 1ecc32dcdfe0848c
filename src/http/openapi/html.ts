/** HTML text for the API reference: escapes everything; renders backticks as code. Pure. */
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
  if (text === '') return ''
  return text
    .split('\n\n')
    .map(paragraph => `<p>${inline(paragraph)}</p>`)
    .join('')
}

export function json(value: unknown): string {
  return JSON.stringify(value, null, 2)
}

/** JSON for a data block: `<` could end it (HTML Living Standard §4.12.1.3). */
export function dataBlock(id: string, value: unknown): string {
  const text = JSON.stringify(value).replaceAll('<', '\\u003c')
  return `<script type="application/json" id="${id}">${text}</script>`
}

/**
 * Code in one language or several; the page's script makes tabs of these, and adds a button that copies.
 *
 * @param samples by language @param call an operation of the page's data, of which the script writes samples in the other languages
 */
export function codeFigure(
  title: string,
  samples: readonly (readonly [language: string, text: string])[],
  call?: string,
): string {
  const blocks = samples.map(
    ([language, text]) =>
      `<pre tabindex="0" data-language="${escapeHtml(language)}"><code>${escapeHtml(text)}</code></pre>`,
  )
  const operation = call === undefined ? '' : ` data-call="${escapeHtml(call)}"`
  return `<figure class="code"${operation}><figcaption><span>${escapeHtml(title)}</span></figcaption>${blocks.join('')}</figure>`
}
