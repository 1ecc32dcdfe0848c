/**
 * Rate limits of form submissions and confirmation mails, so that nobody can flood a mailbox or block a form for others.
 *
 * Confirmation mails do not count against the workspace's sending limits, which strangers could otherwise exhaust. Instead the workspace has a
 * share for them, whatever number of forms it has: a quarter of its limits. A mailbox has a share of each workspace and one of all.
 * Counters are in memory (`http/sliding-window.ts`); daily counts per address also include stored opt-ins. Limits of an address, a network,
 * a form and a workspace hold over all nodes; how much a network was seen, and other spellings of a mailbox, each node counts for itself.
 *
 * Once a form's soft limit is reached, only networks (/24, /48) hardly seen within the hour are let in, up to the hard limit. A flood from a
 * few networks therefore does not block other visitors. Half of a workspace's share is kept for such networks in the same way.
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
/** Confirmation mails per hour and workspace from one network, and in total per hour and form. */
const PER_NETWORK = 60
const CONFIRMATIONS = { soft: 300, hard: 2_000 }
/** Confirmation mails per hour and workspace: this part of its lowest limit, within these bounds. */
const WORKSPACE_PART = 1 / 4
const WORKSPACE_BOUNDS = { least: 20, most: CONFIRMATIONS.hard }
/** Confirmation mails per day, workspace and mailbox; spellings of an address count as one mailbox. */
const PER_MAILBOX = 5
/** Confirmation mails per day and mailbox of all workspaces; one that has sent it none yet that day has twice as many. */
const PER_MAILBOX_OF_ALL = 20
/** A network with fewer uses within the hour gets the hard limit. */
const FEW = 2

/** A submission that needs a confirmation mail. */
export interface Asking {
  readonly form: Pick<Form, 'id' | 'workspaceId'>
  /** Of the workspace; 0 = unlimited. */
  readonly hourlyLimit: number
  readonly dailyLimit: number
  /** Of the visitor. */
  readonly address: string
}

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
  async prepareConfirmation(asking: Asking): Promise<void> {
    await this.hour.prepare(networkName(asking), 1, PER_NETWORK)
    await this.hour.prepare(asking.form.id, 1, CONFIRMATIONS.hard)
    await this.hour.prepare(asking.form.workspaceId, 1, shareOf(asking))
  }

  /**
   * @returns a function that undoes it; undefined if the mailbox has reached its limit, which visitors must not learn
   * @throws AppError rate_limited, unavailable
   */
  takeConfirmation(asking: Asking, email: string): (() => void) | undefined {
    const { id, workspaceId } = asking.form
    const mailbox = likelyMailbox(email)
    const ofWorkspace = `${workspaceId} ${mailbox}`
    const known = this.day.used(ofWorkspace)
    const most = known === 0 ? 2 * PER_MAILBOX_OF_ALL : PER_MAILBOX_OF_ALL
    if (known >= PER_MAILBOX || this.day.used(mailbox) >= most) return undefined
    const network = networkName(asking)
    const isNew = this.hour.used(network) < FEW
    const share = shareOf(asking)
    const taken: (() => void)[] = []
    const undo = () => {
      for (const giveBack of taken.splice(0)) giveBack()
    }
    const takeHour = (name: string, most: number, isOwn: boolean) => {
      if (isOwn) this.take(this.hour, name, most)
      else this.takeFromForm(this.hour, name, most)
      taken.push(() => {
        this.hour.giveBack(name, 1)
      })
    }
    try {
      takeHour(network, PER_NETWORK, true)
      takeHour(id, isNew ? CONFIRMATIONS.hard : CONFIRMATIONS.soft, false)
      takeHour(workspaceId, isNew ? share : Math.ceil(share / 2), false)
    } catch (refusal) {
      undo()
      throw refusal
    }
    for (const name of [mailbox, ofWorkspace]) {
      this.day.take(name, 1, Infinity)
      taken.push(() => {
        this.day.giveBack(name, 1)
      })
    }
    return undo
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

function networkName({ form, address }: Asking): string {
  return `${form.workspaceId} ${networkOf(addressKey(address))}`
}

function shareOf({ hourlyLimit, dailyLimit }: Asking): number {
  const { least, most } = WORKSPACE_BOUNDS
  const limits = [hourlyLimit, dailyLimit].filter(limit => limit > 0)
  return Math.min(most, Math.max(least, Math.ceil(Math.min(...limits) * WORKSPACE_PART)))
}
