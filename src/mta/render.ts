/**
 * From job to the octets that leave: fill in, compose, sign, check.
 *
 * Called by both delivery agents. Never sends. Fails: never rejects; a message that cannot be built is `unsendable`, since
 * trying again would build the same one; one whose key cannot be used is `deferred`, since the operator can mend the key.
 */
import { isAscii } from 'node:buffer'
import { EMPTY_SUBJECT } from '../content/rendering/mail-plan.js'
import { describeError } from '../core/errors.js'
import { composeBehind, composeForSigning, type ComposedContent } from '../mail/compose/compose.js'
import { signMessage, UnusableKeyError, type SigningPlace } from '../mail/dkim/dkim-sign.js'
import type { Deferred, Unsendable } from '../mail/outcome.js'
import { plainTextOf } from '../mail/compose/plain-text.js'
import { toSevenBit } from '../mail/relay/seven-bit.js'
import { TOKEN_FIELD } from '../mail/server-fields.js'
import type { RelayedContent } from '../mail/relayed-content.js'
import type { DeliveryJob, JobContent } from '../queue/delivery-agent.js'
import { EmptySubject, openFilling } from './fill-in.js'
import { openFinishing } from './finish-relayed.js'
import { openMailLinks, type LinkOptions } from './mail-links.js'
import type { Clock } from '../world/time/clock.js'
import { findBareLineEnd } from './smtp/smtp-data.js'

export interface RenderParts {
  readonly clock: Clock
  /** Right side of the Message-ID. */
  readonly hostname: string
  /** Where signatures are computed; the pool of the process where absent. */
  readonly signingPlace?: SigningPlace
  /** Absent where no content is to be filled in. */
  readonly links?: LinkOptions
}

export type Rendering = Rendered | Unsendable | Deferred

export interface Rendered {
  readonly kind: 'rendered'
  readonly message: Buffer
  /** A header field holds an address that only SMTPUTF8 can carry (RFC 6531). */
  readonly needsSmtpUtf8: boolean
}

interface Built {
  readonly message: Buffer
  readonly canonicalBody?: Buffer
  /**
   * False where its author signed or encrypted 8-bit or long-lined parts, which must stay as they are: relays on the way
   * may change them, and a signature that breaks is worse than none (RFC 6376 §5.3).
   */
  readonly isSignable: boolean
  readonly needsSmtpUtf8: boolean
}

export type Render = (job: DeliveryJob) => Promise<Rendering>

export function openRenderer({ clock, hostname, signingPlace, links }: RenderParts): Render {
  const mailLinks = links && openMailLinks(links)
  const fillIn = openFilling(mailLinks)
  const finish = openFinishing(mailLinks)
  /** Text made from HTML takes longer than everything else here, and many jobs share one content. */
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
      // The signer has looked at line ends already.
      const bareLineEnd = keys.length > 0 ? undefined : findBareLineEnd(message)
      return bareLineEnd === undefined
        ? { kind: 'rendered', message, needsSmtpUtf8 }
        : unsendable(`octet ${bareLineEnd} is a CR or LF alone`)
    } catch (error) {
      if (error instanceof EmptySubject) return { kind: 'unsendable', tried: [], summary: EMPTY_SUBJECT }
      return error instanceof UnusableKeyError ? notSigned(error) : unsendable(describeError(error))
    }
  }

  function whole(job: DeliveryJob, content: JobContent & RelayedContent): Buffer {
    const { message, letter, merging } = content
    if (!letter) return merging ? finish(job, content, merging) : message
    return composeBehind(message, merging ? fillIn(job, letter, merging) : letter, job.messageId)
  }

  function build(job: DeliveryJob): Built {
    const { content } = job
    // Mail for such a recipient goes where only SMTPUTF8 leads, and so may its header.
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

/**
 * The return path once more, as a field: where a bounce comes back by another way than its envelope, the returned part
 * still has it.
 */
function tokenField({ envelopeSender }: DeliveryJob): string {
  const token = envelopeSender.slice(0, envelopeSender.lastIndexOf('@'))
  return token === '' ? '' : `${TOKEN_FIELD}: ${token}\r\n`
}

/** An address with a line break would become a command of its own. */
function findEnvelopeFault({ envelopeSender, recipient }: DeliveryJob): string | undefined {
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  const control = /[\u0000-\u001f\u007f]/
  if (control.test(envelopeSender)) return 'the envelope sender holds a control character'
  if (control.test(recipient)) return 'the recipient address holds a control character'
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
