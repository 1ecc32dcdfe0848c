/**
 * Mail that is sent by REST and SMTP without a pause while a test breaks something, and the account of it: what was accepted, refused, or
 * had no answer, and what arrived.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Sink } from '../smtp/sink.js'
import { letter, openServed, type SubmissionClient } from '../smtp/submission.js'
import { until } from '../until.js'
import type { Serving } from './process.js'

/** Senders of each kind and node. */
const SENDERS = 3
/** Between two mails of a sender. */
const PAUSE_MS = 40
/** After an answer that asks to come back later, or none. */
const REFUSED_PAUSE_MS = 250
/** Mails that are accepted and have not arrived. */
const USUALLY_WAITING = 50
const DESTINATIONS = 12

const WAYS = ['REST', 'SMTP'] as const

type Way = (typeof WAYS)[number]

export interface Refusal {
  readonly by: Way
  /** What was answered: `503`, or the reply of SMTP. */
  readonly answer: string
  readonly retryAfter: string | null
}

export class MailFlow {
  /** Recipients, each of one mail. */
  readonly accepted = new Set<string>()
  readonly refusals: Refusal[] = []
  /** Requests and sessions that ended without an answer. */
  unanswered = 0
  private readonly sink: Sink
  private readonly key: string
  private readonly sending: Promise<void>[] = []
  private sent = 0
  private isStopped = false

  constructor(t: Test, sink: Sink, key: string) {
    this.sink = sink
    this.key = key
    t.teardown(() => this.stop())
  }

  /** Begins to send by this node. */
  through(node: Serving, ways: readonly Way[] = WAYS): void {
    for (let sender = 0; sender < SENDERS; sender += 1)
      for (const way of ways)
        this.sending.push(this.loop(way === 'REST' ? to => this.sendByRest(node, to) : this.smtpSender(node)))
  }

  async acceptedOnce(count: number, limitMs = 60_000): Promise<void> {
    await until(`${count} accepted mails`, () => this.accepted.size >= count, limitMs)
  }

  /** Until so many more are accepted than now. */
  async more(count: number, limitMs?: number): Promise<void> {
    await this.acceptedOnce(this.accepted.size + count, limitMs)
  }

  /** Until mail is refused by REST and by SMTP from now on. */
  async refused(): Promise<void> {
    const from = this.refusals.length
    await until(
      'mail to be refused',
      () => WAYS.every(way => this.refusals.slice(from).some(({ by }) => by === way)),
      60_000,
    )
  }

  async stop(): Promise<void> {
    this.isStopped = true
    await Promise.all(this.sending)
  }

  /** Accepted mail that did not arrive. */
  get missing(): string[] {
    const arrived = new Set(this.arrived)
    return [...this.accepted].filter(to => !arrived.has(to))
  }

  /** Recipients whose mail came more than once, each with the place of the first one among the sink's mails. */
  get repeated(): { to: string; at: number }[] {
    const first = new Map<string, number>()
    const repeated = new Map<string, number>()
    for (const [at, to] of this.arrived.entries()) {
      const known = first.get(to)
      if (known === undefined) first.set(to, at)
      else repeated.set(to, known)
    }
    return [...repeated].map(([to, at]) => ({ to, at }))
  }

  /** In order, one recipient each. */
  private get arrived(): string[] {
    return this.sink.accepted.flatMap(({ recipients }) => recipients)
  }

  private async loop(send: (to: string) => Promise<boolean>): Promise<void> {
    while (!this.isStopped) {
      this.sent += 1
      const to = `p${this.sent}@d${this.sent % DESTINATIONS}.test`
      const isAccepted = await send(to).catch(() => {
        this.unanswered += 1
        return false
      })
      if (isAccepted) this.accepted.add(to)
      await sleep(isAccepted ? this.pauseMs : REFUSED_PAUSE_MS)
    }
  }

  /** Longer the more mail waits, so that a slow machine is not sent more than it delivers. */
  private get pauseMs(): number {
    return PAUSE_MS * Math.max(1, (this.accepted.size - this.sink.accepted.length) / USUALLY_WAITING)
  }

  private async sendByRest(node: Serving, to: string): Promise<boolean> {
    const body = { to: [to], from_email: 'app@sender.test', subject: 'Hello', html: '<p>Hello</p>' }
    const { status, headers } = await node.send(this.key, body)
    if (status !== 200)
      this.refusals.push({ by: 'REST', answer: String(status), retryAfter: headers.get('Retry-After') })
    return status === 200
  }

  /** One session for as long as it goes well. */
  private smtpSender(node: Serving): (to: string) => Promise<boolean> {
    let session: SubmissionClient | undefined
    const refused = (answer: string) => {
      session?.cut()
      session = undefined
      // An empty reply: the connection was closed.
      if (answer === '') throw new Error('no reply')
      this.refusals.push({ by: 'SMTP', answer, retryAfter: null })
      return false
    }
    return async to => {
      try {
        if (!session) {
          session = await openServed(node)
          const reply = await session.login(this.key)
          if (!reply.startsWith('235 ')) return refused(reply)
        }
        const reply = await session.submit(letter(`To: ${to}`), { to })
        return reply.startsWith('250 ') || refused(reply)
      } catch (error) {
        session?.cut()
        session = undefined
        throw error
      }
    }
  }
}
