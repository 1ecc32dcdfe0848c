/** HTML text for the API page: escapes everything and renders backticks as code. Pure. */

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export function escape(text: string): string {
  return text.replace(/[&<>"']/g, character => ENTITIES[character] ?? '')
}

export function code(text: string): string {
  return `<code>${escape(text)}</code>`
}

/** Renders text between backticks as code. */
export function inline(text: string): string {
  return text
    .split('`')
    .map((part, index) => (index % 2 === 1 ? code(part) : escape(part)))
    .join('')
}

/** Blank lines separate paragraphs. */
export function prose(text: string): string {
  return text
    .split('\n\n')
    .map(paragraph => `<p>${inline(paragraph)}</p>`)
    .join('')
}
