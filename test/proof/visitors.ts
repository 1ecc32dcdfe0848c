/** Readers of the mail that arrives: they open it and click its links, and count what was answered. */
import { decodeQuotedPrintable } from '../../src/mail/mime/transfer-encoding.js'
import { setTimeout as sleep } from 'node:timers/promises'

const AGENT = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
/** Mails that are to be read and were not yet; further ones are not read. */
const MOST_UNREAD = 1_000
const READERS = 4
const IDLE_MS = 50

export class Visitors {
  opens = 0
  clicks = 0
  /** Visits that had another answer than a picture or a redirect. */
  readonly strange: string[] = []
  private readonly unread: string[] = []
  private readonly baseUrl: string
  private readonly reading: Promise<void>[]
  private isStopped = false

  constructor(baseUrl: string) {
    this.baseUrl = baseUrl
    this.reading = Array.from({ length: READERS }, () => this.read())
  }

  /** @param text of a mail, as it came */
  note(text: string): void {
    if (this.unread.length < MOST_UNREAD) this.unread.push(text)
  }

  async stop(): Promise<void> {
    this.isStopped = true
    await Promise.all(this.reading)
  }

  private async read(): Promise<void> {
    while (!this.isStopped) {
      const mail = this.unread.shift()
      if (mail === undefined) {
        await sleep(IDLE_MS)
        continue
      }
      const text = decodeQuotedPrintable(Buffer.from(mail, 'latin1')).toString('latin1')
      const path = (kind: string) => new RegExp(`https?://[^"/\\s]+(/${kind}/[\\w.-]+)"`).exec(text)?.[1]
      const [opened, clicked] = [path('o'), path('c')]
      if (opened !== undefined && (await this.visit(opened, [200]))) this.opens += 1
      if (clicked !== undefined && (await this.visit(clicked, [301, 302, 303, 307]))) this.clicks += 1
    }
  }

  private async visit(path: string, expected: readonly number[]): Promise<boolean> {
    try {
      const response = await fetch(this.baseUrl + path, {
        redirect: 'manual',
        headers: { 'User-Agent': AGENT },
      })
      await response.arrayBuffer()
      if (expected.includes(response.status)) return true
      this.strange.push(`${path}: ${response.status}`)
    } catch (error) {
      this.strange.push(`${path}: ${String(error)}`)
    }
    return false
  }
}
