/**
 * The program of a delivery thread whose agent is broken, in two ways that the real one should never show.
 *
 * `reject@...` rejects; `throw@...` is delivered and then throws where nobody can catch it.
 */
import { serveJobs } from '../../../src/mta/workers/worker-main.js'
import { ownThread } from '../../../src/world/threads.js'

serveJobs(
  ownThread(),
  {
    async deliver({ recipient }) {
      if (recipient.startsWith('reject@')) throw new Error('no luck today')
      if (recipient.startsWith('throw@'))
        queueMicrotask(() => {
          queueMicrotask(() => {
            throw new Error('out of the blue')
          })
        })
      return { kind: 'delivered', tried: [], summary: 'taken', remoteMta: 'mx.example' }
    },
    async close() {
      // Nothing is open.
    },
  },
  60_000,
)
