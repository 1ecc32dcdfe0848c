/**
 * Decodes character references (`&amp;`, `&nbsp;`, `&#8203;`) as browsers do. Pure. Never throws; linear.
 *
 * Standard: HTML Living Standard §13.2.5.72.
 */
import { decodeHTML, decodeHTMLAttribute } from 'entities/decode'

export function decodeText(text: string): string {
  return text.includes('&') ? decodeHTML(text) : text
}

export function decodeAttribute(value: string): string {
  return value.includes('&') ? decodeHTMLAttribute(value) : value
}
