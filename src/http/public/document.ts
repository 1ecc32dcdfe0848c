/**
 * The HTML document around the content of every public page, and its content security policy.
 *
 * Called by `public-app.ts`. Uses no scripts, cookies or external resources. The style sheet is allowed by its digest; forms may lead to
 * this server and to targets named by the page. Pure.
 * Standards: HTML Living Standard, CSP Level 3 (§6.1 fetch directives, §6.4.2 `frame-ancestors`), WCAG 2.2 (landmarks, language).
 * Fails: never throws.
 */
import { createHash } from 'node:crypto'
import { html, type Html } from './html.js'
import type { Notice, PageTexts } from './languages/page-texts.js'
import type { Page, Sender } from './public-route.js'
import { brandStyle, STYLE } from './style.js'

export interface Document {
  readonly text: string
  readonly contentSecurityPolicy: string
}

/** Policy of redirects and JSON: nothing may be loaded, sent or framed. */
export const NOTHING_ALLOWED =
  "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const STYLE_DIGEST = digestOf(STYLE)

export function documentOf(page: Page, language: string, texts: PageTexts, isIndexable = false): Document {
  const { title, content, sender, feedUrl, formTargets = [] } = page
  const brand = brandStyle(sender?.color ?? null)
  const styles = brand === '' ? [STYLE] : [STYLE, brand]
  const digests = brand === '' ? [STYLE_DIGEST] : [STYLE_DIGEST, digestOf(brand)]
  const head = html`<meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    ${!isIndexable && html`<meta name="robots" content="noindex, nofollow" />`}
    ${feedUrl !== undefined && html`<link rel="alternate" type="application/rss+xml" href="${feedUrl}" />`}
    <title>${sender ? `${title} · ${sender.name}` : title}</title>`
  return {
    // Style sheets bypass `html`, because quotes must not be escaped in them.
    text:
      `<!doctype html>\n<html lang="${language}"><head>${head.toString()}` +
      `${styles.map(style => `<style>${style}</style>`).join('')}</head>\n` +
      `${bodyOf(title, content, sender, texts).toString()}</html>\n`,
    contentSecurityPolicy:
      `default-src 'none'; style-src ${digests.map(one => `'${one}'`).join(' ')}; ` +
      `form-action ${["'self'", ...formTargets.filter(isSource)].join(' ')}; frame-ancestors 'none'; base-uri 'none'`,
  }
}

/** CSP Level 3 §2.3.1, host-source. Hosts of URLs may contain `;` and `,`, which would end the directive or the policy. */
function isSource(origin: string): boolean {
  return /^https?:\/\/[a-z0-9._-]+(:\d{1,5})?$/.test(origin)
}

function bodyOf(title: string, content: Html, sender: Sender | undefined, texts: PageTexts): Html {
  return html`<body>
    ${sender && html`<header><p dir="auto">${sender.name}</p></header>`}
    <main>
      <h1>${title}</h1>
      ${content}
    </main>
    ${
      sender &&
      html`<footer>
        <p>${texts.sentBy(sender.name)}</p>
        <p dir="auto">${sender.address}</p>
      </footer>`
    }
  </body>`
}

/** A page with a single message. */
export function noticePage({ title, text }: Notice, sender?: Sender, more?: Html): Page {
  const content = html`<p>${text}</p>
    ${more}`
  return sender ? { title, content, sender } : { title, content }
}

function digestOf(style: string): string {
  return `sha256-${createHash('sha256').update(style).digest('base64')}`
}
