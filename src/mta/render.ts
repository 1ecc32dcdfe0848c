/**
 * Renders a job into the message that is transmitted: personalize, compose, sign, check.
 *
 * Never rejects: a message that cannot be built is `unsendable`, since a retry would build the same one; a message whose DKIM key is
 * unusable is `deferred`, since the operator can replace the key.
 */
import { isAscii } from 'node:buffer'
import { EMPTY_SUBJECT, isEmptied, renderFilled, valuesOf } from '../content/rendering/mail-plan.js'
import type { Merging } from '../content/rendering/merging.js'
import { PlanCache } from '../content/rendering/plan-cache.js'
import { planRelayed, type RecipientTexts, type RelayedPlan } from '../content/rendering/relayed-plan.js'
import { trackedUrls } from '../content/tracking/followed-url.js'
import { describeError } from '../core/errors.js'
import {
  composeForSigning,
  composeWithHeader,
  type ComposedContent,
  type HeaderField,
  type Letter,
  type MaybeEncoded,
  type RelayedContent,
} from '../mail/compose/compose.js'
import { foldField } from '../mail/mime/write-header-field.js'
import { plainTextOf } from '../mail/compose/plain-text.js'
import { signMessage, UnusableKeyError, type SigningThread } from '../mail/dkim/dkim-sign.js'
import { LinkPartCache } from '../mail/links/click-link.js'
import { openLinkKeys } from '../mail/links/link-keys.js'
import { linksOf, type LinkedMessage, type Links } from '../mail/links/links.js'
import type { Deferred, Unsendable } from '../mail/outcome.js'
import { toSevenBit } from '../mail/relay/seven-bit.js'
import { TOKEN_FIELD } from '../mail/server-fields.js'
import type { TokenKey } from '../mail/signed-token.js'
import { makeUnsubscribeToken, UNSUBSCRIBE_PREFIX } from '../mail/unsubscribe-token.js'
import type { DeliveryJob, JobContent } from '../queue/delivery-agent.js'
import type { Clock } from '../world/time/clock.js'
import { findBareLineEnd } from './smtp/smtp-transaction.js'

export interface RenderParts {
  readonly clock: Clock
  /** Right side of the Message-ID. */
  readonly hostname: string
  /** Thread that computes signatures; by default the libuv thread pool. */
  readonly signingPlace?: SigningThread
  /** Required to render content with merge tags or links. */
  readonly links?: LinkOptions
}

type Rendering = Rendered | Unsendable | Deferred

interface Rendered {
  readonly kind: 'rendered'
  readonly message: Buffer
  /** Whether a header field contains an address that requires SMTPUTF8 (RFC 6531). */
  readonly needsSmtpUtf8: boolean
}

interface BuiltMessage {
  readonly message: Buffer
  readonly canonicalBody?: Buffer
  /**
   * False for relayed 8-bit or long-lined parts that are signed or encrypted and must not be re-encoded: a relay may change them on the
   * way, and a broken signature is worse than none (RFC 6376 §5.3).
   */
  readonly isSignable: boolean
  readonly needsSmtpUtf8: boolean
}

type Render = (job: DeliveryJob) => Promise<Rendering>

export function openRenderer({ clock, hostname, signingPlace, links }: RenderParts): Render {
  const mailLinks = links && openMailLinks(links)
  const fillIn = openPersonalizer(mailLinks)
  const finish = openRelayDecorator(mailLinks)
  /** Converting HTML to text is the most expensive step here, and many jobs share one content. */
  const texts = new WeakMap<ComposedContent, string>()

  function withText(content: ComposedContent): ComposedContent {
    if (content.text !== undefined || content.html === undefined) return content
    const text = texts.get(content) ?? plainTextOf(content.html)
    texts.set(content, text)
    return { ...content, text }
  }

  return async job => {
    const fault = findEnvelopeFault(job)
    if (fault !== undefined) return unsendable(fault)
    try {
      const { message: built, canonicalBody, isSignable, needsSmtpUtf8 } = build(job)
      const keys = isSignable ? job.signingKeys : []
      const unsigned = tokenField(job)
      const message = await signMessage(built, keys, clock.now(), signingPlace, unsigned, canonicalBody)
      // The signer has already checked line endings.
      const bareLineEnd = keys.length > 0 ? undefined : findBareLineEnd(message)
      return bareLineEnd === undefined
        ? { kind: 'rendered', message, needsSmtpUtf8 }
        : unsendable(`octet ${bareLineEnd} is a bare CR or LF`)
    } catch (error) {
      if (error instanceof EmptySubjectError) return { kind: 'unsendable', tried: [], summary: EMPTY_SUBJECT }
      return error instanceof UnusableKeyError ? notSigned(error) : unsendable(describeError(error))
    }
  }

  function whole(job: DeliveryJob, content: JobContent & RelayedContent): Buffer {
    const { message, letter, merging } = content
    if (!letter) return merging ? finish(job, content, merging) : message
    return composeWithHeader(message, merging ? fillIn(job, letter, merging) : letter, job.messageId)
  }

  function build(job: DeliveryJob): BuiltMessage {
    const { content } = job
    // Only SMTPUTF8 servers can deliver to such a recipient, so the header may use UTF-8 as well.
    const isInternational = !isAscii(Buffer.from(job.recipient))
    if (content.kind === 'relayed') {
      const { message, isEightBit, hasLongLines, needsSmtpUtf8 } = toSevenBit(whole(job, content), {
        isInternational,
      })
      return { message, isSignable: !isEightBit && !hasLongLines, needsSmtpUtf8 }
    }
    const messageId = `${content.mailId ?? job.messageId}@${hostname}`
    const letter = { to: job.recipient, date: job.acceptedAt, messageId }
    const finished = content.merging ? fillIn(job, content, content.merging) : withText(content)
    const composed = composeForSigning(finished, letter)
    return { ...composed, isSignable: true, needsSmtpUtf8: isInternational }
  }
}

