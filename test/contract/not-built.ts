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
  {
    name: 'automations',
    status,
    paths: ['/api/v1/automations'],
    sections: ['Automation', 'Automations', 'decisions: Automations'],
    places: [
      'What the service does > Automations (multi-step flows) and campaigns',
      'States and transitions > Automation PATCH with status currently draft',
      'States and transitions > Automation PATCH with status currently active',
      'States and transitions > Automation PATCH with status currently paused',
      'States and transitions > Automation DELETE',
      'States and transitions > Automation run',
      'States and transitions > Full set of automation status',
      'States and transitions > Run statuses active completed failed',
    ],
  },
]
