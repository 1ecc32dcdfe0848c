/**
 * The program of the thread that works imports off.
 *
 * Started by `import-job.ts`, never imported. It does not step aside: whoever wants to write waits for its transactions.
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
// The server tells of events as soon as it hears that a turn is over.
const onEvents = () => {}

async function importAll(): Promise<void> {
  await new Importer({ database, clock, newId, onEvents, spawn: spawnThread, log, restMs: 0 }).run(stopping)
  await database[Symbol.asyncDispose]()
  finished()
}

// What it rejects with ends the thread, and is told to the server as its fault.
void importAll()
