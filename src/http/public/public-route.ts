/**
 * Declaration of a public page: method, path, and a handler that returns a page, a redirect, JSON or octets.
 *
 * Created by resources beside their API routes, served by `public-app.ts`. Pages need no key: what a visitor may do follows from a
 * signed token in the path, or is open to anybody. Handlers do not depend on Koa.
 */
import type { FormFields } from './form-body.js'
import type { Html } from './html.js'
import type { Language } from './languages/language.js'
import type { PageTexts } from './languages/page-texts.js'

export interface PublicRequest {
  /** Path parameters, decoded. */
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** HEAD is served like GET and must have no further effect. */
  readonly method: 'GET' | 'HEAD' | 'POST'
  readonly visitor: Visitor
  readonly language: Language
  readonly texts: PageTexts
  /** The client is a program that expects JSON. */
  readonly wantsJson: boolean
}

/** The client, as far as known. */
export interface Visitor {
  /** IP address; behind a trusted proxy the forwarded one. */
  readonly address: string
  /** At most 500 characters; may be empty. */
  readonly userAgent: string
}

export interface PublicPost extends PublicRequest {
  readonly form: FormFields
}

/** An HTML page in the common layout. */
export interface PageAnswer {
  readonly page: Page
  /** Default 200. */
  readonly status?: number
  /** Retry-After of a 429 or 503. */
  readonly retryAfterMs?: number
  readonly publicity?: Publicity
}

/** For pages that belong to nobody and may be found and kept. Absent: never cached, and not for search engines. */
export interface Publicity {
  /** How long browsers and proxies may keep it. */
  readonly cacheSeconds: number
  /** Its URL never shows anything else. */
  readonly isImmutable?: boolean
  /** Whether search engines may list it. */
  readonly isIndexable: boolean
}

export interface Page {
  /** Window title and heading. */
  readonly title: string
  readonly content: Html
  /** The workspace the page belongs to; without it the page has no name and the default colour. */
  readonly sender?: Sender
  /** Address of its feed. */
  readonly feedUrl?: string
  /** Origins its forms may redirect to after submission, besides this server, e.g. `https://shop.example`. */
  readonly formTargets?: readonly string[]
}

/** A workspace as shown to visitors. */
export interface Sender {
  readonly name: string
  readonly address: string
  /** `#rrggbb`; null for the default. */
  readonly color: string | null
}

export type PublicAnswer =
  | PageAnswer
  | { readonly redirect: string; readonly status?: 302 | 303 }
  | { readonly json: unknown; readonly status?: number; readonly retryAfterMs?: number }
  /** An image, or a complete document with its own policy. */
  | (WholeAnswer & { readonly octets: Buffer })
  | FileAnswer

export interface WholeAnswer {
  readonly mediaType: string
  readonly contentSecurityPolicy?: string
  readonly publicity?: Publicity
}

/** A file, read while it is sent. */
export interface FileAnswer extends WholeAnswer {
  readonly pieces: AsyncIterable<Uint8Array>
  /** Octets of all pieces. */
  readonly length: number
}

interface RouteHead {
  /** From the root, e.g. `/u/:token`; segments with a colon are parameters. */
  readonly path: string
  /** Whether requests count towards `http.public_rate_limit`; false where many people share an address (images). */
  readonly isLimited: boolean
  /** Allows requests from scripts of any origin, so the answer must reveal nothing private. */
  readonly isOpenToOrigins?: boolean
  /** Served by the API's listeners too, even if pages have listeners of their own: the console shows it. */
  readonly isBesideApi?: boolean
}

export type PublicRoute = RouteHead &
  (
    | { readonly method: 'GET'; handle(request: PublicRequest): Promise<PublicAnswer> }
    | {
        readonly method: 'POST'
        /** A body that is not a readable form counts as an empty form: the POST itself is enough. */
        readonly takesAnyBody?: boolean
        handle(request: PublicPost): Promise<PublicAnswer>
      }
  )
