/**
 * State machine of a campaign. Routes, command line and runner change a status only through this table. Pure.
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
 *   ·  refused    =  accepted, status unchanged    *  scheduled, if its time has not come
 *
 * Later events about the mail of a finished campaign are counted but never change its status.
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

/** @returns undefined if the act is refused */
export function statusAfter(status: CampaignStatus, act: CampaignAct): CampaignStatus | undefined {
  return TABLE[act][status]
}
