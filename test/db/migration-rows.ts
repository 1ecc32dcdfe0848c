/**
 * Rows for `migrations-rows.test.ts`: what is in the database before each migration, and what it makes of them.
 *
 * A new migration needs an entry here: rows that it changes (`before`, in the schema as it then is), what they become, and a row
 * for each table that it makes (`after`), so that the next migration meets it filled. Whatever is not named in `changes` has to
 * stay as it was, column for column.
 */

export type RowValue = string | number | null | Uint8Array
/** By table. */
export type Rows = Readonly<Record<string, readonly Readonly<Record<string, RowValue>>[]>>

export interface MigrationRows {
  /** Put in before it, besides what earlier entries have put in. */
  readonly before?: Rows
  /** To be found after it. Only the columns named are compared. */
  readonly become: Rows
  /** Put in after it. */
  readonly after?: Rows
  /** Tables whose rows, or columns (`table.column`) whose values it changes on purpose. Columns it drops need no mention. */
  readonly changes?: readonly string[]
}

const [T, LATER] = [1_767_607_200_000, 1_767_610_800_000]
const [WORKSPACE, CONTENT] = ['0199-workspace', '0199-content']
const octets = (text: string) => Uint8Array.from(Buffer.from(text))

const message = (id: string, recipient: string, status = 'sent') => ({
  id,
  workspace_id: WORKSPACE,
  content_id: CONTENT,
  recipient,
  status,
  is_sandbox: 0,
  created_at: T,
})

const queued = (id: string, destination: string) => ({
  message_id: id,
  workspace_id: WORKSPACE,
  destination,
  priority: 0,
  lane: `${destination}/0/${WORKSPACE}`,
  attempts: 1,
  next_attempt_at: LATER,
  expires_at: LATER + T,
  is_held: 0,
  was_handed_over: 0,
  enqueued_at: T,
})

const domain = (id: string, name: string, more: object = {}) => ({
  id,
  owner: WORKSPACE,
  domain: name,
  verification_token: 'token',
  is_vouched: 0,
  created_at: T,
  ...more,
})

/** What a migration gives the workspace as its sandbox: the same for ever. */
const SANDBOX = 'b2826584-92ff-8b4b-8265-e785a420ad1b'

const SANDBOX_CONTENT = {
  workspace_id: WORKSPACE,
  from_address: 'me@sender.test',
  subject: 'A trial',
  track_opens: 0,
  track_clicks: 0,
  created_at: T,
}

const workspace = (id: string, name: string) => ({
  ...{ id, name, currency: 'EUR', timezone: 'UTC', attribution: 1, hourly_limit: 0, daily_limit: 0 },
  ...{ allow_private_webhooks: 0, created_at: T },
})

const INITIAL: Rows = {
  workspaces: [
    {
      id: WORKSPACE,
      name: 'Acme',
      currency: 'EUR',
      timezone: 'Europe/Rome',
      attribution: 1,
      hourly_limit: 1_000,
      daily_limit: 0,
      allow_private_webhooks: 0,
      created_at: T,
    },
  ],
  api_keys: [
    {
      id: 'key',
      workspace_id: WORKSPACE,
      name: 'shop',
      key_hash: 'digest',
      key_hint: 'ts_live_ab',
      type: 'full_access',
      permissions: '["*"]',
      is_sandbox: 0,
      rate_limit: 100,
      email_rate_limit: 100,
      created_at: T,
    },
  ],
  sending_usage: [{ workspace_id: WORKSPACE, window_kind: 'hour', window_start: T, accepted: 7 }],
  secrets: [{ name: 'return_path', version: 1, value: 'secret', created_at: T }],
  domains: [
    domain('d1', 'sender.test', { verified_at: LATER, findings: '[]' }),
    domain('d2', 'vouched.test', { is_vouched: 1 }),
    domain('d3', 'gone.test', { removed_at: LATER }),
  ],
  dkim_keys: [
    {
      id: 'dk1',
      domain_id: 'd1',
      selector: 's1',
      algorithm: 'rsa',
      private_key: 'sealed',
      public_key: 'public',
      state: 'active',
      created_at: T,
    },
  ],
  suppressions: [
    { workspace_id: WORKSPACE, email: 'bob@two.test', reason: 'hard_bounce', scope: 'all', created_at: T },
    { workspace_id: WORKSPACE, email: '@three.test', reason: 'manual', scope: 'marketing', created_at: T },
  ],
  message_contents: [
    {
      id: CONTENT,
      workspace_id: WORKSPACE,
      from_address: 'me@sender.test',
      subject: 'Grüße',
      text: 'Hello.\n',
      track_opens: 1,
      track_clicks: 0,
      created_at: T,
    },
  ],
  messages: [
    message('m1', 'Ann@One.test'),
    message('m2', 'bob@two.test', 'delivered'),
    message('m3', 'jürgen@drei.test', 'scheduled'),
  ],
  queue: [queued('m1', 'one.test'), queued('m3', 'drei.test')],
  attempts: [
    {
      message_id: 'm2',
      number: 1,
      started_at: T,
      finished_at: LATER,
      kind: 'delivered',
      summary: '250 2.0.0 ok',
      reply_code: 250,
      status: '2.0.0',
      tried: '[]',
    },
  ],
  captured_mails: [
    {
      message_id: 'm2',
      captured_at: T,
      envelope_sender: 'b@bounce.test',
      recipient: 'bob@two.test',
      subject: 'Grüße',
      size: 3,
      raw: octets('a\r\n'),
    },
  ],
  events: [
    {
      kind: 'email.delivered',
      workspace_id: WORKSPACE,
      message_id: 'm2',
      is_sandbox: 0,
      occurred_at: T,
      payload: '{"to":"bob@two.test"}',
    },
  ],
  event_cursors: [{ consumer: 'bounces', seq: 1 }],
}

