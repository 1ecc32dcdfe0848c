/** A node's share of what a site allows all of them. Pure. */
import type { SiteFacts } from '../delivery-agent.js'
import type { SiteLimits } from './site-pace.js'

/** This node among those that deliver to a site. */
export interface Sharing {
  readonly nodes: number
  /** From 0. */
  readonly rank: number
  /** Grows every few seconds, at all nodes at once. */
  readonly turn: number
}

/** Fewer connections than nodes go round. Shares of the rate add up to it at any moment. */
export function shareOfSite(facts: SiteFacts, { nodes, rank, turn }: Sharing): SiteLimits {
  const { connections, messagesPerMinute } = facts
  if (connections >= nodes)
    return {
      connections: Math.floor(connections / nodes) + (rank < connections % nodes ? 1 : 0),
      messagesPerMinute: messagesPerMinute / nodes,
    }
  const place = (((rank - turn * connections) % nodes) + nodes) % nodes
  return { connections: place < connections ? 1 : 0, messagesPerMinute: messagesPerMinute / connections }
}

/** Before it is known who else delivers to the site: what every node may take without asking. */
export function firstShare({ connections, messagesPerMinute }: SiteFacts, nodes: number): SiteLimits {
  return {
    connections: Math.max(1, Math.floor(connections / nodes)),
    messagesPerMinute: messagesPerMinute / nodes,
  }
}
