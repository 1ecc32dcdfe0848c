/**
 * Answers that several statements compose show one moment: what was before a change or what came of it, wherever between their statements the
 * change commits.
 */
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { sql } from 'kysely'
import { abTestRoutes } from '../../src/campaigns/rest/ab-test-routes.js'
import { reportRoutes } from '../../src/campaigns/rest/report-routes.js'
import { reportRoute } from '../../src/analytics/statistics/report-route.js'
import { meRoutes } from '../../src/accounts/operators/me-routes.js'
import { findOperator, listOperators } from '../../src/accounts/operators/operator-store.js'
import { readMessages } from '../../src/appliance/erasure/export-store.js'
import { listTimeline } from '../../src/appliance/timeline/timeline-store.js'
import { bulkContactRoutes } from '../../src/audience/contacts/bulk-routes.js'
import { contactRoutes } from '../../src/audience/contacts/contact-routes.js'
import { findContactsBySeq } from '../../src/audience/contacts/contact-store.js'
import { formRoutes } from '../../src/audience/forms/form-routes.js'
import { exportContacts } from '../../src/audience/transfer/export-contacts.js'
import { importRoutes } from '../../src/audience/transfer/import-routes.js'
import { automationRoutes } from '../../src/automations/flows/automation-routes.js'
import { flowRoutes } from '../../src/automations/runs/flow-routes.js'
import { runRoutes } from '../../src/automations/runs/run-routes.js'
import { inboundRoutes } from '../../src/inbound/inbound-routes.js'
import { LANGUAGES } from '../../src/http/public/languages/language.js'
import { openLinkKeys } from '../../src/mail/links/link-keys.js'
import { makeSubscriberToken } from '../../src/mail/links/subscriber-link.js'
import { preferencesPages } from '../../src/tracking/subscription-pages.js'
import { listNodes } from '../../src/cluster/node-store.js'
import { findImage, listImages } from '../../src/content/media/media-store.js'
import type { Database, Queries } from '../../src/db/database.js'
import { findDomain, listDomains, listDomainsOfAll } from '../../src/deliverability/domains/domain-store.js'
import type { Route } from '../../src/http/route.js'
import { recipientBucket } from '../../src/messages/message-store.js'
import { messageAdminRoutes } from '../../src/msa/log/message-admin-routes.js'
import { searchMessages, withDeliveryStates } from '../../src/msa/log/message-search-store.js'
import { emailRoutes } from '../../src/msa/rest/email-routes.js'
import { measureQueue } from '../../src/queue/operator/queue-status-store.js'
import { findDelivery, listDeliveries } from '../../src/webhooks/log/delivery-log-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { changingDatabase, eachDatabaseWithConnections } from '../support/db/change-between.js'
import { insertRows } from '../support/db/rows.js'
import type { Rows } from './migration-rows.js'

interface Answer {
  readonly answer: string
  readonly rows: Rows
  readonly reads: readonly ((database: Database) => Promise<unknown>)[]
  /** Statements of one transaction, and of one that undoes it. */
  readonly change: readonly string[]
  readonly undo: readonly string[]
}

const [NOW, LATER] = [1_767_607_200_000, 1_767_610_800_000]
const TODAY = Math.floor(NOW / 86_400_000) * 86_400_000
const PAGE = { limit: 20, offset: 0 }
const id = (number: number) => `01990000-0000-7000-8000-${String(number).padStart(12, '0')}`
const [ONE, TWO] = [id(1), id(2)]
/** Number of the first contact of the first audience. */
const ANN = 4_294_967_297

function must<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`${what} is missing`)
  return value
}

