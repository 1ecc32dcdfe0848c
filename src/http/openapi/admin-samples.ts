/**
 * Example objects of the admin API, by schema title: the same shop as in `sample-records.ts`, on the appliance mail.example.com.
 *
 * `samples.ts` includes them.
 */
import { at, bounce, campaign, IDS, mail, moments, rates, stats, status } from './sample-records.js'

const operator = {
  id: IDS.other,
  email: 'ann@example.com',
  name: 'Ann Lee',
  roles: [{ workspace_id: null, role: 'owner' }],
  has_password: true,
  has_totp: true,
  created_at: at('08:00:00'),
  last_sign_in_at: at('09:00:00'),
}
const linkToken = 'ZV0Zq3k1uYw8mXh2Jt5nR7cB4dF6gL9pS0aE1iO3uQw'

const token = {
  name: 'ansible',
  hint: 'pa_...x9Qk',
  role: 'operator',
  created_at: at('09:00:00'),
  last_used_at: at('10:00:00'),
  expires_at: null,
}
const apiKey = {
  name: 'Website',
  hint: 'ts_live_...Jd8k',
  type: 'sending_access',
  permissions: ['email:send', 'email:read', 'smtp:send'],
  rate_limit: 100,
  email_rate_limit: 1_000,
  created_at: at('09:00:00'),
  revoked_at: null,
  last_used_at: at('10:00:00'),
}

const delegation = 'dkim.mail.example.com. 3600 IN NS mail.example.com.'
const dkimZone = { name: 'dkim.mail.example.com', served_here: true, delegation }
const dkimRecord = {
  name: 'pr1.example-com.dkim.mail.example.com',
  type: 'TXT',
  ttl: 3_600,
  value: 'v=DKIM1; k=rsa; p=MIIBIjANBgkq...',
}

const credential = 'Kx7Jm2vQf0aLr8sYtW4bNg'
const clientData = 'eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoiVHM5Li4uIn0'

/** Of a bounce that came back by mail. */
const inboundMail = {
  id: 4_711,
  received_at: at('10:00:00'),
  processed_at: at('10:00:01'),
  result: 'bounce',
  sender: '',
  recipients: [
    {
      address: 'r1-1-agi7hjc3nr6y5hybenxwerlgpa-k3m2x7qvt5r4wd6n@bounce.mail.example.com',
      purpose: 'return_path',
      message_id: IDS.message,
    },
  ],
  findings: [
    {
      recipient: 'ann@example.com',
      result: 'bounce',
      message_id: IDS.message,
      confirmed: true,
      detail: bounce.diagnostic_code,
    },
  ],
  size: 4_210,
  peer_address: '192.0.2.25',
  helo: 'mx.example.com',
  session: 'i-8f3a21',
}

const certificate = {
  names: ['mail.example.com'],
  issuer: "C=US, O=Let's Encrypt, CN=R11",
  source: 'acme',
  valid_from: '2025-12-20T00:00:00.000Z',
  expires_at: '2026-03-20T00:00:00.000Z',
  days_left: 73,
  fault: null,
  acme: {
    directory: 'https://acme-v02.api.letsencrypt.org/directory',
    last_error: null,
    next_attempt_at: '2026-02-18T00:00:00.000Z',
  },
}

const lastMinute = { accepted: 1_260, delivered: 1_180, deferred: 12, bounced: 9, failed: 0 }

