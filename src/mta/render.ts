/**
 * From job to the octets that leave: compose, sign, check.
 *
 * Called by both delivery agents. Never sends. Fails: never rejects; a message that cannot be built is `unsendable`, since
 * trying again would build the same one.
 */
import { describeError } from '../core/errors.js'
import { composeMessage, type ComposedContent } from '../mail/compose.js'
import { signMessage, type SigningPlace } from '../mail/dkim-sign.js'
import type { Unsendable } from '../mail/outcome.js'
import { plainTextOf } from '../mail/plain-text.js'
import type { DeliveryJob } from '../queue/delivery-agent.js'
import type { Clock } from '../world/clock.js'
import { findBareLineEnd } from './smtp-data.js'

export interface RenderParts {
  readonly clock: Clock
  /** Right side of the Message-ID. */
  readonly hostname: string
  /** Where signatures are computed; the pool of the process where absent. */
  readonly signingPlace?: SigningPlace
}

export type Rendering = { readonly kind: 'rendered'; readonly message: Buffer } | Unsendable

export type Render = (job: DeliveryJob) => Promise<Rendering>

export function openRenderer({ clock, hostname, signingPlace }: RenderParts): Render {
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
      const composed = await composeMessage(withText(job.content), {
        to: job.recipient,
        date: job.acceptedAt,
        messageId: `${job.messageId}@${hostname}`,
      })
      const message = await signMessage(composed, job.signingKeys, clock.now(), signingPlace)
      const bareLineEnd = findBareLineEnd(message)
      return bareLineEnd === undefined
        ? { kind: 'rendered', message }
        : unsendable(`octet ${bareLineEnd} is a CR or LF alone`)
    } catch (error) {
      return unsendable(describeError(error))
    }
  }
}

/** An address with a line break would become a command of its own. */
function findEnvelopeFault({ envelopeSender, recipient }: DeliveryJob): string | undefined {
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  const control = /[\u0000-\u001f\u007f]/
  if (control.test(envelopeSender)) return 'the envelope sender holds a control character'
  if (control.test(recipient)) return 'the recipient address holds a control character'
  return undefined
}

function unsendable(reason: string): Unsendable {
  return { kind: 'unsendable', tried: [], summary: `the message could not be built: ${reason}` }
}
