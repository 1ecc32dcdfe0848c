/** `make crash`: kills a busy server KILLS times (`run-crash.ts`). */
import { givenNumber, runProof } from '../proof.js'
import { runCrash } from './run-crash.js'

const kills = givenNumber('KILLS', 100)
const seed = givenNumber('SEED', 1)
const rate = givenNumber('RATE', 300)
await runProof(`Crash: ${kills} times kill -9 under mixed load`, proof =>
  runCrash(proof, { kills, seed, rate, campaignSize: 500, longestRunMs: 3_000 }),
)
