interface AboutCampaign {
  readonly campaignId: string
  readonly name: string
  readonly totalRecipients: number
}

/** In the API's names. */
export interface StatsFields {
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
    /** The recipients are fixed and the start time has come; precedes the first email. */
    'campaign.sent': ContactEventOf<'campaign.sent', AboutCampaign>
    /** All its emails are delivered or failed. */
    'campaign.completed': ContactEventOf<
      'campaign.completed',
      AboutCampaign & { readonly stats: StatsFields }
    >
  }
}
