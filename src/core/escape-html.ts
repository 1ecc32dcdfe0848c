/** Escapes text for HTML, in content and in quoted attribute values (HTML Living Standard §13.1.2). Pure. */

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export function escapeHtml(text: string): string {
  return /[&<>"']/.test(text) ? text.replace(/[&<>"']/g, character => ENTITIES[character] ?? '') : text
}
