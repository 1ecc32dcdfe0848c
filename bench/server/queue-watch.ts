/**
 * Looks into the database beside the running server, as its own command line does.
 *
 * Called by the scenarios that wait for delivery. Fails: throws where the queue does not get empty in time.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Queries } from '../../src/db/database.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { systemClock } from '../../src/world/time/clock.js'

const POLL_MS = 50
const LIMIT_MS = 60_000

export async function untilQueueIsEmpty(dataDir: string): Promise<void> {
  await withReader(dataDir, async reader => {
    const startedAt = performance.now()
    while ((await reader.selectFrom('queue').select('message_id').limit(1).execute()).length > 0) {
      if (performance.now() - startedAt > LIMIT_MS) throw new Error('the queue does not get empty')
      await sleep(POLL_MS)
    }
  })
}

export function numberOfDelivered(dataDir: string): Promise<number> {
  return withReader(dataDir, async reader => {
    const { delivered } = await reader
      .selectFrom('messages')
      .select(e => e.fn.countAll<number>().as('delivered'))
      .where('status', '=', 'delivered')
      .executeTakeFirstOrThrow()
    return delivered
  })
}

/** In the event log. */
export function numberOfEvents(dataDir: string, kinds: readonly string[]): Promise<number> {
  return withReader(dataDir, async reader => {
    const { events } = await reader
      .selectFrom('events')
      .select(e => e.fn.countAll<number>().as('events'))
      .where('kind', 'in', kinds)
      .executeTakeFirstOrThrow()
    return events
  })
}

async function withReader<T>(dataDir: string, look: (reader: Queries) => Promise<T>): Promise<T> {
  const database = await openSqlite({
    file: join(dataDir, 'postroad.db'),
    clock: systemClock,
    mayMigrate: false,
  })
  try {
    return await look(database.reader)
  } finally {
    await database[Symbol.asyncDispose]()
  }
}
