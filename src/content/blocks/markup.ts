/**
 * Pieces of markup that every mail client draws alike: rows and cells of tables, attributes, styles.
 *
 * Rules that are followed, each because a client needs it: layout by tables with widths as attributes (Outlook for Windows draws with
 * Word's engine, which knows no `max-width` and no `float`); `role="presentation"` for screen readers; styles inline (Gmail drops
 * `<style>` in some of its apps); `mso-line-height-rule` for line heights in Outlook; images with `display:block` and a border of 0.
 * What Word's engine draws is Microsoft's "Word 2007 HTML and CSS Rendering Capabilities in Outlook 2007", as
 * hteumeuleu.com/2020/outlook-rendering-engine reads it. Pure. Fails: never throws.
 */
import { escapeHtml } from '../merge/escape-value.js'

/** Text or an attribute's value of the author: escaped but for its merge tags, which are filled in later, escaped by their place. */
export function authored(text: string): string {
  return text
    .split(/(\{\{\{?[^{}]*\}?\}\})/)
    .map((piece, index) => (index % 2 === 1 ? piece : escapeHtml(piece)))
    .join('')
}

export function style(rules: Readonly<Record<string, string | number | undefined>>): string {
  const written = Object.entries(rules).flatMap(([name, value]) =>
    value === undefined || value === ''
      ? []
      : [`${name}:${typeof value === 'number' ? `${value}px` : value}`],
  )
  return ` style="${written.join(';').replaceAll('"', "'")}"`
}

/** A row of the mail's one column. */
export function row(
  inner: string,
  align: string,
  rules: Readonly<Record<string, string | number | undefined>> = {},
): string {
  return `<tr><td align="${align}"${style({ padding: '8px 24px', ...rules })}>${inner}</td></tr>\n`
}

export function table(inner: string, attributes = ' width="100%"'): string {
  return `<table role="presentation"${attributes} cellpadding="0" cellspacing="0" border="0">${inner}</table>`
}

/** What Outlook for Windows alone reads. */
export function forOutlook(markup: string): string {
  return `<!--[if mso]>${markup}<![endif]-->`
}
