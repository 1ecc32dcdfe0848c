/** The groups of the contract that no route serves yet. A route of one of them in the appliance makes the check fail. */
import type { NotBuilt } from './row.js'

const status = 'not built yet' as const

export const NOT_BUILT: readonly NotBuilt[] = [
  {
    name: 'campaigns',
    status,
    paths: ['/api/v1/campaigns'],
    sections: ['decisions: Campaigns'],
    places: [
      'Campaigns and templates > GET /campaigns',
      'Campaigns and templates > POST /campaigns',
      'Campaigns and templates > GET /campaigns/:id',
      'Campaigns and templates > POST /campaigns/:id/send/api',
      'Other resources > Campaign name subject template_id (all',
      'States and transitions > Campaign POST create',
      'States and transitions > Campaign POST send',
      'States and transitions > Campaign statuses after draft and',
    ],
  },
]
