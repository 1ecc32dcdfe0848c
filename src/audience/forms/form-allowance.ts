/**
 * How often forms may be sent, and how many confirmation mails they may cause, so that nobody floods a mailbox or closes a form to others.
 *
 * Used by the form pages. Confirmations have this separate allowance and count against no sending limit of the workspace, which
 * strangers could use up otherwise. Counters live in memory (`http/sliding-window.ts`); per day and address the stored opt-ins count too.
 *
 * A form's own limits are for networks (/24, /48) that come again and again: one that has hardly been seen within the hour is let in beyond
 * them, up to a hard limit, so that a flood from a few networks turns no other visitor away.
 */
import { AppError } from '../../core/errors.js'
import { SlidingWindow } from '../../http/sliding-window.js'
import { likelyMailbox } from '../../mail/address.js'
import { addressKey, networkOf } from '../../world/net/ip-address.js'
import type { Clock } from '../../world/time/clock.js'
import type { Form } from './form.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Sent per minute by one address to a form. Who stands in a line at a trade fair shares an address. */
const PER_ADDRESS = 20
const SUBMISSIONS = { soft: 600, hard: 1_200 }
/** Confirmations per hour: of a network to a form, of a form. */
const PER_NETWORK = 60
const CONFIRMATIONS = { soft: 300, hard: 2_000 }
/** Confirmations per day of a workspace to a mailbox, however its address is spelt. */
const PER_MAILBOX = 5
/** A network that has caused so few in the hour is a stranger. */
const FEW = 2

export class FormAllowance {
  private readonly minute: SlidingWindow
  private readonly hour: SlidingWindow
  private readonly day: SlidingWindow

  constructor(clock: Clock) {
    this.minute = new SlidingWindow(clock)
    this.hour = new SlidingWindow(clock, HOUR_MS)
    this.day = new SlidingWindow(clock, DAY_MS)
  }

  /** @throws AppError rate_limited, unavailable */
  takeSubmission(formId: string, address: string): void {
    const key = addressKey(address)
    this.take(this.minute, `${formId} ${key}`, PER_ADDRESS)
    const network = `sent ${formId} ${networkOf(key)}`
    const { soft, hard } = SUBMISSIONS
    this.takeFromForm(this.minute, formId, this.hour.used(network) < FEW ? hard : soft)
    this.hour.take(network, 1, Infinity)
  }

  /**
   * @returns what gives it back; undefined where the mailbox has had enough, of which the visitor learns nothing
   * @throws AppError rate_limited, unavailable
   */
  takeConfirmation({ id, workspaceId }: Form, address: string, email: string): (() => void) | undefined {
    const mailbox = `${workspaceId} ${likelyMailbox(email)}`
    if (this.day.used(mailbox) >= PER_MAILBOX) return undefined
    const network = `${id} ${networkOf(addressKey(address))}`
    const { soft, hard } = CONFIRMATIONS
    const limit = this.hour.used(network) < FEW ? hard : soft
    this.take(this.hour, network, PER_NETWORK)
    try {
      this.takeFromForm(this.hour, id, limit)
    } catch (refusal) {
      this.hour.giveBack(network, 1)
      throw refusal
    }
    this.day.take(mailbox, 1, PER_MAILBOX)
    return () => {
      this.hour.giveBack(network, 1)
      this.hour.giveBack(id, 1)
      this.day.giveBack(mailbox, 1)
    }
  }

  private take(window: SlidingWindow, name: string, limit: number): void {
    const { isAllowed, retryAfterMs } = window.take(name, 1, limit)
    if (!isAllowed)
      throw new AppError('rate_limited', 'this form was sent too often from your network; try again later', {
        retryAfterMs,
      })
  }

  /** What others have used up is no fault of the visitor's. */
  private takeFromForm(window: SlidingWindow, formId: string, limit: number): void {
    const { isAllowed, retryAfterMs } = window.take(formId, 1, limit)
    if (!isAllowed)
      throw new AppError('unavailable', 'this form is used by too many people right now; try again later', {
        retryAfterMs,
      })
  }
}
