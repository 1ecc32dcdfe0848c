/**
 * The links of a mail that point back to this server, and the URL paths they use.
 *
 * `linksOf` is called when mail is rendered; the routes use `LINK_PATHS` and the readers here. Links are created when
 * first read, and are the same whenever the message is rendered again. Reading
 * never throws; creating a link throws if an id is not a UUID.
 */
import type { Subscriber } from '../unsubscribe-token.js'
import type { LinkKeys } from './link-keys.js'
import { MessageTokens, readMessageToken } from './token.js'
import { makeConfirmationToken, makeSubscriberToken, type Confirmation } from './subscriber-link.js'

/** Path prefixes before the token; short, since links make mail longer. */
export const LINK_PATHS = {
  /** Tracking pixel: `/o/<token>.gif`. */
  open: '/o/',
  click: '/c/',
  unsubscribe: '/u/',
  preferences: '/p/',
  view: '/v/',
  confirm: '/s/',
} as const

/** Some mail clients only load images whose name looks like one. */
const PIXEL_SUFFIX = '.gif'

/** The longest link is a click link: 2,048 octets of URL in base64, plus signatures. */
export const MAX_LINK_PATH = 3_000

export type LinkedMessage = Subscriber

export interface Links {
  /** GET shows a page, POST unsubscribes (RFC 8058). Never expires. */
  readonly unsubscribeUrl: string
  readonly preferencesUrl: string
  /** The mail as a web page; works while the mail is stored. */
  readonly viewUrl: string
  readonly pixelUrl: string
  /** Prefix of click links; append a link part of the message's workspace. */
  readonly clickUrl: string
}

/** @param publicUrl without a trailing slash */
export function linksOf(keys: LinkKeys, publicUrl: string, message: LinkedMessage): Links {
  return new MessageLinks(keys, publicUrl, message)
}

class MessageLinks implements Links {
  private readonly keys: LinkKeys
  private readonly publicUrl: string
  private readonly message: LinkedMessage
  private readonly made = new Map<keyof typeof LINK_PATHS, string>()
  private tokens: MessageTokens | undefined

  constructor(keys: LinkKeys, publicUrl: string, message: LinkedMessage) {
    this.keys = keys
    this.publicUrl = publicUrl
    this.message = message
  }

  get unsubscribeUrl(): string {
    return this.memoize('unsubscribe', () => makeSubscriberToken(this.keys, 'unsubscribe', this.message))
  }

  get preferencesUrl(): string {
    return this.memoize('preferences', () => makeSubscriberToken(this.keys, 'preferences', this.message))
  }

  get viewUrl(): string {
    return this.memoize('view', () => this.messageTokens().token('view'))
  }

  get pixelUrl(): string {
    return this.memoize('open', () => this.messageTokens().token('open') + PIXEL_SUFFIX)
  }

  get clickUrl(): string {
    return this.memoize('click', () => `${this.messageTokens().token('click')}.`)
  }

  private messageTokens(): MessageTokens {
    const { workspaceId, messageId } = this.message
    return (this.tokens ??= new MessageTokens(this.keys, workspaceId, messageId))
  }

  private memoize(path: keyof typeof LINK_PATHS, make: () => string): string {
    const known = this.made.get(path)
    if (known !== undefined) return known
    const url = this.publicUrl + LINK_PATHS[path] + make()
    this.made.set(path, url)
    return url
  }
}

/** @param publicUrl without a trailing slash */
export function confirmationUrl(keys: LinkKeys, publicUrl: string, confirmation: Confirmation): string {
  return publicUrl + LINK_PATHS.confirm + makeConfirmationToken(keys, confirmation)
}

/** @param text after the path, with or without `.gif` @returns the message id; undefined if the token is not ours */
export function readOpen(keys: LinkKeys, text: string): string | undefined {
  const token = text.endsWith(PIXEL_SUFFIX) ? text.slice(0, -PIXEL_SUFFIX.length) : text
  return readMessageToken(keys, 'open', token)?.messageId
}

/** @returns the message id; undefined if the token is not ours */
export function readView(keys: LinkKeys, text: string): string | undefined {
  return readMessageToken(keys, 'view', text)?.messageId
}
