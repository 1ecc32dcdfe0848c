/**
 * Rate limits of form submissions and confirmation mails, so that nobody can flood a mailbox or block a form for others.
 *
 * Confirmation mails do not count against the workspace's sending limits, which strangers could otherwise exhaust. Counters are in memory
 * (`http/sliding-window.ts`); daily counts per address also include stored opt-ins. Limits of an address, a network and a form hold over all
 * nodes; how much a network was seen, and other spellings of a mailbox, each node counts for itself.
 *
 * Once a form's soft limit is reached, only networks (/24, /48) hardly seen within the hour are let in, up to the hard limit. A flood from a
 * few networks therefore does not block other visitors.
 */
import { AppError } from '../../core/errors.js'
import { SlidingWindow, type OpenWindow } from '../../http/sliding-window.js'
import { likelyMailbox } from '../../mail/address.js'
import { addressKey, networkOf } from '../../world/net/ip-address.js'
import type { Clock } from '../../world/time/clock.js'
import type { Form } from './form.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Submissions per minute, address and form. Visitors at one venue may share an address. */
const PER_ADDRESS = 20
const SUBMISSIONS = { soft: 600, hard: 1_200 }
/** Confirmation mails per hour and form, from one network and in total. */
const PER_NETWORK = 60
const CONFIRMATIONS = { soft: 300, hard: 2_000 }
/** Confirmation mails per day, workspace and mailbox; spellings of an address count as one mailbox. */
const PER_MAILBOX = 5
/** A network with fewer uses within the hour gets the hard limit. */
const FEW = 2

export class FormAllowance {
  private readonly minute: SlidingWindow
  private readonly hour: SlidingWindow
  private readonly day: SlidingWindow
  /** Submissions of each network. */
  private readonly seen: SlidingWindow

  constructor(clock: Clock, openWindow: OpenWindow = (_, windowMs) => new SlidingWindow(clock, windowMs)) {
    this.minute = openWindow('submissions of a form')
    this.hour = openWindow('confirmations of a form', HOUR_MS)
    this.day = new SlidingWindow(clock, DAY_MS)
    this.seen = new SlidingWindow(clock, HOUR_MS)
  }

  /** @throws AppError rate_limited, unavailable */
  async takeSubmission(formId: string, address: string): Promise<void> {
    const key = addressKey(address)
    const sender = `${formId} ${key}`
    await this.minute.prepare(sender, 1, PER_ADDRESS)
    this.take(this.minute, sender, PER_ADDRESS)
    const network = `${formId} ${networkOf(key)}`
    const { soft, hard } = SUBMISSIONS
    const limit = this.seen.used(network) < FEW ? hard : soft
    await this.minute.prepare(formId, 1, limit)
    this.takeFromForm(this.minute, formId, limit)
    this.seen.take(network, 1, Infinity)
  }

  /** Call it before `takeConfirmation`, which cannot wait for other nodes. */
  async prepareConfirmation({ id }: Form, address: string): Promise<void> {
    await this.hour.prepare(`${id} ${networkOf(addressKey(address))}`, 1, PER_NETWORK)
    await this.hour.prepare(id, 1, CONFIRMATIONS.hard)
  }

  /**
   * @returns a function that undoes it; undefined if the mailbox has reached its limit, which visitors must not learn
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
      throw new AppError('rate_limited', 'too many submissions from your network; try again later', {
        retryAfterMs,
      })
  }

  /** A 503 rather than a 429, since other visitors used up the limit. */
  private takeFromForm(window: SlidingWindow, formId: string, limit: number): void {
    const { isAllowed, retryAfterMs } = window.take(formId, 1, limit)
    if (!isAllowed)
      throw new AppError('unavailable', 'this form is receiving too many submissions; try again later', {
        retryAfterMs,
      })
  }
}
