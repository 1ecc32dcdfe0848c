/**
 * HTML templates that escape by construction: template literals are markup, interpolated values are text.
 *
 * Only values made by `html` itself are inserted as markup. Attribute values must be in double quotes, and callers must check the scheme
 * of links, which escaping does not cover. Pure. Standard: HTML Living Standard §13.1.2 (text and attribute values).
 * Fails: never throws.
 */
import { escapeHtml } from '../../core/escape-html.js'

/** A piece of markup. */
export class Html {
  private readonly markup: string

  /** Used by `html` only. */
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

/** Values allowed in a template; null, undefined and false render as nothing. */
export type Fragment = Html | string | number | false | null | undefined | readonly Fragment[]

export function html(literals: TemplateStringsArray, ...values: readonly Fragment[]): Html {
  return Html.of(literals, values)
}

function written(value: Fragment): string {
  if (value === undefined || value === null || value === false) return ''
  if (value instanceof Html) return value.toString()
  if (typeof value === 'string') return escapeHtml(value)
  if (typeof value === 'number') return String(value)
  return value.map(written).join('')
}