/** Asks a route as the full-access key of workspace w1 and as an owner of everything. */
async function ask(routes: readonly Route[], operationId: string, params = {}, query = {}): Promise<unknown> {
  const route = must(
    routes.find(({ head }) => head.operationId === operationId),
    operationId,
  )
  const actor = { type: 'operator', id: 'o1', name: 'ann@example.com' }
  const request = {
    principal: { workspaceId: 'w1', isSandbox: false, permissions: ['*'], actor },
    operator: {
      id: 'o1',
      email: 'ann@example.com',
      name: 'Ann',
      grants: [{ workspaceId: '*', role: 'owner' }],
      credential: { kind: 'session', id: 's1' },
      confirmedAt: NOW,
      actor,
    },
    params,
    query,
  }
  const { value, etag } = await route.handle(request as never)
  return { value, etag }
}

const parts = (database: Database): never =>
  ({
    database,
    clock: new FakeClock(NOW),
    findSiteWaits: async () => new Map(),
    send: { senders: { workspace: async () => undefined } },
  }) as never

async function textOf(pieces: AsyncIterable<string>): Promise<string> {
  let text = ''
  for await (const piece of pieces) text += piece
  return text
}

async function rowsOf(pages: AsyncIterable<readonly object[]>): Promise<object[]> {
  const rows: object[] = []
  for await (const page of pages) rows.push(...page)
  return rows
}

const CONTENT = {
  id: ONE,
  workspace_id: 'w1',
  from_address: 'me@sender.test',
  subject: 'Hello',
  text: 'Hello.\n',
  track_opens: 0,
  track_clicks: 0,
  created_at: NOW,
}
const MESSAGE = {
  id: TWO,
  workspace_id: 'w1',
  content_id: ONE,
  recipient: 'ann@one.test',
  recipient_bucket: recipientBucket('ann@one.test'),
  status: 'sent',
  is_sandbox: 0,
  created_at: NOW,
  sent_at: NOW,
}
const QUEUED = {
  message_id: TWO,
  workspace_id: 'w1',
  destination: 'one.test',
  priority: 0,
  lane: 'one.test/0/w1',
  attempts: 1,
  next_attempt_at: LATER,
  expires_at: LATER,
  is_held: 0,
  was_handed_over: 0,
  enqueued_at: NOW,
  content_id: ONE,
  recipient: 'ann@one.test',
}
const CONTACT = {
  seq: ANN,
  audience: 1,
  subscribed: 1,
  is_bounced: 0,
  created_at: NOW,
  updated_at: NOW,
  id: ONE,
  email: 'ann@one.test',
  search_text: 'ann@one.test',
  attributes: '{}',
}
const AUDIENCE = {
  workspace_id: 'w1',
  last_contact: 0,
  contacts: 1,
  unsubscribed: 0,
  bounced: 0,
  unsubscribed_bounced: 0,
}
const LIST = {
  workspace_id: 'w1',
  type: 'static',
  is_public: 0,
  double_opt_in: 0,
  member_count: 1,
  created_at: NOW,
  updated_at: NOW,
}
const AUTOMATION = {
  seq: 1,
  id: ONE,
  workspace_id: 'w1',
  is_sandbox: 0,
  name: 'Welcome',
  status: 'active',
  trigger_type: 'manual',
  trigger_config: '{"frequency":"once"}',
  runs_active: 1,
  runs_completed: 0,
  runs_failed: 0,
  runs_cancelled: 0,
  created_at: NOW,
  updated_at: NOW,
}
const DELAY = { automation: 1, step_type: 'delay', config: '{"duration":1,"unit":"days"}' }
const RUN = {
  id: ONE,
  automation: 1,
  workspace_id: 'w1',
  is_sandbox: 0,
  contact_id: ONE,
  contact_email: 'ann@one.test',
  status: 'active',
  step: 1,
  wait: 'time',
  due_at: LATER,
  steps_done: 0,
  failures: 0,
  trigger_type: 'manual',
  trigger_data: '{}',
  started_at: NOW,
}
const CAMPAIGN = {
  id: ONE,
  workspace_id: 'w1',
  is_sandbox: 0,
  name: 'January',
  subject: 'News',
  template_id: ONE,
  list_id: ONE,
  status: 'sending',
  created_at: NOW,
  updated_at: NOW,
  started_at: NOW,
  who: '{"list":1}',
  recipients: 10,
  ab_test: JSON.stringify({
    ...{ metric: 'open_rate', samplePercent: 50, sampleSize: null, waitHours: 4, decision: 'automatic' },
    variants: [{ subject: 'One' }, { subject: 'Two' }],
  }),
}
const DOMAIN = { owner: 'w1', verification_token: 'token', is_vouched: 0, created_at: NOW }
const KEY = { domain_id: ONE, private_key: 'sealed', public_key: 'public', created_at: NOW }
const INBOUND = {
  seq: 1,
  body_id: 'body',
  received_at: NOW,
  session: 'session',
  peer_address: '192.0.2.1',
  helo_name: 'mx.two.test',
  envelope_sender: '',
  recipients: '[]',
  size: 36,
  tries: 0,
}
const DELIVERED = [
  `insert into attempts (message_id, number, started_at, finished_at, kind, summary, tried)
    values ('${TWO}', 1, ${NOW}, ${NOW}, 'delivered', '250 ok', '[]')`,
  `update messages set status = 'delivered', delivered_at = ${NOW} where id = '${TWO}'`,
  `delete from queue where message_id = '${TWO}'`,
]
const UNDELIVERED = [
  `delete from attempts where message_id = '${TWO}'`,
  `update messages set status = 'sent', delivered_at = null where id = '${TWO}'`,
  `insert into queue (${Object.keys(QUEUED).join()}) values (${Object.values(QUEUED)
    .map(value => (typeof value === 'number' ? value : `'${value}'`))
    .join()})`,
]

