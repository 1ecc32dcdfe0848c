/** Rules that no page of the contract states, parts of it that are not served yet, and answers that no test can provoke. */

/** Named by tests like places of the contract. Those of `LIMITS` are not repeated here. */
export const OWN_RULES: readonly string[] = [
  'Postroad > a sandbox key neither sees nor touches live data',
  'Postroad > routes for this machine alone are hidden from others',
  'Postroad > a body has a bounded number of levels and values',
  'Postroad > event contact.deleted',
  'Postroad > event email.failed',
  'Postroad > event campaign.winner_required',
  'Postroad > event campaign.waiting',
  'Postroad > the API describes itself, without anything internal',
  'Postroad > a local inbox that cannot be read is a 500',
]

/** A part of the contract that no route serves yet, or that is not of the REST API. */
export interface NotBuilt {
  readonly name: string
  /** No operation of the appliance may begin with one of these; if one does, the group needs tests. */
  readonly paths: readonly string[]
  /** Sections of the contract that concern nothing else. */
  readonly sections: readonly string[]
  /** Single places in other sections. */
  readonly places: readonly string[]
}

const ADDED = 'decisions: Added after the whole contract'
const LATER = "decisions: Added after a day's work"

export const NOT_BUILT: readonly NotBuilt[] = [
  {
    name: 'administration',
    paths: ['/api/admin/'],
    sections: [],
    places: [`${ADDED} > Admin API under /api/admin/v1 operator`, `${ADDED} > Upgrades The schema of commit`],
  },
  {
    name: 'what a day of work in the console added',
    paths: ['/compat/'],
    sections: [],
    places: [
      `${LATER} > Audience of a campaign audience`,
      `${LATER} > Capture is a state of`,
      `${LATER} > Webhooks POST /webhooks/triggers takes events`,
      `${LATER} > Foreign APIs (off unless named`,
      `${LATER} > Pools pool on sends campaigns`,
    ],
  },
]

/** Described answers that no test can bring about, each with the reason. */
export const UNPROVOKED: Readonly<Record<string, string>> = {
  'GET /health: internal_error': 'a broken database is reported in the answer itself, with 503',
  'GET /health/ready: internal_error': 'as with health',
}
