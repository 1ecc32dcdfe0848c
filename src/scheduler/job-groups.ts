/**
 * The jobs of the server in groups, each run by one node at a time: which of them run here, and the state of all.
 *
 * A group is started and stopped as a whole; each has a `Scheduler`. Fails: as the database does.
 */
import type { Database } from '../db/database.js'
import { JobRecords, listJobs, type JobState } from './job-store.js'
import { Scheduler, type Job, type RunAnswer, type SchedulerParts } from './scheduler.js'

export interface JobGroupsParts<Group extends string> extends Omit<SchedulerParts, 'records'> {
  readonly database: Database
  /** Whether this node runs the jobs of the group. */
  readonly isMine: (group: Group) => boolean
  /** Its node answers for jobs that do not exist. */
  readonly main: Group
}

export class JobGroups<Group extends string> {
  private readonly parts: JobGroupsParts<Group>
  private readonly records: JobRecords
  private readonly groups: ReadonlyMap<Group, readonly Job[]>
  private readonly schedulers: ReadonlyMap<Group, Scheduler>

  /** @throws Error for an invalid schedule */
  constructor(parts: JobGroupsParts<Group>, groups: ReadonlyMap<Group, readonly Job[]>) {
    const records = new JobRecords(parts)
    this.parts = parts
    this.records = records
    this.groups = groups
    this.schedulers = new Map(
      [...groups].map(([group, jobs]) => [group, new Scheduler({ ...parts, records }, jobs)]),
    )
  }

  /** Also after `stop` has resolved. */
  async start(group: Group): Promise<void> {
    await this.records.open(this.groups.get(group) ?? [])
    if (group === this.parts.main) await this.records.deleteOthers(this.all.map(({ name }) => name))
    this.schedulers.get(group)?.start()
  }

  /** @param graceMs wait at most this long @returns whether all jobs of the group have ended */
  async stop(group: Group, graceMs: number): Promise<boolean> {
    return (await this.schedulers.get(group)?.stop(graceMs)) ?? true
  }

  async stopAll(graceMs: number): Promise<void> {
    await Promise.all([...this.schedulers.values()].map(one => one.stop(graceMs)))
  }

  /** @returns undefined if the job is run by another node */
  runNow(name: string): RunAnswer | undefined {
    const [group = this.parts.main] =
      [...this.groups].find(([, jobs]) => jobs.some(job => job.name === name)) ?? []
    return this.parts.isMine(group) ? (this.schedulers.get(group)?.runNow(name) ?? 'unknown') : undefined
  }

  /** State of the jobs that are run here. */
  listMine(): readonly JobState[] {
    return this.records.list()
  }

  /** State of all jobs; those of other nodes as they were some seconds ago. */
  async list(): Promise<readonly JobState[]> {
    const mine = this.listMine()
    if ([...this.groups.keys()].every(group => this.parts.isMine(group))) return mine
    const names = new Set(mine.map(({ name }) => name))
    const others = (await listJobs(this.parts.database.reader)).filter(({ name }) => !names.has(name))
    return [...mine, ...others]
  }

  /** Saves what has changed. */
  flush(): Promise<void> {
    return this.records.flush()
  }

  private get all(): readonly Job[] {
    return [...this.groups.values()].flat()
  }
}
