/**
 * The links that a mail carries back to us, and the header fields that tell mail programs of them.
 *
 * Opened in each delivery thread from plain values; called by `fill-in.ts` for each message. Links are made when they are asked for.
 * Standards: RFC 2369 §3.2 (List-Unsubscribe), RFC 8058 (List-Unsubscribe-Post, which needs a link by HTTPS).
 * Fails: a link for what is no UUID throws a plain Error when it is asked for.
 */
import type { Merging } from '../content/rendering/merging.js'
import { trackedUrls } from '../content/tracking/tracked-urls.js'
import type { HeaderField } from '../mail/compose/compose.js'
import { openLinkKeys } from '../mail/links/link-keys.js'
import { LinkParts } from '../mail/links/link-parts.js'
import { linksOf, type LinkedMessage, type Links } from '../mail/links/links.js'
import type { TokenKey } from '../mail/signed-token.js'
import { makeUnsubscribeToken, UNSUBSCRIBE_PREFIX } from '../mail/unsubscribe-token.js'

export interface LinkOptions {
  /** Every version of the secret of links. */
  readonly secrets: readonly TokenKey[]
  /** Without a slash at the end. */
  readonly publicUrl: string
  /** Where mail that unsubscribes goes, and what signs its addresses. */
  readonly unsubscribeDomain: string
  readonly unsubscribeKey: TokenKey
}

export interface MailLinks {
  of(message: LinkedMessage): Links
  /** What stands for links and pixel in a mail whose opens or clicks are counted. */
  tracked(
    workspaceId: string,
    links: Links,
    tracking: NonNullable<Merging['tracking']>,
  ): ReturnType<typeof trackedUrls>
  listUnsubscribe(message: LinkedMessage, links: Links): HeaderField[]
}

export function openMailLinks(options: LinkOptions): MailLinks {
  const keys = openLinkKeys(options.secrets.map(owned))
  const mailKey = owned(options.unsubscribeKey)
  const { publicUrl, unsubscribeDomain } = options
  const parts = new LinkParts(keys)
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

/** Crossing over to a thread makes a plain Uint8Array of a Buffer. */
function owned({ version, secret }: TokenKey): TokenKey {
  return { version, secret: Buffer.from(secret) }
}
