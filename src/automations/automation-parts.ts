/** What automations are handed, and the events that they add to the event log. Holds no logic. */
import type { AudienceParts } from '../audience/audience-parts.js'
import type { Queries } from '../db/database.js'
import type { SendParts } from '../msa/rest/send-email.js'
import type { HttpClient } from '../world/net/fetch.js'
import type { Log } from '../world/log.js'
import type { Random } from '../world/random.js'

export interface AutomationParts extends AudienceParts {
  readonly send: SendParts
  /**
   * Calls what webhook steps name, within the reach that strangers have.
   *
   * @param isPermitted whether the workspace's settings allow private addresses
   */
  readonly outgoingCalls: (isPermitted: boolean) => { readonly http: HttpClient }
  /** Whether the workspace has this campaign; `campaigns/` is of the same floor. */
  readonly hasCampaign: (db: Queries, workspaceId: string, id: string) => Promise<boolean>
  readonly log: Log
  readonly random: Random
}

/** With a way to tell the runner that runs are due. */
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
    /** A contact has entered an automation. */
    'flow.triggered': ContactEventOf<'flow.triggered', AboutRun>
    /** It has come to the end of it, or left it for another one. */
    'flow.completed': ContactEventOf<'flow.completed', AboutRun & { readonly exitReason: string }>
  }
}
