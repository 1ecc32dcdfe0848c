/**
 * The delivery agent of `mta.capture`: every mail goes to the local inbox, none leaves the machine.
 *
 * Called by the queue through `queue/delivery-agent.ts` in place of the SMTP agent. Renders exactly as that one does, so
 * that what is caught is what would have left. Never dials, never looks a name up. Fails: never rejects.
 */
import { concludeShutdown } from './conclude.js'
import type { DeliveryAgent } from '../queue/delivery-agent.js'
import { openRenderer, type RenderParts } from './render.js'

export function openCaptureAgent(parts: RenderParts): DeliveryAgent {
  const render = openRenderer(parts)
  return {
    async deliver(job, signal) {
      const rendering = await render(job)
      if (rendering.kind !== 'rendered') return rendering
      if (signal.aborted) return concludeShutdown()
      return {
        kind: 'delivered',
        tried: [],
        summary: 'caught in the local inbox',
        remoteMta: 'capture',
        captured: rendering.message,
      }
    },
    async close() {
      // Nothing is open.
    },
  }
}
