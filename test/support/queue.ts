/** A running queue over a real database, with a clock that the test turns and an agent that it scripts. */
import type { Test } from 'tap'
import { AppError } from '../../src/core/errors.js'
import type { Database, Tx } from '../../src/db/database.js'
import { JobLoader, type JobLoaderParts } from '../../src/queue/claiming/job-loader.js'
import { findAnyMessage } from '../../src/messages/message-store.js'
import { recoverOrphans } from '../../src/queue/claiming/crash-recovery.js'
import { QueueManager, type QueuePolicy } from '../../src/queue/queue-manager.js'
import { findEntries, type QueueEntry, findOrphans } from '../../src/queue/queue-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { sqliteDatabase } from './db/database.js'
import { enqueue } from './mailroom.js'
import { bounced } from './outcomes.js'
import { ScriptedAgent, type Script } from './scripted-agent.js'
import { comeToRest, until } from './turns.js'

const MINUTE_MS = 60_000

const POLICY: QueuePolicy & { connectionsPerSite: number } = {
  retry: { firstMs: 5 * MINUTE_MS, factor: 2, maxMs: 60 * MINUTE_MS },
  connections: 10,
  connectionsPerSite: 4,
}

let runs = 0

export interface QueueOptions {
  readonly script: Script
  readonly policy?: Partial<typeof POLICY>
  readonly jobs?: Partial<JobLoaderParts>
}

export function openQueue(t: Test, database: Database, { script, policy, jobs }: QueueOptions) {
  const clock = new FakeClock()
  const log = new FakeLog()
  const agent = new ScriptedAgent(script)
  const incarnation = `run ${(runs += 1)}`
  let settledCount = 0
  const random = new SeededRandom()
  /** Joins like a server, which recovers what an earlier run had claimed. */
  class JoiningQueue extends QueueManager {
    override async start(): Promise<void> {
      const { retry } = { ...POLICY, ...policy }
      if ((await findOrphans(database.reader)).length > 0)
        await database.write(tx => recoverOrphans(tx, { clock, random, log, retry }))
      await super.start()
    }
  }
  const runner = new JoiningQueue({
    database,
    clock,
    log,
    agent,
    random,
    jobs: new JobLoader({
      reader: database.reader,
      clock,
      returnPath: id => `bounce+${id}@mail.example.net`,
      readSigningKeys: async () => new Map(),
      ...jobs,
    }),
    locateSite: async destination => ({
      name: destination,
      connections: { ...POLICY, ...policy }.connectionsPerSite,
      messagesPerMinute: 0,
    }),
    policy: { ...POLICY, ...policy },
    incarnation,
    onSettled: () => (settledCount += 1),
  })
  t.teardown(async () => {
    for (const id of agent.waitingIds)
      agent.finish(id, { kind: 'unsendable', summary: 'the test is over', tried: [] })
    agent.script = () => ({ kind: 'unsendable', summary: 'the test is over', tried: [] })
    await runner.stop(0)
  })
  /** These have answered before, so they have all the connections a site can have at first. The queue has begun then. */
  const haveAnswered = async (...destinations: string[]) => {
    const { script } = agent
    agent.script = () => bounced
    const first = destinations.map(destination => ({
      id: `first ${destination}`,
      to: `first@${destination}`,
    }))
    await enqueue(database, first)
    await runner.start()
    for (const { id } of first)
      await until(`${id} is refused`, async () => (await findEntries(database.reader, [id])).length === 0)
    await comeToRest()
    agent.script = script
    agent.jobs.length = 0
  }
  const statusOf = async (id: string) => (await findAnyMessage(database.reader, id))?.status
  return {
    runner,
    clock,
    log,
    agent,
    haveAnswered,
    /** What was enqueued meanwhile is found. */
    look: () => runner.retryNow(),
    statusOf,
    entryOf: async (id: string): Promise<QueueEntry | undefined> =>
      (await findEntries(database.reader, [id]))[0],
    settledCount: () => settledCount,
    /** Waits until so many jobs were handed over, and shows that it stays at that. */
    handsOver: async (count: number): Promise<string[]> => {
      await until(`${count} jobs are handed over`, () => agent.jobs.length >= count)
      await comeToRest()
      return agent.ids
    },
    becomes: (id: string, status: string) =>
      until(`${id} becomes ${status}`, async () => (await statusOf(id)) === status),
  }
}

/** The same over a fresh SQLite database. */
export async function sqliteQueue(t: Test, options: QueueOptions) {
  const database = await sqliteDatabase(t)
  return { database, ...openQueue(t, database, options) }
}

/**
 * A database that commits, and whose answers are lost while the test says so, as in a failover.
 *
 * @param isLosing asked once for each write
 */
export function losingAnswers(database: Database, isLosing: () => boolean): Database {
  return {
    ...failing(database, () => false),
    async write(work, options) {
      if (!isLosing()) return database.write(work, options)
      const undo: (() => void)[] = []
      await database.write(
        tx =>
          work({
            ...tx,
            changed: topic => tx.changed(topic),
            onCommit: () => {},
            onRollback: callback => undo.push(callback),
          }),
        options,
      )
      for (const callback of undo) callback()
      throw new AppError('unavailable', 'the connection to the database was lost')
    },
  }
}

/** A database whose writes fail while the test says so. */
export function failing(database: Database, isFailing: () => boolean): Database {
  return {
    dialect: database.dialect,
    reader: database.reader,
    slowReader: database.slowReader,
    exportReader: database.exportReader,
    storage: database.storage,
    write: <T>(work: (tx: Tx) => Promise<T>) =>
      isFailing() ? Promise.reject(new AppError('unavailable', 'the disk is full')) : database.write(work),
    changes: database.changes,
    isTransient: error => database.isTransient(error),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}
