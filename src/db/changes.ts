/**
 * Change detection for caches and workers: a version per topic, which grows when rows of the topic may have changed.
 *
 * Writers report changes with `Tx.changed`. Commits of other processes count as well; a database that cannot tell what they changed
 * reports them under every topic. Reading a version is cheap enough for every access of a cache.
 */
import type { Watch } from '../core/ttl-cache.js'
import type { Clock } from '../world/time/clock.js'

export type Topic =
  | 'keys'
  | 'workspaces'
  | 'domains'
  | 'queue'
  | 'webhooks'
  | 'campaigns'
  | 'automations'
  | 'imports'
  | 'inbound'
  | 'jobs'
  | 'job_requests'
  | 'account_mail'
  | 'sandboxes'
  | 'visits'
  | 'deliveries'
  | 'events'
  | 'nodes'
  | 'certificates'

export interface Changes {
  /** Only ever grows. */
  version(topic: Topic): number
}

/** Changes reported in this process, plus a version that counts for every topic. */
export class ReportedChanges implements Changes {
  private readonly foreignVersion: () => number
  private readonly reported = new Map<Topic, number>()
  private all = 0

  /** @param foreignVersion grows with commits of other processes */
  constructor(foreignVersion: () => number = () => 0) {
    this.foreignVersion = foreignVersion
  }

  version(topic: Topic): number {
    return this.foreignVersion() + this.all + (this.reported.get(topic) ?? 0)
  }

  /** Call after the commit. */
  report(topic: Topic): void {
    this.reported.set(topic, (this.reported.get(topic) ?? 0) + 1)
  }

  /** Counts as a change of every topic. */
  reportAll(): void {
    this.all += 1
  }
}

/** For a cache of rows of these topics. */
export function watchOf(changes: Changes, clock: Pick<Clock, 'monotonic'>, topics: readonly Topic[]): Watch {
  return {
    monotonic: () => clock.monotonic(),
    version: () => topics.reduce((sum, topic) => sum + changes.version(topic), 0),
  }
}
