/**
 * Clients that keep a server busy while it is killed or measured, and the account of what each of them was promised.
 *
 * Mail goes in by REST (with and without Idempotency-Key, some scheduled, some of that cancelled), by SMTP submission, by campaigns and by
 * an automation. Every mail has a recipient of its own, so arrivals are counted by address. A client that gets no answer treats the mail as
 * one that may or may not have been accepted, unless it can repeat the request safely: then it repeats it until it is answered.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../src/world/random.js'
import { clientOf, type Answer, type Client } from '../support/api/client.js'
import { letter, SubmissionClient } from '../support/smtp/submission.js'

export const WAYS = [
  'REST',
  'REST with key',
  'SMTP',
  'scheduled',
  'cancelled',
  'campaign',
  'automation',
] as const
export type Way = (typeof WAYS)[number]

/** What the client knows: `unknown` got no answer; `cancelled` was accepted and then called back. */
export type Fate = 'accepted' | 'refused' | 'unknown' | 'cancelled'

export interface Offered {
  readonly way: Way
  readonly fate: Fate
}

export interface LoadOptions {
  readonly httpPort: number
  readonly submissionPort: number
  readonly key: string
  readonly random: Random
  /** Mails a second by REST and SMTP together, as far as the server keeps up. */
  readonly rate: number
  /** Contacts of each campaign; 0: none. */
  readonly campaignSize: number
  /** From the start of a campaign to the next, at least; 0: one after the other. */
  readonly campaignEveryMs?: number
  /** Contacts a second that enter the automation. */
  readonly contactRate?: number
  /** How many mails wait: no more are sent while it is too many. */
  readonly waiting: () => number
  /** Before each recipient and name, where several loads share a server. */
  readonly prefix?: string
  /** Body of mail by REST. */
  readonly html?: string
}

const [REST_CLIENTS, SMTP_CLIENTS] = [16, 8]
const MOST_WAITING = 3_000
const DESTINATIONS = 20
/** After no answer, or one to come back later. */
const PAUSE_MS = 100
/** A scheduled mail is due so soon. */
const LATER_MS = 3_000
/** Shares of REST requests. */
const [SCHEDULED, CANCELLED, KEYED, UNKNOWN] = [0.04, 0.04, 0.3, 0.01]
/** A second. */
const CONTACT_RATE = 15
/** How often progress is looked at. */
const LOOK_MS = 250

export class Load {
  readonly offered = new Map<string, Offered>()
  /** Recipients of mail that bounces. */
  readonly unknownRecipients = new Set<string>()
  /** Addresses of contacts that were created. */
  readonly contacts = new Set<string>()
  /** Campaigns that were sent, by name, with their number of recipients. */
  readonly campaigns = new Map<string, number>()
  /** Answers that no client should get: neither success nor a request to come back later. */
  readonly strange: string[] = []
  /** Of REST sends that were answered 200, ms, with the moment. */
  readonly latencies: { readonly at: number; readonly ms: number }[] = []
  acceptedCount = 0
  private readonly options: LoadOptions
  private readonly api: Client
  private readonly running: Promise<void>[] = []
  private isStopped = false
  private number = 0
  private nextAt = 0
  private automationList = ''

  constructor(options: LoadOptions) {
    this.options = options
    this.api = clientOf(`http://127.0.0.1:${options.httpPort}`)
  }

  /** Makes the automation that later contacts enter. The server has to run. */
  async prepare(webhookUrl?: string): Promise<void> {
    const template = await this.make('/templates', { name: 'Letter', html: '<p>Hello {{email}}</p>' })
    this.template = template
    const { prefix = '' } = this.options
    this.automationList = await this.make('/lists', { name: `Welcome ${prefix}` })
    const flow = await this.make('/automations', {
      ...{
        name: `Welcome ${prefix}`,
        trigger_type: 'list_joined',
        trigger_config: { listId: this.automationList },
      },
      steps: [
        { step_type: 'tag', config: { tagName: 'new' } },
        { step_type: 'email', config: { templateId: template, subject: 'Welcome' } },
      ],
    })
    await this.insist('PATCH', `/automations/${flow}`, { status: 'active' })
    if (webhookUrl === undefined) return
    for (const event of ['contact.created', 'email.bounced'])
      await this.make('/webhooks/triggers', { targetUrl: webhookUrl, event })
  }

  start(): void {
    this.nextAt = performance.now()
    for (let client = 0; client < REST_CLIENTS; client += 1)
      this.running.push(this.loop(() => this.sendByRest()))
    for (let client = 0; client < SMTP_CLIENTS; client += 1) this.running.push(this.loop(this.smtpSender()))
    this.running.push(this.enterContacts())
    if (this.options.campaignSize > 0) this.running.push(this.sendCampaigns())
  }

  /** No further mail; what was begun is finished, campaigns included. The server has to run. */
  async stop(): Promise<void> {
    this.isStopped = true
    await Promise.all(this.running)
  }

  recipientsOf(fate: Fate): string[] {
    return [...this.offered].filter(([, one]) => one.fate === fate).map(([to]) => to)
  }

  private template = ''

