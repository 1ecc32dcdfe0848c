/** What campaigns add to the event log. Holds no logic. */

interface AboutCampaign {
  readonly campaignId: string
  readonly name: string
  readonly totalRecipients: number
}

/** As the API shows them. */
export interface ToldStats {
  readonly sends: number
  readonly delivered: number
  readonly opens: number
  readonly unique_opens: number
  readonly clicks: number
  readonly unique_clicks: number
  readonly bounces: number
  readonly complaints: number
  readonly unsubscribes: number
}

declare module '../events/event.js' {
  interface ContactEvents {
    /** Its recipients are fixed and its time has come: the first mail is about to be handed over. */
    'campaign.sent': ContactEventOf<'campaign.sent', AboutCampaign>
    /** All its mail is delivered or given up. */
    'campaign.completed': ContactEventOf<'campaign.completed', AboutCampaign & { readonly stats: ToldStats }>
  }
}
