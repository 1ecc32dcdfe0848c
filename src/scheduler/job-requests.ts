/**
 * Runs a job on request, on whichever node runs it.
 *
 * That node starts it directly. Any other stores a request, which the former finds within half a second, and waits for its
 * answer: whether the job was started, not its end. Fails: as the database does.
 */
import type { Services } from '../db/services.js'
import type { JobGroups } from './job-groups.js'
import {
  answerRequest,
  deleteOldRequests,
  deleteRequest,
  findAnswer,
  insertRequest,
  listRequests,
} from './job-request-store.js'
import { RUN_ANSWERS, type RunAnswer } from './scheduler.js'

export interface JobRequestsParts extends Pick<Services, 'database' | 'clock' | 'newId'> {
  readonly jobs: Pick<JobGroups<string>, 'runNow' | 'flush'>
}

/** How long an answer is waited for. */
export const ANSWER_MS = 10_000
const POLL_MS = 100
/** The node that asked has long given up by then. */
const OLD_MS = 10 * 60_000
const MAX_AT_ONCE = 100

export class JobRequests {
  private readonly parts: JobRequestsParts
  private answering: Promise<void> | undefined

  constructor(parts: JobRequestsParts) {
    this.parts = parts
  }

  /** @returns `unanswered` if no node that runs the job answered in time */
  async run(name: string): Promise<RunAnswer | 'unanswered'> {
    const { database, clock, newId, jobs } = this.parts
    const answered = jobs.runNow(name)
    if (answered !== undefined) return answered
    const id = newId()
    await database.write(tx => insertRequest(tx.db, { id, name, requestedAt: clock.now() }))
    const endAt = clock.monotonic() + ANSWER_MS
    while (clock.monotonic() < endAt && (await findAnswer(database.reader, id)) === undefined)
      await clock.sleep(POLL_MS)
    const answer = await database.write(tx => deleteRequest(tx.db, id))
    return RUN_ANSWERS.find(one => one === answer) ?? 'unanswered'
  }

  /** Starts what other nodes asked for, of the jobs that are run here. Cheap. */
  answer(): Promise<void> {
    return (this.answering ??= this.answerAll().finally(() => (this.answering = undefined)))
  }

  private async answerAll(): Promise<void> {
    const { database, clock, jobs } = this.parts
    const requests = await listRequests(database.reader, MAX_AT_ONCE)
    if (requests.length === 0) return
    const answers = requests.flatMap(({ id, name }) => {
      const answer = jobs.runNow(name)
      return answer === undefined ? [] : [{ id, answer }]
    })
    if (answers.length === 0) return
    // First, so that a client that reads the answer finds the job running.
    await jobs.flush()
    await database.write(async tx => {
      for (const { id, answer } of answers) await answerRequest(tx.db, id, answer)
      await deleteOldRequests(tx.db, clock.now() - OLD_MS)
    })
  }
}