const ANSWERS: readonly Answer[] = [
  {
    answer: 'the deliveries of a webhook with their attempts',
    rows: {
      webhook_subscriptions: [
        {
          id: ONE,
          workspace_id: 'w1',
          is_sandbox: 0,
          event: 'email.sent',
          target_url: 'https://hooks.example/',
          secret: 'whsec_',
          created_at: NOW,
        },
      ],
      webhook_payloads: [{ seq: 1, event: 'email.sent', body: '{}', created_at: NOW }],
      webhook_deliveries: [
        {
          id: TWO,
          subscription_id: ONE,
          payload: 1,
          status: 'pending',
          attempts: 0,
          attempts_before: 0,
          next_attempt_at: NOW,
          created_at: NOW,
        },
      ],
    },
    reads: [
      ({ slowReader }) => listDeliveries(slowReader, ONE, {}, PAGE),
      ({ reader }) => findDelivery(reader, TWO),
    ],
    change: [
      `insert into webhook_attempts (delivery_id, number, started_at, duration_ms, status_code)
        values ('${TWO}', 1, ${NOW}, 5, 500)`,
      `update webhook_deliveries set attempts = 1, next_attempt_at = ${LATER}`,
    ],
    undo: [
      'delete from webhook_attempts',
      `update webhook_deliveries set attempts = 0, next_attempt_at = ${NOW}`,
    ],
  },
  {
    answer: 'an email with its trace, its place in the queue and its bounce',
    rows: { message_contents: [CONTENT], messages: [MESSAGE], queue: [QUEUED] },
    reads: [
      database => ask(emailRoutes(parts(database)), 'getEmail', { messageId: TWO }),
      database => ask(emailRoutes(parts(database)), 'getEmailStatus', { messageId: TWO }),
      database => ask(emailRoutes(parts(database)), 'listEmails'),
      database =>
        ask(
          messageAdminRoutes({
            ...(parts(database) as object),
            returnPath: () => 'return@sender.test',
          } as never),
          'getMessage',
          { messageId: TWO },
        ),
      async ({ reader }) => {
        const found = await searchMessages(reader, { workspaceId: 'w1' }, ['w1'], 10)
        return (await withDeliveryStates(reader, found.messages)).map(
          ({ status, deliveryState }) => `${status} ${deliveryState}`,
        )
      },
    ],
    change: DELIVERED,
    undo: UNDELIVERED,
  },
  {
    answer: "the emails of a person's export with their attempts",
    rows: { message_contents: [CONTENT], messages: [MESSAGE], queue: [QUEUED] },
    reads: [
      ({ exportReader }) =>
        rowsOf(
          readMessages(exportReader, {
            workspaceIds: ['w1'],
            email: 'ann@one.test',
            contactIds: [ONE],
          } as never),
        ),
    ],
    change: DELIVERED,
    undo: UNDELIVERED,
  },
  {
    answer: 'the depth of the queue by destination',
    rows: { message_contents: [CONTENT], messages: [MESSAGE], queue: [QUEUED] },
    reads: [({ slowReader }) => measureQueue(slowReader, ['one.test'])],
    change: DELIVERED,
    undo: UNDELIVERED,
  },
  {
    answer: 'a contact with its lists and tags',
    rows: {
      audiences: [AUDIENCE],
      contacts: [CONTACT],
      lists: [
        { ...LIST, id: ONE, name: 'News' },
        { ...LIST, id: TWO, name: 'Offers' },
      ],
      list_members: [
        { list: 1, contact: ANN, added_at: NOW },
        { list: 2, contact: ANN, added_at: NOW },
      ],
    },
    reads: [
      database => ask(contactRoutes(parts(database)), 'getContact', { id: ONE }),
      database => ask([...bulkContactRoutes(parts(database), {} as never)], 'listDuplicateContacts'),
      ({ exportReader }) => textOf(exportContacts(exportReader, 'w1', {}, NOW)),
    ],
    change: ['delete from list_members where list = 2', `update contacts set first_name = 'Ann'`],
    undo: [
      `insert into list_members (list, contact, added_at) values (2, ${ANN}, ${NOW})`,
      'update contacts set first_name = null',
    ],
  },
  {
    answer: 'the timeline of a contact',
    rows: { audiences: [AUDIENCE], contacts: [CONTACT], automations: [AUTOMATION], automation_runs: [RUN] },
    reads: [
      async ({ slowReader }) => {
        const [ann] = await findContactsBySeq(slowReader, [ANN])
        return listTimeline(slowReader, 'w1', must(ann, 'the contact'), PAGE)
      },
    ],
    change: [`update automation_runs set status = 'completed', ended_at = ${LATER}`],
    undo: [`update automation_runs set status = 'active', ended_at = null`],
  },
  {
    answer: 'the lists of a preferences page, and which of them the contact is in',
    rows: {
      workspaces: [
        {
          id: ONE,
          name: 'Acme',
          currency: 'EUR',
          timezone: 'UTC',
          attribution: 1,
          hourly_limit: 0,
          daily_limit: 0,
          allow_private_webhooks: 0,
          created_at: NOW,
        },
      ],
      audiences: [{ ...AUDIENCE, workspace_id: ONE }],
      contacts: [CONTACT],
      lists: [{ ...LIST, workspace_id: ONE, id: ONE, name: 'News', is_public: 1 }],
      list_members: [{ list: 1, contact: ANN, added_at: NOW }],
    },
    reads: [
      database => {
        const linkKeys = openLinkKeys([{ version: 1, secret: Buffer.alloc(32, 1) }])
        const subscriber = { workspaceId: ONE, messageId: TWO, recipient: 'ann@one.test' }
        const token = makeSubscriberToken(linkKeys, 'preferences', subscriber)
        const clock = new FakeClock()
        const [page] = preferencesPages({ database, linkKeys, clock } as never)
        return must(page, 'the page').handle({ params: { token }, texts: LANGUAGES.en } as never)
      },
    ],
    change: [`update lists set name = 'Offers'`, 'delete from list_members'],
    undo: [
      `update lists set name = 'News'`,
      `insert into list_members (list, contact, added_at) values (1, ${ANN}, ${NOW})`,
    ],
  },
  {
    answer: 'an inbound mail with all of its parts, or none',
    rows: {
      inbound_mails: [INBOUND],
      inbound_parts: [
        { body_id: 'body', part: 0, octets: Buffer.from('Subject: Hello\r\n\r\n') },
        { body_id: 'body', part: 1, octets: Buffer.from('Subject: Hello\r\n\r\n') },
      ],
    },
    reads: [
      database =>
        ask(inboundRoutes(parts(database)), 'getInboundMailContent', { id: '1' }).catch(
          (error: unknown) => (error as Error).message,
        ),
    ],
    change: [`delete from inbound_parts where part = 1`, 'update inbound_mails set seq = 2'],
    undo: [
      `insert into inbound_parts (body_id, part, octets) select body_id, 1, octets from inbound_parts`,
      'update inbound_mails set seq = 1',
    ],
  },
  {
    answer: 'an import with its rejected rows',
    rows: {
      contact_imports: [
        {
          id: ONE,
          workspace_id: 'w1',
          is_sandbox: 0,
          status: 'processing',
          charset: 'utf-8',
          options: '{}',
          octets: 20,
          octets_read: 10,
          rows_done: 1,
          created: 1,
          updated: 0,
          unchanged: 0,
          rejected: 0,
          created_at: NOW,
        },
      ],
    },
    reads: [database => ask(importRoutes(parts(database), {} as never), 'getContactImport', { id: ONE })],
    change: [
      'update contact_imports set rows_done = 2, rejected = 1',
      `insert into contact_import_rejections (import, line, reason, cells) values (1, 3, 'no @', '["ann"]')`,
    ],
    undo: ['update contact_imports set rows_done = 1, rejected = 0', 'delete from contact_import_rejections'],
  },
  {
    answer: 'the submissions of a form, in total and by day',
    rows: {
      forms: [
        {
          id: ONE,
          workspace_id: 'w1',
          name: 'Newsletter',
          list_ids: '[]',
          fields: '[]',
          double_opt_in: 1,
          created_at: NOW,
          updated_at: NOW,
        },
      ],
      form_counts: [
        {
          form_id: ONE,
          day: TODAY,
          workspace_id: 'w1',
          submitted: 2,
          completed: 1,
        },
      ],
    },
    reads: [database => ask(formRoutes(parts(database)), 'getFormSubmissions', { id: ONE })],
    change: ['update form_counts set submitted = 3'],
    undo: ['update form_counts set submitted = 2'],
  },
  {
    answer: 'an automation with its steps and ETag',
    rows: { automations: [AUTOMATION], automation_steps: [{ ...DELAY, seq: 1, id: ONE, position: 0 }] },
    reads: [
      async database => {
        const routes = automationRoutes(parts(database), {} as never)
        return ask(routes, 'getAutomation', { id: ONE })
      },
    ],
    change: [
      `update automations set name = 'Hello', updated_at = ${LATER}`,
      `update automation_steps set config = '{"duration":2,"unit":"days"}'`,
    ],
    undo: [
      `update automations set name = 'Welcome', updated_at = ${NOW}`,
      `update automation_steps set config = '{"duration":1,"unit":"days"}'`,
    ],
  },
  {
    answer: 'the runs of an automation and where they are',
    rows: {
      automations: [AUTOMATION],
      automation_steps: [
        { ...DELAY, seq: 1, id: ONE, position: 0 },
        { ...DELAY, seq: 2, id: TWO, position: 1 },
      ],
      automation_runs: [RUN],
    },
    reads: [
      database => ask(runRoutes(parts(database)), 'getAutomationRun', { id: ONE, runId: ONE }),
      database => ask(runRoutes(parts(database)), 'listAutomationRuns', { id: ONE }),
      database => ask(flowRoutes(parts(database)), 'getAutomationStepCounts', { id: ONE }),
    ],
    change: [
      `update automation_runs set status = 'completed', step = null, due_at = null, ended_at = ${LATER}`,
      'update automations set runs_active = 0, runs_completed = 1',
      `insert into automation_step_counts (step, path, runs) values (1, 'next', 1)`,
      `insert into automation_run_steps (run, at, step_id, step_type, outcome)
        values (1, ${LATER}, '${ONE}', 'delay', 'completed')`,
    ],
    undo: [
      `update automation_runs set status = 'active', step = 1, due_at = ${LATER}, ended_at = null`,
      'update automations set runs_active = 1, runs_completed = 0',
      'delete from automation_step_counts',
      'delete from automation_run_steps',
    ],
  },
  {
    answer: "a campaign's report, and its A/B test",
    rows: {
      campaigns: [CAMPAIGN],
      campaign_tests: [{ campaign: 1, drawn: 4, drawn_through: 4, drawn_at: NOW }],
      campaign_variants: [
        { campaign: 1, variant: 0, letter: '{}', recipients: 2 },
        { campaign: 1, variant: 1, letter: '{}', recipients: 2 },
      ],
      campaign_times: [
        {
          campaign: 1,
          starts_at: NOW,
          opens: 1,
          unique_opens: 1,
          clicks: 0,
          unique_clicks: 0,
          machine_opens: 0,
          machine_clicks: 0,
          unsubscribes: 0,
          complaints: 0,
        },
      ],
      campaign_providers: [
        {
          campaign: 1,
          provider: 'Gmail',
          sends: 4,
          deliveries: 4,
          unique_opens: 1,
          unique_clicks: 0,
          bounces: 0,
          complaints: 0,
          unsubscribes: 0,
        },
      ],
    },
    reads: [
      database =>
        ask(
          reportRoutes({
            send: { database, clock: new FakeClock(NOW) },
            findRevenue: async () => [],
          } as never),
          'getCampaignReport',
          { id: ONE },
        ),
      database =>
        ask(
          abTestRoutes(
            {
              send: { database, clock: new FakeClock(NOW) },
              findVariantRevenue: async () => [],
            } as never,
            () => {},
          ),
          'getCampaignAbTest',
          { id: ONE },
        ),
    ],
    change: [
      'update campaigns set opens = 1, unique_opens = 1',
      'update campaign_variants set opens = 1, unique_opens = 1 where variant = 1',
      'update campaign_tests set winner = 1',
      'update campaign_times set opens = 2, unique_opens = 2',
      'update campaign_providers set unique_opens = 2',
    ],
    undo: [
      'update campaigns set opens = 0, unique_opens = 0',
      'update campaign_variants set opens = 0, unique_opens = 0 where variant = 1',
      'update campaign_tests set winner = null',
      'update campaign_times set opens = 1, unique_opens = 1',
      'update campaign_providers set unique_opens = 1',
    ],
  },
  {
    answer: 'statistics in total and by sender domain',
    rows: {
      daily_counters: [{ workspace_id: 'w1', day: TODAY, name: 'delivered', count: 3 }],
      daily_group_counters: [
        { workspace_id: 'w1', dimension: 'domain', day: TODAY, value: 'sender.test', delivered: 3 },
      ],
    },
    reads: [
      database =>
        ask([reportRoute(database, new FakeClock(NOW))], 'getAnalytics', {}, { group_by: 'domain' }),
    ],
    change: ['update daily_counters set count = 4', 'update daily_group_counters set delivered = 4'],
    undo: ['update daily_counters set count = 3', 'update daily_group_counters set delivered = 3'],
  },
  {
    answer: 'a domain with its keys',
    rows: {
      domains: [{ ...DOMAIN, id: ONE, domain: 'sender.test' }],
      dkim_keys: [
        { ...KEY, id: ONE, selector: 's1', algorithm: 'rsa', state: 'active' },
        { ...KEY, id: TWO, selector: 's2', algorithm: 'rsa', state: 'standby' },
      ],
    },
    reads: [
      ({ reader }) => findDomain(reader, 'w1', ONE),
      ({ reader }) => listDomains(reader, 'w1', PAGE),
      ({ reader }) => listDomainsOfAll(reader, {}, PAGE),
    ],
    change: [
      `update domains set findings = '{"s2._domainkey.sender.test":{"status":"verified"}}'`,
      `update dkim_keys set state = case selector when 's2' then 'active' else 'retiring' end`,
    ],
    undo: [
      'update domains set findings = null',
      `update dkim_keys set state = case selector when 's1' then 'active' else 'standby' end`,
    ],
  },
  {
    answer: 'an image with its files',
    rows: {
      media: [
        {
          seq: 1,
          id: ONE,
          workspace_id: 'w1',
          file_name: 'a.png',
          alt_text: '',
          name_folded: 'a.png',
          kind: 'png',
          is_animated: 0,
          width: 900,
          height: 450,
          octets: 4,
          hash: 'aa',
          stored_octets: 6,
          created_at: NOW,
          updated_at: NOW,
        },
      ],
      media_files: [{ media: 1, width: 900, height: 450, octets: 4, hash: 'aa' }],
    },
    reads: [
      ({ reader }) => findImage(reader, 'w1', { id: ONE }),
      ({ slowReader }) => listImages(slowReader, 'w1', undefined, PAGE),
    ],
    change: [
      `update media set file_name = 'b.png', name_folded = 'b.png'`,
      'update media_files set width = 600, height = 300',
    ],
    undo: [
      `update media set file_name = 'a.png', name_folded = 'a.png'`,
      'update media_files set width = 900, height = 450',
    ],
  },
  {
    answer: 'the nodes with their leases',
    rows: {
      nodes: [
        { id: 'n1', name: 'one', roles: 'http', is_stopping: 0, started_at: NOW, alive_until: LATER },
        { id: 'n2', name: 'two', roles: 'http', is_stopping: 0, started_at: NOW, alive_until: LATER },
      ],
      leases: [{ name: 'jobs', node_id: 'n1', taken_at: NOW }],
    },
    reads: [({ reader }) => listNodes(reader)],
    change: [`update nodes set is_stopping = 1 where id = 'n1'`, `update leases set node_id = 'n2'`],
    undo: [`update nodes set is_stopping = 0 where id = 'n1'`, `update leases set node_id = 'n1'`],
  },
  {
    answer: 'an operator with roles and ways to sign in',
    rows: {
      operators: [
        {
          id: 'o1',
          email: 'ann@example.com',
          name: 'Ann',
          password_hash: 'digest',
          totp_secret: 'sealed',
          totp_step: 5,
          created_at: NOW,
        },
      ],
      operator_roles: [{ operator_id: 'o1', workspace_id: 'w1', role: 'owner', given_by: 'operator' }],
      operator_recovery_codes: [{ operator_id: 'o1', code_hash: 'digest' }],
    },
    reads: [
      ({ reader }) => findOperator(reader, { id: 'o1' }),
      ({ reader }) => listOperators(reader),
      database => ask(meRoutes(parts(database)), 'getMe'),
    ],
    change: [
      `update operators set name = 'Bob', password_hash = null, totp_secret = null`,
      `update operator_roles set role = 'viewer'`,
      'delete from operator_recovery_codes',
    ],
    undo: [
      `update operators set name = 'Ann', password_hash = 'digest', totp_secret = 'sealed'`,
      `update operator_roles set role = 'owner'`,
      `insert into operator_recovery_codes (operator_id, code_hash) values ('o1', 'digest')`,
    ],
  },
]

for (const { answer, rows, reads, change, undo } of ANSWERS)
  eachDatabaseWithConnections(t, `${answer}: of one moment`, async (t, original) => {
    await original.write(tx => insertRows(tx.db, rows))
    const run = (statements: readonly string[]) =>
      original.write(async ({ db }: { db: Queries }) => {
        for (const statement of statements) await sql.raw(statement).execute(db)
      })
    const { database, answerChanged } = changingDatabase(original)
    for (const [index, read] of reads.entries()) {
      const before = await read(database)
      await run(change)
      const after = await read(database)
      await run(undo)
      t.notSame(before, after, 'the change can be seen')
      for (let statements = 1; ; statements += 1) {
        const changed = await answerChanged(
          () => read(database),
          statements,
          () => run(change),
        )
        if (changed === undefined) break
        await run(undo)
        const expected = isDeepStrictEqual(changed, before) ? before : after
        t.same(changed, expected, `read ${index + 1}, changed after statement ${statements}`)
      }
    }
  })
