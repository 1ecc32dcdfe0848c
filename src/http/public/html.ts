/**
 * HTML that is escaped by the way it is written: what stands in a template is markup, what is put into it is text.
 *
 * Called by everything that shows a page to a person. Only what `html` itself has made goes in as markup; there is no other way to
 * make one. Attribute values have to stand between double quotes, and addresses of links have to be checked by whoever has
 * them: a scheme is no matter of escaping. Pure. Standard: HTML Living Standard §13.1.2 (text and attribute values).
 * Fails: never throws.
 */

/** A piece of markup. */
export class Html {
  private readonly markup: string

  /** For `html` alone. */
  private constructor(markup: string) {
    this.markup = markup
  }

  static of(literals: readonly string[], values: readonly Fragment[]): Html {
    return new Html(literals.map((literal, at) => literal + written(values[at])).join(''))
  }

  toString(): string {
    return this.markup
  }
}

/** What may be put into a template; of what is absent or untrue nothing is written. */
export type Fragment = Html | string | number | false | null | undefined | readonly Fragment[]

export function html(literals: TemplateStringsArray, ...values: readonly Fragment[]): Html {
  return Html.of(literals, values)
}

function written(value: Fragment): string {
  if (value === undefined || value === null || value === false) return ''
  if (value instanceof Html) return value.toString()
  if (typeof value === 'string') return escapeText(value)
  if (typeof value === 'number') return String(value)
  return value.map(written).join('')
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, character => ENTITIES[character] ?? '')
}
