/** `make soak`: a long time at 60 % of capacity (`run-soak.ts`); leaves the curves in OUT. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { givenNumber, runProof } from '../proof.js'
import { runSoak } from './run-soak.js'

const minutes = givenNumber('MINUTES', 30, 0.5)
const seed = givenNumber('SEED', 1)
const rate = givenNumber('RATE', 0, 0)
const folder = process.env['OUT'] || 'build/soak'
await runProof(`Soak: ${minutes} minutes`, async proof => {
  const { notes, csv, svg } = await runSoak(proof, {
    ...{ minutes, seed, share: 0.6 },
    rate: rate === 0 ? undefined : rate,
  })
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'soak.csv'), csv)
  writeFileSync(join(folder, 'soak.svg'), svg)
  return [...notes, `Curves: ${join(folder, 'soak.svg')} and soak.csv.`]
})
