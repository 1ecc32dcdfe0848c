/**
 * The links back that a mail carries, and where they lead: one path for each of them below the public URL.
 *
 * `linksOf` is called by whatever renders mail; the routes that answer take `LINK_PATHS` and the readers here. Links are made when
 * they are first asked for, with two HMACs at most for a message, and are the same whenever it is rendered again. Pure.
 * Fails: reading never throws; a link for what is no UUID throws a plain Error when it is asked for.
 */
import type { Subscriber } from '../unsubscribe-token.js'
import type { LinkKeys } from './link-keys.js'
import { MessageTokens, readMessageToken } from './message-token.js'
import { makeConfirmationToken, SubscriberTokens, type Confirmation } from './subscriber-link.js'

/** What stands before the token; one letter each, since links make mail longer. */
export const LINK_PATHS = {
  /** A picture of one pixel: `/o/<token>.gif`. */
  open: '/o/',
  click: '/c/',
  unsubscribe: '/u/',
  preferences: '/p/',
  view: '/v/',
  confirm: '/s/',
} as const

/** Some show a picture only where its name looks like one. */
const PIXEL_SUFFIX = '.gif'

/** Longer paths are none of ours: the longest is a click link, 2,048 octets of URL in base64 and what is signed with it. */
export const MAX_LINK_PATH = 3_000

/** What the links of a message are made of. */
export type LinkedMessage = Subscriber

export interface Links {
  /** GET shows a page, POST acts (RFC 8058). Never expires. */
  readonly unsubscribeUrl: string
  readonly preferencesUrl: string
  /** The mail in a browser, as long as it is kept. */
  readonly viewUrl: string
  readonly pixelUrl: string
  /** A link part of `makeLinkPart` for the workspace of this message makes a click link of it. */
  readonly clickUrl: string
}

/** @param publicUrl without a slash at the end */
export function linksOf(keys: LinkKeys, publicUrl: string, message: LinkedMessage): Links {
  return new MessageLinks(keys, publicUrl, message)
}

class MessageLinks implements Links {
  private readonly keys: LinkKeys
  private readonly publicUrl: string
  private readonly message: LinkedMessage
  private readonly made = new Map<keyof typeof LINK_PATHS, string>()
  private tokens: MessageTokens | undefined
  private subscriber: SubscriberTokens | undefined

  constructor(keys: LinkKeys, publicUrl: string, message: LinkedMessage) {
    this.keys = keys
    this.publicUrl = publicUrl
    this.message = message
  }

  get unsubscribeUrl(): string {
    return this.memoize('unsubscribe', () => this.subscriberTokens().token('unsubscribe'))
  }

  get preferencesUrl(): string {
    return this.memoize('preferences', () => this.subscriberTokens().token('preferences'))
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

  private subscriberTokens(): SubscriberTokens {
    return (this.subscriber ??= new SubscriberTokens(this.keys, this.message))
  }

  private memoize(path: keyof typeof LINK_PATHS, make: () => string): string {
    const known = this.made.get(path)
    if (known !== undefined) return known
    const url = this.publicUrl + LINK_PATHS[path] + make()
    this.made.set(path, url)
    return url
  }
}

/** @param publicUrl without a slash at the end */
export function confirmationUrl(keys: LinkKeys, publicUrl: string, confirmation: Confirmation): string {
  return publicUrl + LINK_PATHS.confirm + makeConfirmationToken(keys, confirmation)
}

/** @param text behind the path, with or without `.gif` @returns the message's id; undefined where we did not make it */
export function readOpen(keys: LinkKeys, text: string): string | undefined {
  const token = text.endsWith(PIXEL_SUFFIX) ? text.slice(0, -PIXEL_SUFFIX.length) : text
  return readMessageToken(keys, 'open', token)?.messageId
}

/** @returns the message's id; undefined where we did not make it */
export function readView(keys: LinkKeys, text: string): string | undefined {
  return readMessageToken(keys, 'view', text)?.messageId
}
