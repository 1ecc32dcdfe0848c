/**
 * Entry point of the importer thread.
 *
 * Started by `import-job.ts`, never imported. Runs at normal priority, since writers wait for its transactions.
 */
import { orderedIds } from '../../core/ids.js'
import { openThreadDatabase } from '../../db/threads/thread-database.js'
import { systemRandom } from '../../world/random.js'
import { ownThread, spawnThread } from '../../world/threads.js'
import { Importer } from './importer.js'

const { database, clock, stopping, log, finished } = openThreadDatabase(ownThread())
const newId = orderedIds(
  () => clock.now(),
  count => systemRandom.bytes(count),
)
// The server dispatches events when it gets the write lock back.
const onEvents = () => {}

async function importAll(): Promise<void> {
  await new Importer({ database, clock, newId, onEvents, spawn: spawnThread, log, restMs: 0 }).run(stopping)
  await database[Symbol.asyncDispose]()
  finished()
}

// A rejection ends the thread; the server gets it as the thread's error.
void importAll()
