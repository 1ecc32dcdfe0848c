/**
 * Fills an installation that no server runs on with ninety days of mail: messages and contents, attempts, events.
 *
 * Called by `api.ts`. The rows that are many are written with prepared statements and without a journal; what goes with
 * them (counters, bounces, the queue, ...) comes from `fill-records.ts`, through the program's own stores. Indexes are in
 * place meanwhile, so that they have the shape that they get when mail comes in over time.
 */
import { closeSync, fsyncSync, openSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { type CounterName, type DailyCount, dayOf } from '../../src/analytics/statistics/counter-store.js'
import type { EventKind } from '../../src/events/event.js'
import { TotalsChange } from '../../src/messages/mail-totals-store.js'
import { recipientBucket } from '../../src/messages/message-store.js'
import { bulkInsert } from './bulk-insert.js'
import { fillRecords, type Bounced, type Queued } from './fill-records.js'
import { DAY_MS, newId, pastMessage, type History, type PastMessage } from '../scenarios/history.js'
import { SENDER, type Installation } from '../server/server-process.js'

export interface Filled {
  readonly history: History
  /** A campaign of the measured workspace, from the middle of the ninety days. */
  readonly campaignId: string
  /** Messages of the measured workspace, spread over the ninety days. */
  readonly sample: readonly { readonly id: string; readonly recipient: string }[]
}

const OTHER_WORKSPACES = 3
const SAMPLES = 1_000
const CAMPAIGN_HTML = '<p>What is new this week, and what it costs.</p>'.repeat(200)
const SINGLE_HTML = '<p>Your order is on its way to you.</p>'.repeat(40)
const REMOTE_MTA = 'mx1.example.net'
/** Pages that the filling may keep in memory, KB. */
const CACHE_KB = 400_000

/** Totals gathered on the way for `fill-records.ts`. */
interface Gathered {
  readonly counts: Map<string, DailyCount>
  readonly bounced: Bounced[]
  readonly queued: Queued[]
  readonly totals: TotalsChange
  readonly sample: { id: string; recipient: string }[]
}

export async function fillHistory(installation: Installation, messages: number): Promise<Filled> {
  const { dataDir, workspaceId } = installation
  const until = Date.now()
  const history: History = { messages, workspaces: 1 + OTHER_WORKSPACES, until }
  const workspaceIds = [workspaceId, ...Array.from({ length: OTHER_WORKSPACES }, () => newId(until))]
  const file = join(dataDir, 'postroad.db')
  const gathered: Gathered = {
    counts: new Map(),
    bounced: [],
    queued: [],
    totals: new TotalsChange(),
    sample: [],
  }
  const handle = new BetterSqlite(file)
  // In its defensive mode, SQLite keeps a journal.
  handle.unsafeMode()
  handle.pragma('journal_mode = OFF')
  handle.pragma('synchronous = OFF')
  handle.pragma(`cache_size = -${CACHE_KB}`)
  handle.exec('begin')
  const campaigns = fillMessages(handle, history, workspaceIds, gathered)
  handle.exec('commit')
  handle.close()
  await fillRecords(installation, history, workspaceIds.slice(1), gathered)
  // Else the kernel would be writing this down while the first commits are measured.
  const descriptor = openSync(file, 'r+')
  fsyncSync(descriptor)
  closeSync(descriptor)
  const ofFirst = campaigns.filter(campaign => campaign.workspaceId === workspaceId)
  const campaignId = ofFirst[Math.floor(ofFirst.length / 2)]?.id ?? ''
  return { history, campaignId, sample: gathered.sample }
}

interface Campaign {
  readonly id: string
  readonly contentId: string
  readonly workspaceId: string
}

function fillMessages(
  handle: BetterSqlite.Database,
  history: History,
  workspaceIds: readonly string[],
  gathered: Gathered,
): Campaign[] {
  const addContent = contentWriter(handle)
  const addMessage = messageWriter(handle)
  const addTrace = traceWriter(handle, gathered)
  const campaigns: Campaign[] = []
  const sampleEvery = Math.ceil(history.messages / SAMPLES)
  for (let n = 0; n < history.messages; n += 1) {
    const message = pastMessage(n, history)
    const workspaceId = workspaceIds[message.workspace]!
    let campaign: Campaign | undefined
    if (message.campaign !== undefined) {
      campaign = campaigns[message.campaign]
      if (!campaign) {
        campaign = { id: newId(message.createdAt), contentId: newId(message.createdAt), workspaceId }
        campaigns.push(campaign)
        addContent(campaign.contentId, workspaceId, message, CAMPAIGN_HTML)
      }
    } else addContent(message.id, workspaceId, message, SINGLE_HTML)
    const owner = {
      workspaceId,
      contentId: campaign?.contentId ?? message.id,
      campaignId: campaign?.id ?? null,
    }
    addMessage(message, owner)
    addTrace(message, owner)
    if (message.workspace === 0 && n % sampleEvery < 2 && gathered.sample.length < SAMPLES)
      gathered.sample.push({ id: message.id, recipient: message.recipient })
  }
  return campaigns
}

interface Owner {
  readonly workspaceId: string
  readonly contentId: string
  readonly campaignId: string | null
}

function contentWriter(handle: BetterSqlite.Database) {
  const insert = bulkInsert(handle, 'message_contents')
  return (id: string, workspaceId: string, message: PastMessage, html: string): void =>
    insert({
      id,
      workspace_id: workspaceId,
      from_address: SENDER,
      from_name: 'Bench',
      reply_to: null,
      subject: `What ${message.recipient} was waiting for`,
      html,
      text: null,
      signing_domain_id: null,
      track_opens: 1,
      track_clicks: 1,
      created_at: message.createdAt,
      raw: null,
      raw_size: null,
      submitter: null,
      dsn_ret: null,
      dsn_envid: null,
      tags: null,
      addressees: null,
      headers: null,
      attachments: null,
      scheduled_at: message.status === 'scheduled' ? dueAt(message) : null,
      batch_id: null,
      batch_index: null,
      pruned_at: null,
      is_marketing: 0,
      campaign_id: null,
      automation_id: null,
      template_id: null,
      merging: null,
      key_id: null,
      peer: null,
    })
}

/** Of scheduled mail and of what waits: after the measuring. */
function dueAt({ createdAt }: PastMessage): number {
  return createdAt + 3 * DAY_MS
}

/** When what happened to it happened; null for what did not. */
function momentsOf({ status, createdAt, isWaiting }: PastMessage) {
  const hasArrived = status === 'delivered' || status === 'opened' || status === 'clicked'
  const wasSent = hasArrived || status === 'bounced' || isWaiting
  return {
    sent: wasSent ? createdAt + 40 : null,
    delivered: hasArrived ? createdAt + 1_500 : null,
    opened: status === 'opened' || status === 'clicked' ? createdAt + 3_600_000 : null,
    clicked: status === 'clicked' ? createdAt + 3_660_000 : null,
    bounced: status === 'bounced' ? createdAt + 1_500 : null,
  }
}

function messageWriter(handle: BetterSqlite.Database) {
  const insert = bulkInsert(handle, 'messages')
  return (message: PastMessage, { workspaceId, contentId, campaignId }: Owner): void => {
    const at = momentsOf(message)
    const { status } = message
    insert({
      id: message.id,
      workspace_id: workspaceId,
      content_id: contentId,
      recipient: message.recipient,
      status,
      reason: status === 'suppressed' ? 'suppressed' : status === 'failed' ? 'invalid' : null,
      is_sandbox: 0,
      created_at: message.createdAt,
      sent_at: at.sent,
      delivered_at: at.delivered,
      opened_at: at.opened,
      clicked_at: at.clicked,
      bounced_at: at.bounced,
      complained_at: null,
      bounce_type: status === 'bounced' ? 'permanent' : null,
      dsn_notify: null,
      dsn_orcpt: null,
      campaign_id: campaignId,
      contact_id: null,
      merge_data: null,
      recipient_bucket: recipientBucket(message.recipient),
    })
  }
}

/** Attempts and events of a message, and what they add to the counters, the bounces and the queue. */
function traceWriter(handle: BetterSqlite.Database, gathered: Gathered) {
  const insertAttempt = bulkInsert(handle, 'attempts')
  const insertEvent = bulkInsert(handle, 'events')
  return (message: PastMessage, owner: Owner): void => {
    const { workspaceId } = owner
    const { id, status, createdAt, recipient: to } = message
    const at = momentsOf(message)
    const tell = (kind: EventKind, occurredAt: number, payload: object, counter?: CounterName) => {
      insertEvent({
        kind,
        workspace_id: workspaceId,
        message_id: id,
        is_sandbox: 0,
        occurred_at: occurredAt,
        payload: JSON.stringify({ to, ...payload }),
      })
      if (counter) count(gathered.counts, workspaceId, occurredAt, counter)
    }
    if (status === 'suppressed') tell('email.suppressed', createdAt, {})
    // Never mailed.
    if (status === 'suppressed' || status === 'failed') return
    tell('email.accepted', createdAt, {}, 'accepted')
    gathered.totals.accepted(workspaceId, 1)
    if (status === 'scheduled' || message.isWaiting) {
      gathered.queued.push({ id, ...owner, recipient: to, createdAt, dueAt: dueAt(message) })
      return
    }
    if (at.sent === null) {
      gathered.totals.ended(workspaceId, 'cancelled')
      return
    }
    gathered.totals.ended(workspaceId, at.bounced === null ? 'delivered' : 'bounced')
    const { campaignId } = owner
    tell(
      'email.sent',
      at.sent,
      campaignId === null ? {} : { campaignId },
      campaignId === null ? 'api_sends' : 'campaign_sends',
    )
    insertAttempt(attemptRow(message))
    if (at.delivered !== null) tell('email.delivered', at.delivered, { remoteMta: REMOTE_MTA }, 'delivered')
    if (at.bounced !== null) {
      gathered.bounced.push({ id, ...owner, recipient: to, bouncedAt: at.bounced })
      tell('email.bounced', at.bounced, { bounceType: 'permanent', smtpStatus: '5.1.1' }, 'bounces')
    }
    const visit = { ip: '198.51.100.7', userAgent: 'Mozilla/5.0 (X11; Linux x86_64)', isBot: false }
    if (at.opened !== null) tell('email.opened', at.opened, visit, 'opens')
    if (at.clicked !== null)
      tell('email.clicked', at.clicked, { ...visit, url: 'https://shop.example/a?id=1' }, 'clicks')
  }
}

function attemptRow({ id, recipient, status, createdAt }: PastMessage) {
  const isBounced = status === 'bounced'
  const reply = isBounced
    ? { code: 550, enhanced: '5.1.1', text: `<${recipient}>: Recipient address rejected: User unknown` }
    : { code: 250, enhanced: '2.0.0', text: 'Ok: queued as 4bXr2k3Jz9z1k' }
  const tried = {
    host: REMOTE_MTA,
    address: '192.0.2.25',
    port: 25,
    tls: { version: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384', verified: true },
    tlsPolicy: 'opportunistic',
    tlsPolicySource: 'default',
    stage: isBounced ? 'rcpt' : 'final_dot',
    reply,
    durationMs: 412,
    reused: false,
  }
  return {
    message_id: id,
    number: 1,
    started_at: createdAt + 40,
    finished_at: createdAt + 1_500,
    kind: isBounced ? ('bounced' as const) : ('delivered' as const),
    summary: `${REMOTE_MTA} answered ${reply.code} ${reply.enhanced} ${reply.text}`,
    reply_code: reply.code,
    status: reply.enhanced,
    classification: null,
    tried: JSON.stringify([tried]),
  }
}

function count(counts: Gathered['counts'], workspaceId: string, moment: number, name: CounterName): void {
  const day = dayOf(moment)
  const key = `${workspaceId} ${day} ${name}`
  counts.set(key, { workspaceId, day, name, count: (counts.get(key)?.count ?? 0) + 1 })
}
