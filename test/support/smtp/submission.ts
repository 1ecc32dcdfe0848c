/**
 * SMTP submission to a running appliance, as an application does it: a client that shows every reply, and the mails that came
 * of it.
 */
import type { Test } from 'tap'
import type { ServerAddresses } from '../../../src/server.js'
import { openTestAppliance, type TestAppliance } from '../program/appliance.js'
import type { PublishedDomain } from '../dkim.js'
import type { InstallOptions, Serving } from '../program/process.js'
import { SmtpClient } from './smtp-service.js'
import { until } from '../until.js'

/** Where each session comes in: TLS from the first octet, TLS by STARTTLS, or none. */
export type Door = 'implicit TLS' | 'STARTTLS' | 'clear'

export interface Envelope {
  readonly from?: string
  readonly to?: string | readonly string[]
  /** What follows the address in MAIL and in each RCPT, e.g. `RET=HDRS`. */
  readonly mail?: string
  readonly rcpt?: string
}

export class SubmissionClient {
  private readonly client: SmtpClient

  private constructor(client: SmtpClient) {
    this.client = client
  }

  /** @param localAddress where the client is, within 127.0.0.0/8 */
  static async open(
    addresses: Pick<ServerAddresses, 'submission' | 'submissionTls'>,
    door: Door = 'implicit TLS',
    localAddress?: string,
  ): Promise<SubmissionClient> {
    const isImplicit = door === 'implicit TLS'
    const [address] = isImplicit ? addresses.submissionTls : addresses.submission
    const smtp = await SmtpClient.connect(address?.port ?? 0, isImplicit, localAddress)
    const client = new SubmissionClient(smtp)
    const greeting = await client.reply()
    if (!greeting.startsWith('220 ')) throw new Error(`no greeting: ${greeting}`)
    await smtp.ehlo()
    if (door === 'STARTTLS') {
      const ready = await client.say('STARTTLS')
      if (!ready.startsWith('220 ')) throw new Error(`no TLS: ${ready}`)
      await smtp.startTls()
      await smtp.ehlo()
    }
    return client
  }

  /** All lines of the next reply; empty once the server has closed. */
  async reply(): Promise<string> {
    return (await this.client.readReply()).join('\n')
  }

  say(line: string): Promise<string> {
    this.raw(`${line}\r\n`)
    return this.reply()
  }

  /** Octets as they are, in Latin-1. */
  raw(latin1: string): void {
    this.client.send(latin1)
  }

  /** AUTH PLAIN. */
  login(key: string, username = 'apikey'): Promise<string> {
    return this.say(`AUTH PLAIN ${Buffer.from(`\0${username}\0${key}`).toString('base64')}`)
  }

  /** MAIL, every RCPT and DATA, step by step. @returns the first reply that refuses, or 354 */
  async begin({ from = 'app@sender.test', to = 'ann@one.test', mail = '', rcpt = '' }: Envelope = {}) {
    const commands = [
      `MAIL FROM:<${from}>${mail === '' ? '' : ` ${mail}`}`,
      ...[to].flat().map(address => `RCPT TO:<${address}>${rcpt === '' ? '' : ` ${rcpt}`}`),
      'DATA',
    ]
    let reply = ''
    for (const command of commands) {
      reply = await this.say(Buffer.from(command).toString('latin1'))
      if (!/^(250|354) /.test(reply)) return reply
    }
    return reply
  }

  /** @param message with CRLF between its lines; dots are stuffed here. @returns the reply to it, or what refused it before */
  async submit(message: string | Buffer, envelope: Envelope = {}): Promise<string> {
    const begun = await this.begin(envelope)
    if (!begun.startsWith('354 ')) {
      await this.say('RSET')
      return begun
    }
    const text = Buffer.from(message).toString('latin1').replace(/^\./gm, '..')
    this.raw(`${text}${text.endsWith('\r\n') ? '' : '\r\n'}.\r\n`)
    return this.reply()
  }

  cut(): void {
    this.client.cut()
  }
}

/** A session with the real program, before the login. */
export async function openServed(server: Serving, door?: Door): Promise<SubmissionClient> {
  return SubmissionClient.open(servedAddresses(server), door)
}

/** Where the real program listens, from what it logged at its start. */
export function servedAddresses(server: Serving): Pick<ServerAddresses, 'submission' | 'submissionTls'> {
  const line = server.log.find(({ event }) => event === 'server started')
  const listed = (key: string) =>
    String(line?.[key])
      .split(', ')
      .map(text => ({ host: text.replace(/:\d+$/, ''), port: Number(text.replace(/^.*:/, '')) }))
  return { submission: listed('submission'), submissionTls: listed('submissionTls') }
}

/** The ids that the reply to a message names. */
export function idsOf(reply: string): string[] {
  if (!reply.startsWith('250 ')) throw new Error(`not accepted: ${reply}`)
  return reply.match(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g) ?? []
}

export interface Caught {
  readonly raw: Buffer
  /** Header and body as Latin-1. */
  readonly header: string
  readonly body: string
  readonly envelopeSender: string
  readonly recipient: string
}

export interface SubmissionTest {
  readonly postroad: TestAppliance
  /** Verifies sender.test for the workspace; mail from it is signed. Before that the shared address sends for it. */
  readonly addDomain: () => Promise<PublishedDomain>
  readonly open: (door?: Door, localAddress?: string) => Promise<SubmissionClient>
  /** A session in which the appliance's own key has logged in. */
  readonly loggedIn: (key?: string) => Promise<SubmissionClient>
  /** What a message became, once it is delivered (to the local inbox). */
  readonly caught: (id: string) => Promise<Caught>
}

/** An appliance that keeps its mail. */
export async function openSubmissionTest(t: Test, options: InstallOptions = {}): Promise<SubmissionTest> {
  const postroad = await openTestAppliance(t, options)
  const open = async (door?: Door, localAddress?: string) => {
    const client = await SubmissionClient.open(postroad.addresses, door, localAddress)
    t.teardown(() => client.cut())
    return client
  }
  return {
    postroad,
    addDomain: () =>
      postroad.json('domain', 'add', 'sender.test', '--vouch', '--workspace', postroad.workspaceId),
    open,
    async loggedIn(key = postroad.key) {
      const client = await open()
      const reply = await client.login(key)
      if (!reply.startsWith('235 ')) throw new Error(`no login: ${reply}`)
      return client
    },
    caught: id => caught(postroad, id),
  }
}

async function caught(postroad: TestAppliance, id: string): Promise<Caught> {
  const head = await until(`message ${id} in the local inbox`, async () => {
    const { body } = await postroad.get('/capture?limit=100')
    return (body.data as { id: number; message_id: string }[]).find(({ message_id: of }) => of === id)
  })
  const { body: mail } = await postroad.get(`/capture/${head.id}`)
  const raw = Buffer.from(mail.data.raw_base64 as string, 'base64')
  const text = raw.toString('latin1')
  const end = text.indexOf('\r\n\r\n') + 2
  return {
    raw,
    header: text.slice(0, end),
    body: text.slice(end + 2),
    envelopeSender: mail.data.envelope_sender,
    recipient: mail.data.recipient,
  }
}

/** A small mail; fields of the test come on top. */
export function letter(...fields: readonly string[]): string {
  const from = fields.some(field => /^from:/i.test(field)) ? [] : ['From: App <app@sender.test>']
  return [...from, ...fields, 'Subject: Hello', '', 'Hello.', ''].join('\r\n')
}
