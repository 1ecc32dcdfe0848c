/**
 * Builds the links of a mail that point back to this server, and the List-Unsubscribe fields.
 *
 * Opened in each delivery thread from plain values; each link is built when it is first read.
 * Standards: RFC 2369 §3.2 (List-Unsubscribe), RFC 8058 (List-Unsubscribe-Post, which requires an HTTPS link).
 */
import type { Merging } from '../content/rendering/merging.js'
import { trackedUrls } from '../content/tracking/followed-url.js'
import type { HeaderField } from '../mail/compose/compose.js'
import { openLinkKeys } from '../mail/links/link-keys.js'
import { LinkPartCache } from '../mail/links/click-link.js'
import { linksOf, type LinkedMessage, type Links } from '../mail/links/links.js'
import type { TokenKey } from '../mail/signed-token.js'
import { makeUnsubscribeToken, UNSUBSCRIBE_PREFIX } from '../mail/unsubscribe-token.js'

export interface LinkOptions {
  /** Every version of the link secret. */
  readonly secrets: readonly TokenKey[]
  /** Without a trailing slash. */
  readonly publicUrl: string
  /** Domain and key of `mailto:` unsubscribe addresses. */
  readonly unsubscribeDomain: string
  readonly unsubscribeKey: TokenKey
}

export interface MailLinks {
  of(message: LinkedMessage): Links
  /** Replacements for links and pixel in a mail whose opens or clicks are tracked. */
  tracked(
    workspaceId: string,
    links: Links,
    tracking: NonNullable<Merging['tracking']>,
  ): ReturnType<typeof trackedUrls>
  listUnsubscribe(message: LinkedMessage, links: Links): HeaderField[]
}

export function openMailLinks(options: LinkOptions): MailLinks {
  const keys = openLinkKeys(options.secrets.map(withBuffer))
  const mailKey = withBuffer(options.unsubscribeKey)
  const { publicUrl, unsubscribeDomain } = options
  const parts = new LinkPartCache(keys)
  return {
    of: message => linksOf(keys, publicUrl, message),
    tracked: (workspaceId, links, { clicks: parameters = {} }) =>
      trackedUrls({ workspaceId, links, parts, publicUrl, parameters }),
    listUnsubscribe(message, { unsubscribeUrl }) {
      const address = `${UNSUBSCRIBE_PREFIX}${makeUnsubscribeToken(message, mailKey)}@${unsubscribeDomain}`
      const field = { name: 'List-Unsubscribe', value: `<${unsubscribeUrl}>, <mailto:${address}>` }
      return unsubscribeUrl.startsWith('https:')
        ? [field, { name: 'List-Unsubscribe-Post', value: 'List-Unsubscribe=One-Click' }]
        : [field]
    },
  }
}

/** A Buffer arrives in a worker thread as a plain Uint8Array. */
function withBuffer({ version, secret }: TokenKey): TokenKey {
  return { version, secret: Buffer.from(secret) }
}
