/** Rule -> test for campaigns. */
import { inFile, type Row } from '../row.js'

const records = inFile('campaigns/campaign-records')
const sending = inFile('campaigns/campaign-send')
const pace = inFile('campaigns/campaign-pace')
const archive = inFile('campaigns/archive-served')
const feeds = inFile('campaigns/feeds-served')
const reports = inFile('campaigns/campaign-report-served')
const usualHours = inFile('campaigns/campaign-usual-hour')
const testing = inFile('campaigns/ab-test-served')
const pausing = inFile('campaigns/campaign-pause')
const TABLE = 'Campaigns and templates'
const ADDED =
  'decisions: Added after the whole contract was tried from outside > **Campaigns** A scheduled campaign evaluates'
const STATUSES = 'States and transitions > Campaign statuses after draft and'

export const CAMPAIGN_ROWS: readonly Row[] = [
  {
    rule: 'name, subject, template_id and one of list_id and segment_id; made as a draft',
    from: [
      `${TABLE} > POST /campaigns`,
      'Other resources > Campaign name subject template_id (all',
      'States and transitions > Campaign POST create',
    ],
    answers: [
      'POST /api/v1/campaigns: template_not_found',
      'POST /api/v1/campaigns: not_found',
      'PATCH /api/v1/campaigns/{id}: template_not_found',
    ],
    tests: [
      records('a campaign is made as a draft, read, listed, changed and deleted'),
      records('what cannot be a campaign is refused by name'),
    ],
  },
  {
    rule: 'lists are filtered by status; one is shown with stats and rates',
    from: [`${TABLE} > GET /campaigns`, `${TABLE} > GET /campaigns/:id`],
    tests: [
      records('a campaign is made as a draft, read, listed, changed and deleted'),
      sending('a campaign goes to everybody in the list who may be mailed, once each, and is completed'),
    ],
  },
  {
    rule: 'send answers total_recipients, batches_queued and excluded with 202, and delivery goes on by itself',
    from: [`${TABLE} > POST /campaigns/:id/send/api`, 'States and transitions > Campaign POST send'],
    answers: [
      'POST /api/v1/campaigns/{id}/send/api: missing_from_email',
      'POST /api/v1/campaigns/{id}/send/api: domain_invalid',
      'POST /api/v1/campaigns/{id}/send/api: template_not_found',
      'POST /api/v1/campaigns/{id}/send/api: invalid_schedule',
      'POST /api/v1/campaigns/{id}/send/api: conflict',
    ],
    tests: [
      sending('a campaign goes to everybody in the list who may be mailed, once each, and is completed'),
      sending('a campaign is checked for completeness when it is sent'),
      sending('what was sent is neither changed, sent again nor deleted'),
    ],
  },
  {
    rule: 'making a campaign takes an Idempotency-Key, sending one demands it; neither happens twice',
    from: ['Email > Applies to POST /email/send POST'],
    answers: [
      'POST /api/v1/campaigns: idempotency_conflict',
      'POST /api/v1/campaigns: conflict',
      'POST /api/v1/campaigns/{id}/send/api: idempotency_conflict',
    ],
    tests: [
      records('a campaign made with an Idempotency-Key is made once'),
      sending('sending takes an Idempotency-Key, without which it is refused, and happens once'),
      sending('a request that comes while the first is in flight is a conflict, and sends nothing'),
    ],
  },
  {
    rule: 'a segment is evaluated once, when the campaign starts; GET /campaigns/:id/audience counts who is left out, before and after',
    from: [`${TABLE} > POST /campaigns/:id/send/api`, ADDED],
    tests: [
      records('the audience says who is meant, who may be mailed, and why the others may not'),
      sending('a scheduled campaign evaluates its segment when it starts, and never again'),
      sending('who unsubscribes, bounces, is suppressed or deleted before the hand-over is skipped'),
    ],
  },
  {
    rule: 'pause holds what is queued, resume releases it, cancel withdraws it',
    from: [ADDED],
    tests: [
      pausing('pause holds what is queued, also over a command of another process; resume sends each once'),
      pausing('cancel withdraws what is held, and its recipients read cancelled'),
    ],
  },
  {
    rule: 'POST /campaigns/:id/check renders the mail for every recipient without sending it; GET /campaigns/:id/check says what it found (additive)',
    from: [`${TABLE} > POST /campaigns`],
    answers: ['POST /api/v1/campaigns/{id}/check: conflict'],
    tests: [
      inFile('campaigns/campaign-check')(
        'it finds who lacks which merge value, and whose links are empty or broken',
      ),
      inFile('campaigns/campaign-check')('what would refuse the campaign is found before it is sent'),
    ],
  },
  {
    rule: 'POST /campaigns/:id/duplicate and POST /campaigns/:id/resend create a draft; a resend goes to recipients who have not opened, or not clicked (additive)',
    from: [`${TABLE} > POST /campaigns`],
    answers: ['POST /api/v1/campaigns/{id}/resend: conflict'],
    tests: [
      records(
        'a duplicate is a draft with the same content, audience and settings, whatever the campaign is',
      ),
      inFile('campaigns/campaign-results')(
        'a resend goes to those who had it and have not opened it, or not clicked, when it starts',
      ),
    ],
  },
  {
    rule: 'draft, scheduled, sending, paused, completed, cancelled, failed; each act has its statuses, else 409',
    from: [STATUSES],
    answers: [
      'PATCH /api/v1/campaigns/{id}: conflict',
      'DELETE /api/v1/campaigns/{id}: conflict',
      'POST /api/v1/campaigns/{id}/pause: conflict',
      'POST /api/v1/campaigns/{id}/resume: conflict',
      'POST /api/v1/campaigns/{id}/cancel: conflict',
    ],
    tests: [
      sending('pause stops the hand-over, resume continues with the rest, cancel is final'),
      sending('a campaign paused before its time is scheduled again when it is resumed, or cancelled'),
      sending('cancel takes back what is still queued'),
      sending('what was sent is neither changed, sent again nor deleted'),
      pace('a domain that is taken away before its time comes fails the campaign, which says so'),
    ],
  },
  {
    rule: 'a test send is refused for what the campaign would be',
    from: [`${TABLE} > POST /campaigns/:id/send/api`],
    answers: [
      'POST /api/v1/campaigns/{id}/test: limit_reached',
      'POST /api/v1/campaigns/{id}/test: missing_from_email',
      'POST /api/v1/campaigns/{id}/test: domain_invalid',
      'POST /api/v1/campaigns/{id}/test: template_not_found',
    ],
    tests: [sending('a test is refused for what the campaign would be refused for, and for limits')],
  },
  {
    rule: 'with a sandbox key a campaign runs to its end without mail',
    from: ['decisions: Email > Sandbox each workspace has a'],
    tests: [sending('with a sandbox key a campaign runs to its end without mail, and the simulator plays')],
  },
  {
    rule: 'ab_test (additive): a sample gets the variants in equal parts, the others the winner; GET /campaigns/:id/ab-test tells how it stands',
    from: [`${TABLE} > POST /campaigns`],
    answers: ['GET /api/v1/campaigns/{id}/ab-test: not_found'],
    tests: [
      testing('a sample gets the variants in equal parts, and the rest the one that people clicked'),
      testing('where the lead may be chance, a test may wait for a person'),
      testing('what was bought counts for the variant that the buyer got, or for the others'),
      testing('a cancelled test sends no rest, and a paused one is not decided'),
      testing('a scheduled test draws its sample from who is there at its start'),
      testing('what cannot be a test is refused by name'),
    ],
  },
  {
    rule: 'POST /campaigns/:id/ab-test/winner decides once, by hand (additive)',
    from: [`${TABLE} > POST /campaigns`],
    answers: [
      'POST /api/v1/campaigns/{id}/ab-test/winner: not_found',
      'POST /api/v1/campaigns/{id}/ab-test/winner: conflict',
    ],
    tests: [testing('a person chooses the winner, once, and the archive shows it')],
  },
  {
    rule: 'feeds (additive): GET, POST /feeds; GET, PATCH, DELETE /feeds/:id; GET /feeds/:id/runs; new items are sent as a campaign on a schedule',
    from: [`${TABLE} > POST /campaigns`],
    answers: [
      'GET /api/v1/feeds: forbidden',
      'GET /api/v1/feeds/{id}: not_found',
      'GET /api/v1/feeds/{id}/runs: not_found',
      'DELETE /api/v1/feeds/{id}: not_found',
      'POST /api/v1/feeds: limit_reached',
      'POST /api/v1/feeds: not_found',
      'POST /api/v1/feeds: template_not_found',
      'PATCH /api/v1/feeds/{id}: template_not_found',
      'PATCH /api/v1/feeds/{id}: conflict',
      'PATCH /api/v1/feeds/{id}: precondition_failed',
      'DELETE /api/v1/feeds/{id}: precondition_failed',
    ],
    tests: [
      feeds('a feed is made, read, listed, changed and deleted, and the activity log says so'),
      feeds('new items are sent once to everybody at the scheduled time, and what was there before is not'),
      feeds('without a new item nothing is sent, and the history says so'),
      feeds('settings that cannot be meant are refused by name'),
      feeds('a feed that was run while its new URL was being read is not changed'),
      feeds('two people who edit a feed do not overwrite each other'),
      feeds('a workspace has at most a hundred feeds'),
      feeds(
        'a run fails if template, list or sender are gone, and enabled feeds keep them from being deleted',
      ),
    ],
  },
  {
    rule: 'POST /feeds/:id/preview and POST /feeds/:id/run render or send what is new now (additive)',
    from: [`${TABLE} > POST /campaigns`],
    answers: [
      'POST /api/v1/feeds/{id}/preview: missing_from_email',
      'POST /api/v1/feeds/{id}/preview: template_not_found',
      'POST /api/v1/feeds/{id}/run: conflict',
    ],
    tests: [
      feeds('a preview renders what would be sent, and sends and remembers nothing'),
      feeds(
        'on request a run is at once, its answer kept for the same key; more than max_items are left out for good',
      ),
      feeds('of two runs at the same time one sends, and the other gives way'),
      feeds(
        'a run fails if template, list or sender are gone, and enabled feeds keep them from being deleted',
      ),
    ],
  },
  {
    rule: 'a campaign with archive: true is in the public archive from its start on; GET /archive tells where (additive)',
    from: [`${TABLE} > POST /campaigns`],
    answers: ['GET /api/v1/archive: forbidden'],
    tests: [
      archive('what is archived is listed once it is sent, newest first, and nothing else is'),
      archive('a campaign is taken out of the archive and put back after it was sent, if it was in it'),
    ],
  },
  {
    rule: 'GET /campaigns/:id/report, /segments/:segment_id and /click-map tell when, where and on which links it was opened and clicked (additive)',
    from: [`${TABLE} > GET /campaigns/:id`],
    answers: [
      'GET /api/v1/campaigns/{id}/report: not_found',
      'GET /api/v1/campaigns/{id}/segments/{segment_id}: conflict',
      'GET /api/v1/campaigns/{id}/click-map: not_found',
    ],
    tests: [
      reports('the report says when, at whose provider, in which segment and on which link'),
      reports('hours are counted up to the fourth midnight after the start, then days up to ninety'),
      reports('badges stand where links are, whatever the HTML'),
    ],
  },
  {
    rule: 'GET /campaigns/:id/click-map?variant= tells of one variant of an A/B test (additive)',
    from: [`${TABLE} > GET /campaigns/:id`],
    tests: [testing('the click map of a variant shows its own email with the clicks of its sample')],
  },
  {
    rule: 'send_time: usual_hour sends each email at the hour at which its recipient usually visits, within 24 hours of the start (additive)',
    from: [`${TABLE} > POST /campaigns`],
    tests: [
      usualHours('each mail goes out at the hour in which its recipient visits most, once, through a pause'),
      usualHours('a visit by a person counts for its hour, and is erased with the person'),
      usualHours('a usual hour is within a day of the start'),
    ],
  },
]
