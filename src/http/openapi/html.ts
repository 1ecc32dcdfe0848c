/** Text as HTML for the page of the API's description: everything escaped, backticks become code. Pure. */

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

/** Between backticks stands code. */
export function inline(text: string): string {
  return text
    .split('`')
    .map((part, index) => (index % 2 === 1 ? code(part) : escape(part)))
    .join('')
}

/** Paragraphs stand apart by an empty line. */
export function prose(text: string): string {
  return text
    .split('\n\n')
    .map(paragraph => `<p>${inline(paragraph)}</p>`)
    .join('')
}