export const MIGRATION_ROWS: Readonly<Record<string, MigrationRows>> = {
  '0001-initial': { become: {}, after: INITIAL },
  '0002-relayed-mail': {
    become: {
      queue: [
        { message_id: 'm1', content_id: CONTENT, recipient: 'Ann@One.test' },
        { message_id: 'm3', content_id: CONTENT, recipient: 'jürgen@drei.test' },
      ],
      messages: [{ id: 'm1', dsn_notify: null, dsn_orcpt: null }],
    },
    after: { message_parts: [{ content_id: CONTENT, part: 1, octets: octets('more') }] },
  },
  '0003-returned-mail': {
    become: { suppressions: [{ email: 'bob@two.test', scope: 'all' }] },
    after: {
      inbound_mails: [
        {
          body_id: 'body',
          received_at: T,
          session: 'session',
          peer_address: '192.0.2.1',
          helo_name: 'mx.two.test',
          envelope_sender: '',
          recipients: '[]',
          size: 4,
          tries: 0,
        },
      ],
      inbound_parts: [{ body_id: 'body', part: 0, octets: octets('mail') }],
      bounces: [
        {
          id: 'b1',
          workspace_id: WORKSPACE,
          message_id: 'm2',
          email: 'bob@two.test',
          type: 'permanent',
          subtype: 'no_such_user',
          cause: 'recipient',
          scope: 'recipient',
          smtp_status: '5.1.1',
          diagnostic_code: '550 5.1.1 no such user',
          is_sandbox: 0,
          created_at: T,
        },
      ],
      domain_reports: [
        {
          id: 'r1',
          kind: 'dmarc',
          domain: 'sender.test',
          org_name: 'google.com',
          report_id: '1',
          begin_at: T,
          end_at: LATER,
          received_at: LATER,
          summary: '{}',
          records: '[]',
        },
      ],
    },
  },
  '0004-email-api': {
    become: { message_contents: [{ id: CONTENT, addressees: null, scheduled_at: null, batch_id: null }] },
    after: {
      kept_answers: [{ id: 'digest', body_hash: 'digest', status: 200, value: '{}', created_at: T }],
      email_batches: [
        {
          id: 'batch',
          workspace_id: WORKSPACE,
          key_id: 'key',
          is_sandbox: 0,
          total: 1,
          sent: 1,
          skipped: 0,
          failed: 0,
          errors: '[]',
          created_at: T,
          released_at: LATER,
        },
      ],
    },
  },
  '0005-analytics': {
    become: { messages: [{ id: 'm2', opened_at: null }] },
    after: {
      daily_counters: [{ workspace_id: WORKSPACE, day: T, name: 'sends', count: 3 }],
      conversions: [
        {
          id: 'c1',
          workspace_id: WORKSPACE,
          contact_id: 'contact',
          value: -9.99,
          currency: 'EUR',
          metadata: '{}',
          message_id: 'm2',
          is_sandbox: 0,
          created_at: T,
        },
      ],
      product_views: [
        {
          id: 'v1',
          workspace_id: WORKSPACE,
          contact_id: 'contact',
          product_id: 'shoe',
          product: '{}',
          is_sandbox: 0,
          viewed_at: T,
        },
      ],
      activities: [
        {
          workspace_id: WORKSPACE,
          actor_type: 'operator',
          action: 'key.create',
          subject: 'key',
          details: '{}',
          created_at: T,
        },
      ],
    },
  },
  '0006-queue-reports': {
    before: {
      messages: [{ ...message('m4', 'eve@five.test'), dsn_notify: 'FAILURE' }],
      queue: [{ ...queued('m4', 'five.test'), content_id: CONTENT, recipient: 'eve@five.test' }],
    },
    become: {
      queue: [
        { message_id: 'm1', dsn_notify: null },
        { message_id: 'm4', dsn_notify: 'FAILURE' },
      ],
    },
  },
  '0007-retention': {
    become: {
      message_contents: [{ id: CONTENT, pruned_at: null }],
      domains: [
        { id: 'd1', watched_since: T, next_check_at: T, failed_checks: 0, failing_since: null },
        { id: 'd2', watched_since: T, next_check_at: null },
        { id: 'd3', watched_since: T, next_check_at: null },
      ],
    },
  },
  '0008-list-indexes': {
    become: {
      bounces: [{ id: 'b1', email: 'bob@two.test' }],
      suppressions: [{ email: '@three.test', reason: 'manual', scope: 'marketing' }],
    },
  },
  '0009-recipient-buckets': {
    become: {
      // Of the address in lower case: 0 to 255 by a digest, the same for ever.
      messages: [
        { id: 'm1', recipient_bucket: 225 },
        { id: 'm2', recipient_bucket: 58 },
        { id: 'm3', recipient_bucket: 143 },
        { id: 'm4', recipient_bucket: 132 },
      ],
    },
  },
  '0010-write-trials': {
    become: { messages: [{ id: 'm1', recipient: 'Ann@One.test' }] },
    after: { write_trials: [{ id: 1, tried_at: T }] },
  },
  '0011-claims': {
    // Nothing is known of who had what in hand: it waits for its due time, as it would have.
    become: { queue: [{ message_id: 'm1', claimed_by: null, crashes: 0 }] },
  },
  '0012-what-mail-is': {
    // What was accepted before is no campaign's: there was none.
    become: {
      message_contents: [
        { id: CONTENT, is_marketing: 0, campaign_id: null, automation_id: null, template_id: null },
      ],
      messages: [{ id: 'm1', contact_id: null }],
      workspaces: [{ id: WORKSPACE, is_marketing: 0 }],
      queue: [{ message_id: 'm1', is_withdrawn: 0 }],
    },
    after: {
      set_aside_events: [
        { consumer: 'counters', seq: 1, event: '{}', error: 'broken', set_aside_at: T, is_retry_wanted: 0 },
      ],
    },
  },
  '0013-inbound-lanes': {
    // Whether it came to signed addresses is not asked of mail that is there: it counts as if it had not.
    become: { inbound_mails: [{ body_id: 'body', is_signed: 0 }] },
    after: {
      domain_denials: [
        {
          domain: 'two.test',
          denied_at: T,
          workspace_id: WORKSPACE,
          email: 'bob@two.test',
          message_id: 'm2',
          is_ours: 1,
        },
      ],
    },
  },
  '0014-sandboxes': {
    before: {
      message_contents: [
        { ...SANDBOX_CONTENT, id: 'sandbox-content' },
        { ...SANDBOX_CONTENT, id: 'sandbox-later', scheduled_at: LATER },
      ],
      messages: [
        { ...message('s1', 'bounced@simulator.test'), content_id: 'sandbox-content', is_sandbox: 1 },
        {
          ...message('s2', 'opened@simulator.test', 'scheduled'),
          content_id: 'sandbox-later',
          is_sandbox: 1,
        },
      ],
      events: [
        {
          kind: 'email.accepted',
          workspace_id: WORKSPACE,
          message_id: 's1',
          is_sandbox: 1,
          occurred_at: T,
          payload: '{}',
        },
      ],
    },
    become: {
      sandboxes: [{ id: SANDBOX, workspace_id: WORKSPACE }],
      message_contents: [
        { id: CONTENT, workspace_id: WORKSPACE },
        { id: 'sandbox-content', workspace_id: SANDBOX },
        { id: 'sandbox-later', workspace_id: SANDBOX },
      ],
      messages: [
        { id: 'm1', workspace_id: WORKSPACE },
        { id: 's1', workspace_id: SANDBOX },
        { id: 's2', workspace_id: SANDBOX, status: 'scheduled' },
      ],
      events: [{ message_id: 's1', workspace_id: SANDBOX }],
      // Live mail that waits is the queue's.
      sandbox_schedule: [{ message_id: 's2', due_at: LATER }],
      domains: [{ id: 'd1', owner: WORKSPACE, is_sandbox: 0 }],
    },
    changes: ['messages.workspace_id', 'message_contents.workspace_id', 'events.workspace_id'],
  },
  '0015-audience': {
    // New tables alone: what is there stays.
    become: { workspaces: [{ id: WORKSPACE }] },
    after: {
      audiences: [
        {
          workspace_id: WORKSPACE,
          last_contact: 1,
          contacts: 1,
          unsubscribed: 0,
          bounced: 0,
          unsubscribed_bounced: 0,
        },
      ],
      contacts: [
        {
          seq: 4_294_967_297,
          audience: 1,
          subscribed: 1,
          is_bounced: 0,
          created_at: T,
          updated_at: T,
          is_indexed: 0,
          traits: '{}',
          id: 'contact',
          email: 'ann@one.test',
          search_text: 'ann@one.test',
          attributes: '{}',
        },
      ],
      lists: [
        {
          id: 'list',
          workspace_id: WORKSPACE,
          name: 'News',
          type: 'static',
          is_public: 0,
          double_opt_in: 0,
          member_count: 1,
          created_at: T,
          updated_at: T,
        },
      ],
      list_members: [{ list: 1, contact: 4_294_967_297, added_at: T }],
      tags: [
        {
          id: 'tag',
          workspace_id: WORKSPACE,
          name: 'Vip',
          name_folded: 'vip',
          contact_count: 1,
          created_at: T,
          updated_at: T,
        },
      ],
      contact_tags: [{ tag: 1, contact: 4_294_967_297, added_at: T }],
      segments: [
        {
          id: 'segment',
          workspace_id: WORKSPACE,
          name: 'All',
          name_folded: 'all',
          conditions: '{"match":"all","rules":[]}',
          created_at: T,
          updated_at: T,
        },
      ],
      contact_sweeps: [
        {
          id: 'sweep',
          workspace_id: WORKSPACE,
          is_sandbox: 0,
          kind: 'delete',
          position: 4_294_967_297,
          end_position: 4_294_967_297,
          changed: 0,
          skipped: 0,
          begun_at: T,
        },
      ],
    },
  },
  '0016-templates': {
    become: { workspaces: [{ id: WORKSPACE }] },
    after: {
      templates: [
        {
          id: 't1',
          workspace_id: WORKSPACE,
          name: 'Grüße',
          name_folded: 'grusse',
          version: 1,
          created_at: T,
          updated_at: T,
        },
      ],
      template_versions: [{ template_id: 't1', version: 1, name: 'Grüße', html: '<p>Hi</p>', created_at: T }],
    },
  },
  '0017-brand-color': { become: { workspaces: [{ id: WORKSPACE, brand_color: null }] } },
  '0018-merged-mail': {
    become: {
      message_contents: [{ id: CONTENT, merging: null }],
      messages: [{ id: 'm1', merge_data: null }],
    },
  },
  '0019-contents-ahead': {
    become: { message_contents: [{ id: CONTENT }] },
    after: { contents_ahead: [{ content_id: CONTENT }] },
  },
  '0020-forms': {
    become: { workspaces: [{ id: WORKSPACE }] },
    after: {
      forms: [
        {
          id: 'form',
          workspace_id: WORKSPACE,
          name: 'Newsletter',
          list_ids: '["list"]',
          fields: '[]',
          double_opt_in: 1,
          created_at: T,
          updated_at: T,
        },
      ],
      opt_ins: [
        {
          id: 'opt-in',
          form_id: 'form',
          workspace_id: WORKSPACE,
          email: 'ann@mail.example',
          fields: '{}',
          created_at: T,
        },
      ],
    },
  },
  '0021-attribute-places': {
    before: {
      contacts: [
        {
          ...{ seq: 4_294_967_298, audience: 1, subscribed: 1, is_bounced: 0, created_at: T, updated_at: T },
          ...{ is_indexed: 0, id: 'bob', email: 'bob@one.test', search_text: 'bob@one.test' },
          attributes: '{"plan":"Pro","since":"2026-01-05","the list":[1],"age":30}',
          traits: `{"plan":"pro","since":"2026-01-05","since~d":${T},"the~20~list":null,"age":"30","age~n":30}`,
        },
      ],
    },
    become: {
      contacts: [
        {
          ...{ id: 'bob', text_0: 'pro', number_0: null, text_1: '2026-01-05', moment_1: T, text_2: null },
          ...{ text_3: '30', number_3: 30, text_4: null },
        },
        { id: 'contact', text_0: null },
      ],
      attribute_places: [
        { audience: 1, place: 0, name: 'plan' },
        { audience: 1, place: 3, name: 'age' },
      ],
    },
    // Those with places are in it no more.
    changes: ['contacts.traits'],
  },
  '0022-tracking': {
    become: {
      workspaces: [
        {
          id: WORKSPACE,
          track_opens: 1,
          track_clicks: 1,
          utm_source: null,
          utm_medium: null,
          utm_campaign: null,
        },
      ],
    },
    after: { visit_places: [{ id: 1, file: 3, octets: 1_024 }] },
  },
  '0023-contact-imports': {
    become: { workspaces: [{ id: WORKSPACE }] },
    after: {
      contact_imports: [
        {
          ...{ id: 'import', workspace_id: WORKSPACE, is_sandbox: 0, status: 'processing', charset: 'utf-8' },
          ...{
            options: '{}',
            octets: 20,
            octets_read: 10,
            rows_done: 1,
            created: 0,
            updated: 0,
            unchanged: 0,
          },
          ...{ rejected: 1, created_at: T },
        },
      ],
      contact_import_parts: [{ import: 1, part: 0, octets: octets('email') }],
      contact_import_rejections: [{ import: 1, line: 2, reason: 'the address has no @', cells: '["ann"]' }],
    },
  },
  '0024-campaigns': {
    become: { workspaces: [{ id: WORKSPACE }] },
    after: {
      campaigns: [
        {
          ...{ id: 'campaign', workspace_id: WORKSPACE, is_sandbox: 0, name: 'January', subject: 'News' },
          ...{ template_id: 'template', list_id: 'list', status: 'sending', created_at: T, updated_at: T },
          ...{ next_at: T, who: '{"list":1}', recipients: 1, queued: 1 },
        },
      ],
      campaign_letters: [{ campaign: 1, letter: '{}' }],
      campaign_recipients: [{ campaign: 1, contact: 1, status: 'sent', message_id: 'one' }],
      campaign_links: [
        { campaign: 1, link: 1, digest: 'd', url: 'https://x.test/', clicks: 1, unique_clicks: 1 },
      ],
      campaign_clicks: [{ campaign: 1, link: 1, contact: 1 }],
    },
  },
  '0025-automations': {
    become: { workspaces: [{ id: WORKSPACE }] },
    after: {
      automations: [
        {
          ...{ seq: 1, id: 'automation', workspace_id: WORKSPACE, is_sandbox: 0, name: 'Welcome' },
          ...{ status: 'active', trigger_type: 'manual', trigger_config: '{"frequency":"once"}' },
          ...{ runs_active: 1, runs_completed: 0, runs_failed: 0, runs_cancelled: 0 },
          ...{ created_at: T, updated_at: T },
        },
      ],
      automation_steps: [
        {
          ...{ seq: 1, id: 'step', automation: 1, position: 0, step_type: 'delay' },
          config: '{"duration":1,"unit":"days"}',
        },
      ],
    },
  },
  '0026-automation-runs': {
    become: { automations: [{ id: 'automation' }] },
    after: {
      automation_runs: [
        {
          ...{ id: 'run', automation: 1, workspace_id: WORKSPACE, is_sandbox: 0, contact_id: 'contact' },
          ...{ contact_email: 'ann@example.com', status: 'active', step: 1, wait: 'time', due_at: LATER },
          ...{ steps_done: 1, failures: 0, trigger_type: 'manual', trigger_data: '{}', started_at: T },
        },
      ],
      automation_run_steps: [
        { run: 1, at: T, step_id: 'step', step_type: 'delay', outcome: 'waiting', detail: '{}' },
      ],
      automation_entries: [{ automation: 1, contact_id: 'contact', hour: 490_000, entries: 1 }],
      automation_mails: [{ step: 1, content_id: CONTENT, fingerprint: 'abc', stored_at: T }],
      automation_members: [{ automation: 1, contact: 4_294_967_297 }],
    },
  },
  '0027-webhooks': {
    become: { workspaces: [{ id: WORKSPACE }] },
    after: {
      webhook_subscriptions: [
        {
          ...{ id: 'hook', workspace_id: WORKSPACE, is_sandbox: 0, event: 'email.sent' },
          ...{ target_url: 'https://hooks.example/', secret: 'whsec_', created_at: T },
        },
      ],
      webhook_payloads: [{ event_seq: 1, event: 'email.sent', body: '{}', created_at: T }],
      webhook_deliveries: [
        {
          ...{ id: 'delivery', subscription_id: 'hook', event_seq: 1, status: 'pending', attempts: 1 },
          ...{ attempts_before: 0, next_attempt_at: T, created_at: T },
        },
      ],
      webhook_attempts: [
        {
          delivery_id: 'delivery',
          number: 1,
          started_at: T,
          duration_ms: 5,
          status_code: 500,
          response: 'no',
        },
      ],
    },
  },
  '0028-submitters': {
    become: { message_contents: [{ id: CONTENT, key_id: null, peer: null }] },
  },
  '0029-jobs': {
    become: { workspaces: [{ id: WORKSPACE }] },
    after: {
      jobs: [{ name: 'old events', schedule: '7 * * * *', is_running: 0, started_at: T }],
      restore_holds: [{ id: 1, since: T }],
    },
  },
  '0030-runs-by-workspace': {
    become: { workspaces: [{ id: WORKSPACE }] },
  },
  '0031-search-merges': {
    become: { workspaces: [{ id: WORKSPACE }] },
  },
  '0032-campaign-holds': {
    become: { workspaces: [{ id: WORKSPACE }] },
    after: {
      campaign_holds: [{ campaign_id: 'campaign', workspace_id: WORKSPACE, held_at: T, held_ms: 0 }],
    },
  },
  '0033-answered-requests': {
    become: { automation_runs: [{ id: 'run', refusals: 0 }] },
  },
  '0034-attribute-traits': {
    before: {
      contacts: [
        {
          ...{ seq: 4_294_967_299, audience: 1, subscribed: 1, is_bounced: 0, created_at: T, updated_at: T },
          ...{ is_indexed: 0, id: 'cid', email: 'cid@one.test', search_text: 'cid@one.test' },
          attributes: '{"plan":"19.90","age":["x"],"home":{"city":"Rom"}}',
          ...{ traits: '{"age":null,"home":null}', text_0: '19.90', number_0: null },
        },
      ],
    },
    become: {
      contacts: [
        { id: 'bob', text_0: 'pro', number_0: null, moment_1: Date.UTC(2026, 0, 5), number_3: 30 },
        { id: 'cid', text_0: '19.90', number_0: 19.9, text_3: null },
      ],
    },
    // Arrays and nested attributes are in it now.
    changes: ['contacts.traits', 'contacts.number_0', 'contacts.moment_1'],
  },
  '0035-suspended-contacts': {
    become: { contacts: [{ id: 'contact', is_suspended: 0 }] },
    after: {
      suppression_sweeps: [{ workspace_id: WORKSPACE, is_sandbox: 0, position: 4_294_967_297 }],
    },
  },
  '0036-contact-orders': {
    become: { contacts: [{ id: 'contact', created_at: T }] },
  },
  '0037-reports': {
    become: { campaigns: [{ id: 'campaign', resend_of: null, resend_to: null }] },
    after: {
      daily_group_counters: [{ workspace_id: WORKSPACE, dimension: 'tag', day: 0, value: 'a', accepted: 1 }],
    },
  },
  '0038-unique-names-and-import-erasures': {
    before: {
      workspaces: [
        { ...workspace('0199-w1', 'Shop'), deleted_at: null },
        { ...workspace('0199-w2', 'shop'), deleted_at: null },
        { ...workspace('0199-w3', 'Shop'), deleted_at: null },
        { ...workspace('0199-w4', 'shop (2)'), deleted_at: null },
      ],
    },
    become: {
      workspaces: [
        { id: '0199-w1', name: 'Shop' },
        { id: '0199-w2', name: 'shop (3)' },
        { id: '0199-w3', name: 'Shop (4)' },
        { id: '0199-w4', name: 'shop (2)' },
      ],
    },
    after: { contact_import_erasures: [{ import: 1, email_hash: '0'.repeat(64) }] },
    changes: ['workspaces.name'],
  },
}
