/**
 * A mail shown to an operator: its content as fields, and its HTML as a page that can do nothing.
 *
 * Used by the routes of stored, captured and inbound mail. The page comes from the console's own origin, so its policy sandboxes it: no
 * scripts, forms, frames, plug-ins or origin, and no remote images until requested, since loading them reveals the reader to the sender.
 * Links lead nowhere: a click would count as the recipient's. Pure.
 * Standards: CSP Level 3 (§6.3.2 `sandbox`), HTML Living Standard (`base`).
 */
import Type, { type Static } from 'typebox'
import { LINK_PATHS } from '../mail/links/links.js'
import { readMailContent, type MailContent } from '../mail/mime/mail-content.js'
import { html } from './public/html.js'
import { Reply } from './route.js'
import { TextOrNull } from './answer/answer-fields.js'

export const MailContentSchema = Type.Object(
  {
    headers: Type.Array(Type.Object({ name: Type.String(), value: Type.String() }), {
      description: 'In order, unfolded and decoded.',
    }),
    text: TextOrNull({ description: 'Null: it has no text part.' }),
    has_html: Type.Boolean(),
    attachments: Type.Array(
      Type.Object({
        filename: Type.String({ description: 'Empty if it has none.' }),
        content_type: Type.String(),
        size: Type.Integer({ description: 'Octets, approximately.' }),
        inline: Type.Boolean({ description: 'Shown within the HTML.' }),
      }),
    ),
  },
  { title: 'MailContent' },
)
export type MailContentView = Static<typeof MailContentSchema>

export const mailPageQuery = Type.Object(
  {
    images: Type.Optional(
      Type.Enum(['remote'], {
        description: '`remote` also loads images from their servers, which may notice.',
      }),
    ),
  },
  { additionalProperties: false },
)

export const MAIL_PAGE_DESCRIPTION =
  'As a page whose policy allows neither scripts, forms nor frames, for an `iframe` with `sandbox`. Without HTML, its text. ' +
  'The pixel that counts opens is left out, and links lead nowhere.'

export const MAIL_PAGE_EXAMPLE = '<base target="_blank"><h1>Your order</h1><p>Thank you.</p>'

/** @param source a whole message */
export function mailContent(source: Buffer): MailContentView {
  const { headers, text, html: written, attachments } = readMailContent(source)
  return {
    headers: headers.map(({ name, value }) => ({ name, value })),
    text: text ?? null,
    has_html: written !== undefined,
    attachments: attachments.map(({ fileName, mediaType, size, isInline }) => ({
      filename: fileName,
      content_type: mediaType,
      size,
      inline: isInline,
    })),
  }
}

/** @param source a whole message */
export function mailPage(source: Buffer, query: Static<typeof mailPageQuery>): Reply<string> {
  const images = query.images === 'remote' ? 'data: https: http:' : 'data:'
  return new Reply(200, documentOf(readMailContent(source)), {
    'Content-Security-Policy':
      `sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src ${images}; ` +
      "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    'Referrer-Policy': 'no-referrer',
  })
}

/** An image from this server that counts opens. */
const PIXEL = new RegExp(`https?://[^"'\\s<>]{1,255}${LINK_PATHS.open}[\\w.-]{20,400}\\.gif`, 'g')

function documentOf({ html: written, text = '' }: MailContent): string {
  if (written === undefined)
    return `<!doctype html>\n${html`<pre style="white-space:pre-wrap;overflow-wrap:anywhere">${text}</pre>`.toString()}`
  // New windows are not allowed in the sandbox. A document type stays first, since without it lengths are computed otherwise.
  return written
    .replace(PIXEL, 'data:,')
    .replace(/^\s{0,1000}(?:<!doctype[^>]{0,1000}>)?/i, start => `${start}<base target="_blank">`)
}