/** Repeats the token of the return path as a header field, so that a bounce that lost its envelope address still identifies the message. */
function tokenField({ envelopeSender }: DeliveryJob): string {
  const token = envelopeSender.slice(0, envelopeSender.lastIndexOf('@'))
  return token === '' ? '' : `${TOKEN_FIELD}: ${token}\r\n`
}

/** An address with a line break could inject an SMTP command. */
function findEnvelopeFault({ envelopeSender, recipient }: DeliveryJob): string | undefined {
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  const control = /[\u0000-\u001f\u007f]/
  if (control.test(envelopeSender)) return 'the envelope sender contains a control character'
  if (control.test(recipient)) return 'the recipient address contains a control character'
  return undefined
}

function notSigned(error: UnusableKeyError): Deferred {
  return {
    kind: 'deferred',
    cause: 'config',
    scope: 'sender',
    permanence: 'transient',
    subtype: 'signing_key',
    summary: error.message,
    tried: [],
  }
}

function unsendable(reason: string): Unsendable {
  return { kind: 'unsendable', tried: [], summary: `the message could not be built: ${reason}` }
}

class EmptySubjectError extends Error {
  override readonly name = 'EmptySubject'

  constructor() {
    super(EMPTY_SUBJECT)
  }
}

type Personalize = <L extends Letter>(job: DeliveryJob, letter: L, merging: Merging) => MaybeEncoded<L>

/** @param mailLinks absent if no delivered mail has links */
export function openPersonalizer(mailLinks: MailLinks | undefined): Personalize {
  const plans = new PlanCache()
  return (job, letter, merging) => {
    if (!mailLinks) throw new Error('links need the link secret, and none was given')
    const { messageId, workspaceId, recipient, acceptedAt, mergeValues = {}, origin } = job
    const message = { messageId, workspaceId, recipient }
    const links = mailLinks.of(message)
    const plan = plans.planOf(letter, merging)
    const tracking = merging.tracking && mailLinks.tracked(workspaceId, links, merging.tracking)
    const filled = renderFilled(plan, valuesOf(merging, mergeValues, recipient, acceptedAt, links, tracking))
    if (isEmptied(letter.subject, filled.subject)) throw new EmptySubjectError()
    if (!plan.body.hasUnsubscribeLink && origin?.isMarketing !== true) return { ...letter, ...filled }
    const headers = [...(letter.headers ?? []), ...mailLinks.listUnsubscribe(message, links)]
    return { ...letter, ...filled, headers }
  }
}

type DecorateRelayed = (job: DeliveryJob, content: RelayedContent, merging: Merging) => Buffer

/** @param mailLinks absent if no delivered mail has links */
function openRelayDecorator(mailLinks: MailLinks | undefined): DecorateRelayed {
  const plans = new WeakMap<RelayedContent, RelayedPlan>()
  return (job, content, merging) => {
    if (!mailLinks) throw new Error('links need the link secret, and none was given')
    const plan = plans.get(content) ?? planRelayed(content.message, merging, job.origin?.isMarketing === true)
    plans.set(content, plan)
    const { messageId, workspaceId, recipient, acceptedAt } = job
    const message = { messageId, workspaceId, recipient }
    const links = mailLinks.of(message)
    const tracking = merging.tracking && mailLinks.tracked(workspaceId, links, merging.tracking)
    const own: RecipientTexts = {
      values: valuesOf(merging, {}, recipient, acceptedAt, links, tracking),
      unsubscribeFields: () =>
        mailLinks
          .listUnsubscribe(message, links)
          .map(({ name, value }) => `${foldField(name, value) ?? `${name}: ${value}`}\r\n`)
          .join(''),
    }
    return Buffer.concat(plan.map(piece => (Buffer.isBuffer(piece) ? piece : piece(own))))
  }
}

/** Plain values, from which each delivery thread opens its `MailLinks`. */
export interface LinkOptions {
  /** Every version of the link secret. */
  readonly secrets: readonly TokenKey[]
  /** Without a trailing slash. */
  readonly publicUrl: string
  /** Domain and key of `mailto:` unsubscribe addresses. */
  readonly unsubscribeDomain: string
  readonly unsubscribeKey: TokenKey
}

interface MailLinks {
  of(message: LinkedMessage): Links
  /** Replacements for links and pixel in a mail whose opens or clicks are tracked. */
  tracked(
    workspaceId: string,
    links: Links,
    tracking: NonNullable<Merging['tracking']>,
  ): ReturnType<typeof trackedUrls>
  /** RFC 2369 §3.2; RFC 8058 One-Click requires an HTTPS link. */
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
