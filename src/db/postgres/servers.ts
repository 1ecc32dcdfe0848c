/**
 * Which of the servers of a database URL takes writes: after a failover it is another one.
 *
 * Connections go to the one that took them last, and to the next one when it cannot be reached or is a standby.
 */
import { serverUrls } from '../../core/postgres-urls.js'

export class Servers {
  private readonly urls: readonly string[]
  private at = 0

  /** @param url with one or several hosts */
  constructor(url: string) {
    this.urls = serverUrls(url) ?? [url]
  }

  get count(): number {
    return this.urls.length
  }

  get current(): string {
    return this.urls[this.at] ?? ''
  }

  /** This one could not be reached, or is a standby; of several who say so of the same one, the first counts. */
  failed(url: string): void {
    if (url === this.current) this.at = (this.at + 1) % this.urls.length
  }
}
