import type { RenderQueue } from '../../content/rendering/render-queue.js'
import type { Services } from '../../db/services.js'
import type { HttpClient } from '../../world/net/fetch.js'
import type { CampaignParts } from '../model/campaign-parts.js'

export interface PreflightParts
  extends Pick<CampaignParts, 'send' | 'log'>, Pick<Services, 'hostname' | 'publicUrl'> {
  readonly renderQueue: RenderQueue
  /** @param isPermitted whether the workspace's settings allow private addresses */
  readonly outgoingCalls: (isPermitted: boolean) => { readonly http: HttpClient }
  /** Opens by people since that day, by mail client. */
  readonly findClientOpens: (workspaceId: string, since: number) => Promise<ReadonlyMap<string, number>>
}
