/** Rule -> test for automations, their steps and their runs. */
import { inFile, type Row } from '../row.js'

const flows = inFile('automations/automations-served')
const runs = inFile('automations/runs-served')

const MADE = flows(
  'an automation is created as a draft, shown with steps and run statistics, listed and deleted',
)
const DEFAULTS = flows('a step without config gets the defaults of its type; snake_case is accepted')
const FAULTS = flows('an invalid config gives a 400 that names the field, and nothing is created')
const BRANCHES = flows('branches may refer to client-chosen step ids, which are replaced by new ones')
const STEPS = flows('steps are added, updated, reordered in one request and deleted; positions have no gaps')
const STATES = flows(
  'status changes other than draft to active, active to paused and paused to active give a 409',
)
const MISSING = flows('activation is refused for missing references and for loops without a delay or wait')
const BOUNDS = flows('a workspace has at most 500 automations with at most 200 steps each')
const MONTH = runs('a month of delays, waits and branches, step by step')
const LISTED = runs('runs are listed by status, cancelled, and shown with their trigger')
const BY_HAND = runs('the API starts runs only for contacts, and only in active automations')
const PAUSED = runs('runs are paused with their automation and cancelled when it is deleted')
const editor = inFile('automations/flow-served')
const REPLACED = editor('a flow is replaced at once: known steps stay, others are new, the rest is deleted')
const UNCHANGED = editor('a flow is not replaced over the change of somebody else, nor by nonsense')
const ACTIVE = editor('an active automation takes steps without faults only, and keeps its trigger')
const CHECKED = editor('everything wrong with an automation is told step by step, stored or not')
const TRIED = editor('an automation is tried on a contact, as it is stored or as it is written')
const TRIGGERS = runs('contact events start runs: created, joined a list, tagged, purchased, viewed a page')
const WEBHOOK = runs('a webhook step to a non-public address is retried, then the run fails')

const at = (method: string, path = '') => `Automations > ${method} /automations${path}`
const api = (method: string, path: string, code: string) => `${method} /api/v1/automations${path}: ${code}`

export const AUTOMATION_ROWS: readonly Row[] = [
  {
    rule: 'an automation has name, trigger_type, trigger_config and steps; retrieval adds run statistics',
    from: [
      'What the service does > Automations (multi-step flows) and campaigns',
      'Automation > Creation fields name (required) trigger_type',
      at('POST'),
      at('GET'),
      at('GET', '/:id'),
      at('DELETE', '/:id'),
      'States and transitions > Automation DELETE',
    ],
    tests: [MADE],
  },
  {
    rule: 'a step has step_type, config and position; a config that is left out has the defaults of its type',
    from: [
      'Automation > A step has step_type config',
      ...['email', 'delay', 'condition', 'tag', 'add_to_list, remove_from_list', 'update_attribute'].map(
        type => `Automation > ${type}`,
      ),
      ...['webhook', 'wait_for_event', 'move_to_flow'].map(type => `Automation > ${type}`),
    ],
    tests: [DEFAULTS, FAULTS, MONTH],
  },
  {
    rule: 'steps are added, read (GET /automations/:id/steps/:stepId), changed, reordered all or none, and deleted; ids of the request are mapped in branches',
    from: [
      at('POST', '/:id/steps'),
      at('PUT', '/:id/steps'),
      at('PATCH', '/:id/steps/:stepId'),
      at('DELETE', '/:id/steps/:stepId'),
      'decisions: Automations > steps[] at creation may carry',
    ],
    tests: [BRANCHES, STEPS, MISSING],
  },
  {
    rule: 'a flow is replaced as a whole (PUT /automations/:id/flow), checked (POST /automations/:id/check), tried on a contact without effect (POST /automations/:id/dry-run), and its runs are counted by step (GET /automations/:id/step-counts)',
    from: [],
    answers: [
      api('PUT', '/{id}/flow', 'not_found'),
      api('PUT', '/{id}/flow', 'conflict'),
      api('PUT', '/{id}/flow', 'precondition_failed'),
      api('POST', '/{id}/check', 'not_found'),
      api('POST', '/{id}/dry-run', 'not_found'),
      api('POST', '/{id}/dry-run', 'contact_not_found'),
      api('GET', '/{id}/step-counts', 'not_found'),
    ],
    tests: [REPLACED, UNCHANGED, ACTIVE, CHECKED, TRIED],
  },
  {
    rule: 'a workspace has at most 500 automations, one of these at most 200 steps',
    from: [],
    answers: [
      api('POST', '', 'limit_reached'),
      api('POST', '/{id}/duplicate', 'limit_reached'),
      api('POST', '/{id}/steps', 'limit_reached'),
    ],
    tests: [BOUNDS],
  },
  {
    rule: 'draft to active, active and paused in both directions, all else a conflict',
    from: [
      at('PATCH', '/:id'),
      ...['draft', 'active', 'paused'].map(
        status => `States and transitions > Automation PATCH with status currently ${status}`,
      ),
      'States and transitions > Full set of automation status',
      'decisions: Automations > Status draft active paused other',
    ],
    answers: [api('PATCH', '/{id}', 'conflict')],
    tests: [STATES, MISSING],
  },
  {
    rule: 'what starts runs: events, segments, dates, by hand; once or every time, for whom conditions mean',
    from: [
      at('POST', '/:id/trigger'),
      'decisions: Automations > trigger_type and trigger_config contact_created {}',
    ],
    answers: [api('POST', '/{id}/trigger', 'contact_not_found'), api('POST', '/{id}/trigger', 'conflict')],
    tests: [TRIGGERS, BY_HAND],
  },
  {
    rule: 'runs (GET /automations/:id/runs/:runId) are active, completed, failed, paused or cancelled; they pause with their automation and can be cancelled',
    from: [
      'Automation > Run status values active completed',
      'States and transitions > Automation run',
      'States and transitions > Run statuses active completed failed',
      at('GET', '/:id/runs'),
      at('POST', '/:id/runs/:runId/cancel'),
      'decisions: Automations > Run id automation_id contact_id contact_email',
    ],
    answers: [api('POST', '/{id}/runs/{runId}/cancel', 'conflict')],
    tests: [LISTED, PAUSED, WEBHOOK],
  },
]
