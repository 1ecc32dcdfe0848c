/** Webhook event types, by subject. */

export const EVENT_GROUPS = {
  email: [
    'email.sent',
    'email.delivered',
    'email.opened',
    'email.clicked',
    'email.bounced',
    'email.failed',
    'email.complained',
  ],
  audience: [
    'contact.created',
    'contact.updated',
    'contact.deleted',
    'contact.subscribed',
    'contact.unsubscribed',
    'list.member_added',
    'list.member_removed',
    'form.submitted',
    'conversion.created',
  ],
  campaigns: [
    'campaign.sent',
    'campaign.completed',
    'campaign.winner_required',
    'campaign.waiting',
    'flow.triggered',
    'flow.completed',
  ],
} as const

export type EventName = (typeof EVENT_GROUPS)[keyof typeof EVENT_GROUPS][number]

/** A workspace's data in the REST API, whichever workspace is chosen. */
export function ofWorkspace(workspaceId: string, isSandbox: boolean): Readonly<Record<string, string>> {
  return { 'X-Workspace': workspaceId, 'X-Sandbox': String(isSandbox) }
}