export const ADMIN_SAMPLES = {
  OwnedCampaign: { ...campaign, stats, rates, workspace_id: IDS.other },
  MailContent: {
    headers: [{ name: 'Subject', value: 'Your order' }],
    text: 'Thank you for your order.',
    attachments: [{ filename: 'invoice.pdf', content_type: 'application/pdf', size: 48_211, inline: false }],
  },
  MailPreview: {
    mail: 'From: Shop <shop@example.com>\nTo: ann@example.net\nSubject: Your order\n\nThank you for your order.\n',
    route: ['mx.example.net [192.0.2.7]:25'],
  },
  Operator: operator,
  LinkedOperator: {
    ...operator,
    has_password: false,
    has_totp: false,
    last_sign_in_at: null,
    link: `https://mail.example.com/console/#/link/${linkToken}`,
    link_token: linkToken,
  },
  RoleGrant: { workspace_id: null, role: 'owner' },
  Me: {
    ...operator,
    recovery_codes_left: 10,
    limited_to: null,
    signed_in_with: 'session',
    confirmed_at: at('09:00:00'),
  },
  Session: {
    method: 'passkey',
    ip: '192.0.2.80',
    user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
    created_at: at('09:00:00'),
    last_seen_at: at('10:00:00'),
    confirmed_at: at('09:00:00'),
    expires_at: at('22:00:00'),
    is_current: true,
  },
  SignedIn: { needs_code: false },
  LinkPreview: {
    kind: 'join',
    email: 'kim@example.com',
    workspace: 'Acme',
    role: 'marketer',
    needs_sign_in: false,
  },
  OperatorToken: token,
  NewOperatorToken: { ...token, last_used_at: null, token: 'pa_7Hq2mV9xLk4TzR8cW1sYd6Bn3GfJp5Aeu0Ix9Qk' },
  TotpProposal: {
    secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
    url: 'otpauth://totp/mail.example.com:ann%40example.com?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=mail.example.com',
  },
  RecoveryCodes: { recovery_codes: ['K4QM-7XVT-2RWD-H6NC', 'B3PF-6ZKA-5JTE-Q7GL'] },
  Passkey: { id: credential, name: 'Laptop', created_at: at('09:00:00'), last_used_at: at('10:00:00') },
  PasskeyOptions: { challenge: 'Ts9mQ2xV7kLr4TzR8cW1sYd6Bn3GfJp5Aeu0Ix' },
  PasskeyAssertion: {
    id: credential,
    rawId: credential,
    response: {
      clientDataJSON: clientData,
      authenticatorData: 'SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MFAAAAAQ',
      signature: 'MEUCIQDx3f...vP0k',
    },
  },
  PasskeyRegistration: {
    id: credential,
    rawId: credential,
    response: {
      clientDataJSON: clientData,
      attestationObject: 'o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YVi...',
      transports: ['internal'],
    },
  },

  ApiKey: apiKey,
  CreatedApiKey: { ...apiKey, last_used_at: null, key: 'ts_live_4TzR8cW1sYd6Bn3GfJp5Aeu0Ix9Qk7Hq2mV9Jd8k' },
  LoginLock: {
    scope: 'account_at_address',
    address: '192.0.2.80',
    account: 'ann@example.com',
    failures: 10,
    locked_until: at('10:15:00'),
  },
  LoggedActivity: {
    actor: { type: 'operator', id: IDS.other, name: 'ann@example.com', peer: '192.0.2.7' },
    action: 'api_key.changed',
    subject: 'Website',
    details: { id: IDS.domain },
    changes: { rate_limit: { before: 100, after: 500 } },
  },

  DomainDetails: {
    verified: true,
    vouched: false,
    failing_since: null,
    dkim_zone: dkimZone,
    report_address: 'dmarc@mail.example.com',
    report_permission: null,
    zone_file:
      '; Postroad records of example.com: include them in the zone of example.com.\n; Required:\n' +
      'pr1._domainkey.example.com. 3600 IN CNAME pr1.example-com.dkim.mail.example.com.',
  },
  OperatedDomain: { verified: true, vouched: false, failing_since: null },
  DkimZone: dkimZone,
  DkimZoneRecords: { ...dkimZone, records: [dkimRecord] },
  ImportedSuppressions: {
    added: 940,
    widened: 12,
    known: 46,
    preset: 'sendgrid',
    skipped: 0,
    rejected: 1,
    faults: [{ line: 17, reason: 'the address has no @' }],
  },

  FoundMessage: {
    message_id: IDS.message,
    status: 'delivered',
    delivery_state: null,
    is_captured: false,
    reason: null,
    from: 'Shop <shop@example.com>',
    created_at: at('10:00:00'),
  },
  MessageDetail: {
    ...status,
    ...mail,
    delivery_state: null,
    is_captured: false,
    cc: [],
    tags: ['orders'],
    attachments: [],
    envelope_sender: 'r1-1-agi7hjc3nr6y5hybenxwerlgpa-k3m2x7qvt5r4wd6n@bounce.mail.example.com',
    bounce: null,
    created_at: at('10:00:00'),
  },
  CapturedMail: {
    id: 12,
    message_id: IDS.message,
    envelope_sender: 'r1-1-agi7hjc3nr6y5hybenxwerlgpa-k3m2x7qvt5r4wd6n@bounce.mail.example.com',
    size: 4_210,
  },
  InboundMail: inboundMail,
  QueueEntry: {
    message_id: IDS.message,
    campaign_id: campaign.id,
    attempts: 2,
    in_progress: false,
    held: false,
    campaign_paused: false,
    deleted: false,
    next_attempt_at: at('10:20:00'),
    expires_at: '2026-01-08T10:00:00.000Z',
    enqueued_at: at('10:00:00'),
  },
  QueueSummary: {
    held_since_restore: null,
    rows: [{ destination: 'example.net', total: 120, held: 0, by_age: { '5m': 80, '10m': 40 } }],
    found: 1,
    total: 120,
    held: 0,
  },
  QueueSites: {
    active: 3,
    sites: [{ site: 'mx.example.net', active: 3, window: 8, backoff_until: null }],
  },
  SetAsideEvent: {
    consumer: 'webhooks',
    number: 81_312,
    event: 'email.delivered',
    message_id: IDS.message,
    error: 'a value of the event is longer than its column',
  },

  Configuration: {
    file: '/etc/postroad/postroad.toml',
    fault: null,
    findings: [
      {
        severity: 'warning',
        path: 'tls.cert',
        what: 'a self-signed certificate is used, which clients reject or do not verify',
        fix: 'set tls.acme, or tls.cert and tls.key to a certificate for mail.example.com',
      },
    ],
    toml: 'hostname = "mail.example.com"\npublic_url = "https://mail.example.com"\n',
  },
  Setting: {
    key: 'log.level',
    value: 'info',
    default: 'info',
    source: 'file',
    variable: 'POSTROAD_LOG_LEVEL',
    applied_by: 'reload',
    pending: false,
    effective: true,
    expected: 'one of debug, info, warn, error, silent',
    description: 'Minimum level of messages written to standard output.',
  },
  Examination: {
    started_at: at('10:00:00'),
    ended_at: at('10:00:02'),
    checks: [
      { status: 'ok', name: 'disk', what: '82.4 GB are free on the disk of /var/lib/postroad' },
      {
        status: 'fail',
        name: 'dns.ptr',
        what: '192.0.2.25 has no PTR record: many hosts refuse its mail',
        fix: 'have your provider set the PTR record of 192.0.2.25 to mail.example.com',
      },
    ],
  },
  Backup: {
    name: 'postroad-2026-01-05T03-30-00-000Z.db',
    state: 'complete',
    progress: 1,
    size: 48_234_496,
    created_at: at('03:30:00'),
    error: null,
  },
  Certificate: certificate,
  Job: {
    name: 'confirm-denials',
    schedule: '*/5 * * * *',
    running: false,
    last_started_at: at('10:00:00'),
    last_ended_at: at('10:00:02'),
    last_duration_ms: 2_120,
    next_run_at: at('10:05:00'),
    last_error: null,
    last_failed_at: null,
  },
  Live: {
    last_second: { accepted: 24, delivered: 21, deferred: 0, bounced: 0, failed: 0 },
    last_minute: lastMinute,
    connections: { http: 12, submission: 4, inbound: 1, deliveries: 18 },
    queue: { messages: 240, held: 0, oldest_at: at('09:40:00'), backing_off_sites: 1 },
    consumers: [{ consumer: 'webhooks', lag: 3 }],
    memory: { resident: 182_452_224, heap: 61_865_984 },
    uptime_seconds: 86_400,
  },
  LiveRate: lastMinute,
  Workspace: { removed_at: undefined, hourly_limit: 5_000, daily_limit: 50_000, ...moments },
}
