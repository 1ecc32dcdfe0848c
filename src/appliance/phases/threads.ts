/** Threads that deliver, render and compose mail, and connections for calls to URLs of workspaces. */
import { RenderQueue } from '../../content/rendering/render-queue.js'
import { replaceablePool } from '../../mta/workers/worker-pool.js'
import { openAgent, openComposer, openJobs } from '../open-delivery.js'
import { openOutgoingCalls } from '../outgoing-calls.js'
import type { StoragePhase } from './storage.js'

export type ThreadsPhase = ReturnType<typeof openThreads>

export function openThreads({ appliance }: StoragePhase, closing: AsyncDisposableStack) {
  const jobLoader = openJobs(appliance)
  const agent = replaceablePool(openAgent(appliance))
  closing.defer(() => agent.terminate())
  const renderQueue = new RenderQueue({
    clock: appliance.world.clock,
    render: request => agent.render(request),
  })
  const calls = openOutgoingCalls(appliance)
  closing.defer(() => calls.close())
  const composer = openComposer(appliance)
  closing.defer(() => composer.close())
  return { jobLoader, agent, renderQueue, calls, composer }
}
