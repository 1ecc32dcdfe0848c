/**
 * Which node delivers to which destination: rendezvous hashing, so that a node that joins or leaves moves only its own share.
 *
 * All nodes compute the same from the list of living nodes. While their lists differ for a moment, two may claim from one lane; claims are
 * exclusive, so only pacing is off by that moment. Pure.
 */
import { createHash } from 'node:crypto'

/** @param nodeIds not empty @returns the id of the node that delivers to the destination */
export function nodeFor(destination: string, nodeIds: readonly string[]): string {
  let best = nodeIds[0] ?? ''
  let bestWeight = ''
  if (nodeIds.length < 2) return best
  for (const id of nodeIds) {
    const weight = createHash('sha256').update(`${id} ${destination}`).digest('hex')
    if (weight > bestWeight) [best, bestWeight] = [id, weight]
  }
  return best
}