  private async loop(send: () => Promise<void>): Promise<void> {
    while (!this.isStopped) {
      await this.turn()
      await send()
    }
  }

  /** Resolves when the next mail is due. What could not be sent in time is not made up for. */
  private async turn(): Promise<void> {
    const now = performance.now()
    this.nextAt = Math.max(this.nextAt, now - PAUSE_MS) + 1_000 / this.options.rate
    if (this.nextAt > now) await sleep(this.nextAt - now)
    while (!this.isStopped && this.options.waiting() > MOST_WAITING) await sleep(PAUSE_MS)
  }

  private recipient(kind: string): string {
    this.number += 1
    return `${kind}-${this.options.prefix ?? ''}${this.number}@d${this.number % DESTINATIONS}.test`
  }

  private note(to: string, way: Way, fate: Fate): void {
    if (this.offered.get(to)?.fate === 'accepted') this.acceptedCount -= 1
    if (fate === 'accepted') this.acceptedCount += 1
    this.offered.set(to, { way, fate })
  }

  private async sendByRest(): Promise<void> {
    const chance = this.options.random.fraction()
    if (chance < SCHEDULED) return this.schedule(false)
    if (chance < SCHEDULED + CANCELLED) return this.schedule(true)
    if (chance < SCHEDULED + CANCELLED + UNKNOWN) {
      const to = this.recipient('unknown')
      const answer = await this.attempt('POST', '/email/send', this.mailTo(to))
      if (answer?.status === 200) this.unknownRecipients.add(to)
      return undefined
    }
    if (chance < SCHEDULED + CANCELLED + UNKNOWN + KEYED) {
      const to = this.recipient('keyed')
      this.note(to, 'REST with key', 'unknown')
      const { status } = await this.insist('POST', '/email/send', this.mailTo(to))
      this.note(to, 'REST with key', status === 200 ? 'accepted' : 'refused')
      return undefined
    }
    const to = this.recipient('rest')
    this.note(to, 'REST', 'unknown')
    const sentAt = performance.now()
    const answer = await this.attempt('POST', '/email/send', this.mailTo(to))
    if (answer?.status === 200) this.latencies.push({ at: Date.now(), ms: performance.now() - sentAt })
    if (answer) this.note(to, 'REST', answer.status === 200 ? 'accepted' : 'refused')
    return undefined
  }

  private async schedule(isCancelled: boolean): Promise<void> {
    const to = this.recipient(isCancelled ? 'cancelled' : 'scheduled')
    const way: Way = isCancelled ? 'cancelled' : 'scheduled'
    this.note(to, way, 'unknown')
    const sendAt = new Date(Date.now() + (isCancelled ? 4 : 1) * LATER_MS).toISOString()
    const answer = await this.insist('POST', '/email/send', { ...this.mailTo(to), send_at: sendAt })
    if (answer.status !== 202 || !isCancelled) {
      this.note(to, way, answer.status === 202 ? 'accepted' : 'refused')
      return
    }
    const id = String(answer.body.data.message_id ?? answer.body.data.results?.[0]?.message_id)
    const cancelled = await this.attempt('DELETE', `/email/${id}`)
    if (cancelled?.status === 200) this.note(to, way, 'cancelled')
  }

  private mailTo(to: string) {
    const { html = '<p>Hello</p>' } = this.options
    return { to: [to], from_email: 'app@sender.test', subject: 'Hello', html }
  }

  /** One session for as long as it goes well. */
  private smtpSender(): () => Promise<void> {
    let session: SubmissionClient | undefined
    return async () => {
      const to = this.recipient('smtp')
      try {
        if (!session) {
          session = await SubmissionClient.open(
            { submission: [{ host: '127.0.0.1', port: this.options.submissionPort }], submissionTls: [] },
            'clear',
          )
          const reply = await session.login(this.options.key)
          if (!reply.startsWith('235 ')) throw new Error(`no login: ${reply}`)
        }
        this.note(to, 'SMTP', 'unknown')
        const reply = await session.submit(letter(`To: ${to}`), { to })
        if (reply.startsWith('250 ')) this.note(to, 'SMTP', 'accepted')
        else if (reply === '') throw new Error('no reply')
        else {
          this.note(to, 'SMTP', 'refused')
          if (!reply.startsWith('4')) this.strange.push(`SMTP: ${reply}`)
        }
      } catch {
        session?.cut()
        session = undefined
        await sleep(PAUSE_MS)
      }
    }
  }

  private async enterContacts(): Promise<void> {
    while (!this.isStopped) {
      const to = this.recipient('contact')
      this.note(to, 'automation', 'unknown')
      const { status } = await this.insist('PUT', '/contacts', { email: to, list_ids: [this.automationList] })
      if (status < 300) {
        this.note(to, 'automation', 'accepted')
        this.contacts.add(to)
      }
      await sleep(1_000 / (this.options.contactRate ?? CONTACT_RATE))
    }
  }

