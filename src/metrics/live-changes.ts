/**
 * Kinds of records changed since the last call, for screens that refresh themselves.
 *
 * Three sources: writes that the APIs report, the event log (sending, public pages, imports, automations), and versions of
 * `db/changes.ts` (background work, other processes). Nothing is collected while nobody looks. If more events than `MAX_EVENTS` were
 * appended, everything that events can change counts as changed.
 */
import type { Topic } from '../db/changes.js'
import type { Database } from '../db/database.js'
import { newestSeq, summarizeTail } from '../events/store.js'
import { topicsOfEvent, TOPICS_OF_EVENTS, topicsOfWrite, type LiveTopic } from './live-topics.js'

/** Events examined at a time: a millisecond. */
const MAX_EVENTS = 1_000

/** Topics that no screen shows; events are read from their log. */
type Unshown = 'events' | 'job_requests' | 'account_mail' | 'sandboxes' | 'visits'

/** By topic of the database, the live topic. */
const VERSIONS: Readonly<Record<Exclude<Topic, Unshown>, LiveTopic>> = {
  automations: 'automations',
  campaigns: 'campaigns',
  certificates: 'certificates',
  deliveries: 'webhooks',
  domains: 'domains',
  imports: 'imports',
  inbound: 'inbound',
  jobs: 'jobs',
  keys: 'keys',
  nodes: 'health',
  queue: 'queue',
  webhooks: 'webhooks',
  workspaces: 'workspaces',
}

/** Owners whose records changed, by topic; undefined: unknown, so all of them. */
export type Changed = ReadonlyMap<LiveTopic, ReadonlySet<string | undefined>>

export class LiveChanges {
  private readonly database: Pick<Database, 'reader' | 'changes'>
  private noted = new Map<LiveTopic, Set<string | undefined>>()
  private readonly versions = new Map<Topic, number>()
  /** Position in the event log; undefined while nobody looks. */
  private seq: number | undefined

  constructor(database: Pick<Database, 'reader' | 'changes'>) {
    this.database = database
  }

  /** For `onWrite` of the APIs. */
  wrote(path: string, workspaceId: string | undefined): void {
    if (this.seq !== undefined) this.note(topicsOfWrite(path), workspaceId)
  }

  /** An attempt to deliver a message has ended. */
  attempted(workspaceId: string): void {
    if (this.seq !== undefined) this.note(['messages', 'queue'], workspaceId)
  }

  /** Begins to collect. */
  async begin(): Promise<void> {
    this.seq = await newestSeq(this.database.reader)
    this.noted = new Map()
    this.noteVersions()
    this.noted.clear()
  }

  end(): void {
    this.seq = undefined
    this.noted.clear()
  }

  /** Changes since the last call. */
  async take(): Promise<Changed> {
    if (this.seq === undefined) return new Map()
    const { groups, end, isCut } = await summarizeTail(this.database.reader, this.seq, MAX_EVENTS)
    for (const group of groups) this.note(topicsOfEvent(group), group.workspaceId)
    if (isCut) this.note(TOPICS_OF_EVENTS, undefined)
    this.seq = isCut ? await newestSeq(this.database.reader) : end
    this.noteVersions()
    const taken = this.noted
    this.noted = new Map()
    return taken
  }

  private noteVersions(): void {
    for (const [topic, shown] of Object.entries(VERSIONS) as [Topic, LiveTopic][]) {
      const version = this.database.changes.version(topic)
      if (this.versions.get(topic) !== version) this.note([shown], undefined)
      this.versions.set(topic, version)
    }
  }

  private note(topics: readonly LiveTopic[], workspaceId: string | undefined): void {
    for (const topic of topics) {
      const owners = this.noted.get(topic) ?? new Set()
      this.noted.set(topic, owners.add(workspaceId))
    }
  }
}
