/**
 * Which node delivers to which destination: rendezvous hashing, so that a node that joins or leaves moves only its own share.
 *
 * All nodes compute the same from the list of living nodes. While their lists differ for a moment, two may claim from one lane; claims are
 * exclusive, so only pacing is off by that moment. Pure.
 */
import { createHash } from 'node:crypto'

/** Ids of the nodes by their claim to the destination, the one that `nodeFor` names first. */
export function nodesFor(destination: string, nodeIds: readonly string[]): string[] {
  const weights = nodeIds.map(id => ({ id, weight: weightOf(id, destination) }))
  return weights.sort((a, b) => (a.weight < b.weight ? 1 : -1)).map(({ id }) => id)
}

/** @param nodeIds not empty @returns the id of the node that delivers to the destination */
export function nodeFor(destination: string, nodeIds: readonly string[]): string {
  let best = nodeIds[0] ?? ''
  let bestWeight = ''
  if (nodeIds.length < 2) return best
  for (const id of nodeIds) {
    const weight = weightOf(id, destination)
    if (weight > bestWeight) [best, bestWeight] = [id, weight]
  }
  return best
}

function weightOf(id: string, destination: string): string {
  return createHash('sha256').update(`${id} ${destination}`).digest('hex')
}