  private async sendCampaigns(): Promise<void> {
    const { campaignEveryMs = 0 } = this.options
    let nextAt = performance.now()
    for (let campaign = 1; !this.isStopped; campaign += 1) {
      nextAt = Math.max(performance.now(), nextAt + campaignEveryMs)
      await this.sendCampaign(`campaign${campaign}`)
      await this.untilMoment(nextAt)
    }
  }

  /** @param moment of `performance.now()` */
  private async untilMoment(moment: number): Promise<void> {
    while (!this.isStopped && performance.now() < moment) await sleep(LOOK_MS)
  }

  /** @param isImported its contacts come as a file */
  async sendCampaign(name: string, contacts = this.options.campaignSize, isImported = false): Promise<void> {
    const list = await this.make('/lists', { name })
    const recipients = Array.from({ length: contacts }, () => this.recipient(name))
    for (const to of recipients) this.note(to, 'campaign', 'unknown')
    if (isImported) await this.importContacts(list, recipients)
    else await this.createContacts(list, recipients)
    for (const to of recipients) this.contacts.add(to)
    const id = await this.make('/campaigns', {
      ...{ name, subject: 'News', from_email: 'news@sender.test', template_id: this.template, list_id: list },
    })
    await this.sendAndWait(id)
    for (const to of recipients) this.note(to, 'campaign', 'accepted')
    this.campaigns.set(name, recipients.length)
  }

  private async createContacts(list: string, recipients: readonly string[]): Promise<void> {
    for (let at = 0; at < recipients.length; at += BATCH) {
      const contacts = recipients.slice(at, at + BATCH).map(email => ({ email, list_ids: [list] }))
      while (isOutcomeUnknown(await this.insist('POST', '/contacts/batch', { contacts })));
    }
  }

  private async importContacts(list: string, recipients: readonly string[]): Promise<void> {
    const csv = ['email', ...recipients].join('\n')
    const headers = { 'Content-Type': 'text/csv' }
    const { body } = await this.insist('POST', `/contacts/import?list_id=${list}`, csv, headers)
    const id = String(body.data.import_id)
    for (;;) {
      const { body: progress } = await this.insist('GET', `/contacts/imports/${id}`)
      if (progress.data.status === 'completed') return
      if (progress.data.status === 'failed') throw new Error(`the import failed: ${JSON.stringify(progress)}`)
      await sleep(LOOK_MS)
    }
  }

  /** Sends a campaign and waits until it is completed. */
  private async sendAndWait(id: string): Promise<void> {
    const state = async () => String((await this.insist('GET', `/campaigns/${id}`)).body.data.status)
    for (;;) {
      const { status } = await this.insist('POST', `/campaigns/${id}/send/api`, {})
      if (status < 300 || (await state()) !== 'draft') break
    }
    while ((await state()) !== 'completed') await sleep(LOOK_MS)
  }

  /** @returns its id */
  private async make(path: string, body: Readonly<Record<string, unknown>>): Promise<string> {
    for (let made = 1; ; made += 1) {
      // Where the first answer was lost there may be one already: the next has another name.
      const named = made > 1 && 'name' in body ? { ...body, name: `${String(body['name'])} (${made})` } : body
      const answer = await this.insist('POST', path, named)
      if (isOutcomeUnknown(answer)) continue
      if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer.body)}`)
      return String(answer.body.data.id)
    }
  }

  /** Once. @returns undefined if there was no answer */
  private async attempt(
    method: string,
    path: string,
    body?: unknown,
    headers = {},
  ): Promise<Answer | undefined> {
    const options = { key: this.options.key, headers }
    const address = `/api/v1${path}`
    try {
      const answer = await {
        GET: () => this.api.get(address, options),
        POST: () => this.api.post(address, body, options),
        PUT: () => this.api.put(address, body, options),
        PATCH: () => this.api.patch(address, body, options),
        DELETE: () => this.api.delete(address, options),
      }[method as 'GET']()
      if (!isExpected(answer))
        this.strange.push(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
      return answer
    } catch {
      await sleep(PAUSE_MS)
      return undefined
    }
  }

  /** Repeats the request until it is answered by something else than a request to come back. */
  private async insist(method: string, path: string, body?: unknown, more = {}): Promise<Answer> {
    const headers = method === 'POST' ? { 'Idempotency-Key': randomUUID(), ...more } : {}
    for (;;) {
      const answer = await this.attempt(method, path, body, headers)
      // 409 while the first request of this key is still being answered.
      if (answer && answer.status !== 503 && !isInFlight(answer)) return answer
      await sleep(PAUSE_MS)
    }
  }
}

/** Contacts of one request. */
const BATCH = 500

/** Success, or to be repeated. A scheduled mail may have to be sent again when its time is over. */
function isExpected({ status, body }: Answer): boolean {
  return [200, 201, 202, 204, 409, 503].includes(status) || body?.error?.code === 'invalid_schedule'
}

function isInFlight({ status, body }: Answer): boolean {
  return status === 409 && /still being executed/.test(String(body?.error?.message))
}

/** The server was killed between the work and its answer, and refuses to do it twice (docs of Idempotency-Key). */
function isOutcomeUnknown({ status, body }: Answer): boolean {
  return status === 409 && /was interrupted/.test(String(body?.error?.message))
}
