/** Dependencies of automations, and the events they add to the event log. */
import type { AudienceParts } from '../audience/audience-parts.js'
import type { Queries } from '../db/database.js'
import type { Services } from '../db/services.js'
import type { SendParts } from '../msa/rest/send-email.js'
import type { HttpClient } from '../world/net/fetch.js'
import type { ActingWorkspace } from '../accounts/workspace-store.js'
import { AppError } from '../core/errors.js'

export interface AutomationParts extends AudienceParts, Pick<Services, 'random' | 'log'> {
  readonly send: SendParts
  /**
   * HTTP client for webhook steps, under the egress policy for URLs that clients give.
   *
   * @param isPermitted whether the workspace's settings allow private addresses
   */
  readonly outgoingCalls: (isPermitted: boolean) => { readonly http: HttpClient }
  /** Passed in because `campaigns/` is in the same layer and cannot be imported. */
  readonly hasCampaign: (db: Queries, workspaceId: string, id: string) => Promise<boolean>
}

/** Includes the signal that runs may be due. */
export interface FlowParts extends AutomationParts {
  readonly wakeRunner: () => void
}

interface AboutRun {
  readonly automationId: string
  readonly runId: string
  readonly contactId: string
  readonly triggerType: string
}

declare module '../events/event.js' {
  interface ContactEvents {
    'flow.triggered': ContactEventOf<'flow.triggered', AboutRun>
    /** A run completed: the contact reached the end or moved to another automation. */
    'flow.completed': ContactEventOf<'flow.completed', AboutRun & { readonly exitReason: string }>
  }
}

export async function findLiveWorkspace(
  { send }: Pick<AutomationParts, 'send'>,
  id: string,
): Promise<ActingWorkspace | undefined> {
  try {
    return await send.senders.workspace(id)
  } catch (error) {
    if (error instanceof AppError && error.code === 'workspace_not_found') return undefined
    throw error
  }
}
