/** `make simulate-queue`: runs the simulation for many seeds and prints what it finds. */
import { simulateQueue } from './queue-simulation.js'

const [from = 1, to = 300] = (process.argv[2] ?? '1-300').split('-').map(Number)
let found = 0
for (let seed = from; seed <= to; seed += 1) {
  const finding = await simulateQueue({ seed })
  if (!finding) continue
  found += 1
  console.log(
    `seed ${seed}, after ${(finding.at / 1_000).toFixed(1)} s: ${finding.what} (${finding.character})`,
  )
}
console.log(`${to - from + 1} seeds, ${found} with a finding`)
process.exitCode = found > 0 ? 1 : 0
