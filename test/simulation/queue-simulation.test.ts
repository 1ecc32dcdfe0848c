/** The queue under random schedules; `make simulate-queue SEEDS=1-1000` runs more of them. */
import t from 'tap'
import { simulateQueue } from './queue-simulation.js'

/** About 0.2 s each. */
const SEEDS = 25

t.test(
  'whatever is late, lost or restarted, all mail is delivered once and nothing stands still',
  async t => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const finding = await simulateQueue({ seed })
      t.equal(finding, undefined, `seed ${seed}`)
    }
  },
)
