/**
 * How a public page is declared: method, path, and a handler that answers with a page, a redirect or octets.
 *
 * Resources make these beside their API routes; `public-app.ts` serves them. They need no key: what a visitor may do follows from a
 * signed token in the path, or from what anybody may do. Handlers know no Koa. Holds no logic.
 */
import type { FormFields } from './form-body.js'
import type { Html } from './html.js'
import type { Language } from './languages/language.js'
import type { PageTexts } from './languages/page-texts.js'

export interface PublicRequest {
  /** Of the path's parameters, decoded. */
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** HEAD is served as GET is, and must do no more than that. */
  readonly method: 'GET' | 'HEAD' | 'POST'
  readonly visitor: Visitor
  readonly language: Language
  readonly texts: PageTexts
  /** A program asked, which wants JSON for an answer. */
  readonly wantsJson: boolean
}

/** Who asks, as far as that can be known. */
export interface Visitor {
  /** IP address; behind a trusted proxy the one that it names. */
  readonly address: string
  /** At most 500 characters, or empty. */
  readonly userAgent: string
}

export interface PublicPost extends PublicRequest {
  readonly form: FormFields
}

/** A page for a person, in the frame of all pages. */
export interface PageAnswer {
  readonly page: Page
  /** Default 200. */
  readonly status?: number
  /** After how long to come again, for 429 and 503. */
  readonly retryAfterMs?: number
}

export interface Page {
  /** Of the window, and the heading. */
  readonly title: string
  readonly content: Html
  /** Whose page it is; a page that is nobody's has no name and the usual colour. */
  readonly sender?: Sender
  /** Origins that its forms lead to after they were sent, besides our own, e.g. `https://shop.example`. */
  readonly formTargets?: readonly string[]
}

/** A workspace as its visitors see it. */
export interface Sender {
  readonly name: string
  readonly address: string
  /** `#rrggbb`; null for the usual one. */
  readonly color: string | null
}

export type PublicAnswer =
  | PageAnswer
  | { readonly redirect: string; readonly status?: 302 | 303 }
  | { readonly json: unknown; readonly status?: number; readonly retryAfterMs?: number }
  /** A picture, or a document of its own with a policy of its own. */
  | {
      readonly octets: Buffer
      readonly mediaType: string
      readonly contentSecurityPolicy?: string
    }

interface RouteHead {
  /** From the root, e.g. `/u/:token`; a segment with a colon is a parameter. */
  readonly path: string
  /** Whether requests count against `http.public_rate_limit` of their address: not where many people ask through one (pictures). */
  readonly isLimited: boolean
  /** Pages of other sites may send it a request and read the answer, which then must tell nobody anything. */
  readonly isOpenToOrigins?: boolean
}

export type PublicRoute = RouteHead &
  (
    | { readonly method: 'GET'; handle(request: PublicRequest): Promise<PublicAnswer> }
    | {
        readonly method: 'POST'
        /** Also what is no form that can be read, as one without fields: that somebody POSTs says enough. */
        readonly takesAnyBody?: boolean
        handle(request: PublicPost): Promise<PublicAnswer>
      }
  )
