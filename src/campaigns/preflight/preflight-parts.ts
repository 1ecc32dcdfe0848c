import type { RenderQueue } from '../../content/rendering/render-queue.js'
import type { HttpClient } from '../../world/net/fetch.js'
import type { CampaignParts } from '../model/campaign-parts.js'

export interface PreflightParts extends Pick<CampaignParts, 'send' | 'log'> {
  readonly renderQueue: RenderQueue
  readonly hostname: string
  /** Without a trailing slash. */
  readonly publicUrl: string
  /** @param isPermitted whether the workspace's settings allow private addresses */
  readonly outgoingCalls: (isPermitted: boolean) => { readonly http: HttpClient }
  /** Opens by people since that day, by mail client. */
  readonly findClientOpens: (workspaceId: string, since: number) => Promise<ReadonlyMap<string, number>>
}
