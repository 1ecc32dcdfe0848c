/** As whom the steps of a run change an audience. Pure. */
import type { Acting } from '../../audience/audience-parts.js'
import type { Run } from '../runs/run.js'

export function actingOf({ workspaceId, isSandbox }: Pick<Run, 'workspaceId' | 'isSandbox'>): Acting {
  return { workspaceId, isSandbox, source: 'automation' }
}
