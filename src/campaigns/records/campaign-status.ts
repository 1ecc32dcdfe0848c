/**
 * The state machine of a campaign: one table of what each act does in each status.
 *
 * Read by the routes, the command line and the runner, which change a status by no other way. Pure.
 *
 *   act        draft      scheduled  sending    paused     completed  cancelled  failed
 *   edit       =          ·          ·          ·          ·          ·          ·
 *   delete     gone       ·          ·          ·          ·          ·          ·
 *   send       sending    ·          ·          ·          ·          ·          ·
 *   schedule   scheduled  ·          ·          ·          ·          ·          ·
 *   begin      ·          sending    =          ·          ·          ·          ·
 *   pause      ·          paused     paused     ·          ·          ·          ·
 *   resume     ·          ·          ·          sending *  ·          ·          ·
 *   cancel     ·          cancelled  cancelled  cancelled  ·          ·          ·
 *   complete   ·          ·          completed  ·          ·          ·          ·
 *   fail       ·          failed     failed     failed     ·          ·          ·
 *
 *   ·  is refused    =  is taken, and the status stays    *  scheduled, where its time has not come
 *
 * Whatever is final stays so: what the outside world says later of its mail is counted, and changes no status.
 */

export const CAMPAIGN_STATUSES = [
  'draft',
  'scheduled',
  'sending',
  'paused',
  'completed',
  'cancelled',
  'failed',
] as const
export type CampaignStatus = (typeof CAMPAIGN_STATUSES)[number]

export type CampaignAct =
  'edit' | 'delete' | 'send' | 'schedule' | 'begin' | 'pause' | 'resume' | 'cancel' | 'complete' | 'fail'

const TABLE: Readonly<Record<CampaignAct, Partial<Readonly<Record<CampaignStatus, CampaignStatus>>>>> = {
  edit: { draft: 'draft' },
  delete: { draft: 'draft' },
  send: { draft: 'sending' },
  schedule: { draft: 'scheduled' },
  begin: { scheduled: 'sending', sending: 'sending' },
  pause: { scheduled: 'paused', sending: 'paused' },
  resume: { paused: 'sending' },
  cancel: { scheduled: 'cancelled', sending: 'cancelled', paused: 'cancelled' },
  complete: { sending: 'completed' },
  fail: { scheduled: 'failed', sending: 'failed', paused: 'failed' },
}

/** @returns undefined where the act is refused */
export function statusAfter(status: CampaignStatus, act: CampaignAct): CampaignStatus | undefined {
  return TABLE[act][status]
}
