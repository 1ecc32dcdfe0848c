/**
 * Markup that all mail clients draw alike: table rows and cells, attributes, styles.
 *
 * Each rule exists because a client needs it: table layout with width attributes (Outlook for Windows renders with Word's engine, which
 * lacks `max-width` and `float`); `role="presentation"` for screen readers; inline styles (some Gmail apps drop `<style>`);
 * `mso-line-height-rule` for line heights in Outlook; images with `display:block` and no border.
 * Word's capabilities are documented in Microsoft's "Word 2007 HTML and CSS Rendering Capabilities in Outlook 2007"; see also
 * hteumeuleu.com/2020/outlook-rendering-engine. Pure. Never throws.
 */
import { escapeHtml } from '../merge/escape-value.js'

/** Escapes the author's text except for merge tags, which are escaped when they are filled in. */
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

/** A full-width row of the mail. */
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

/** Markup that only Outlook for Windows renders. */
export function forOutlook(markup: string): string {
  return `<!--[if mso]>${markup}<![endif]-->`
}
