/**
 * `postroad message show|list`: a message's envelope, status, submitter, delivery attempts and later bounce; and the search for messages.
 */
import type { Command } from 'commander'
import type { Static } from 'typebox'
import { listWorkspaceIds } from '../../accounts/workspace-store.js'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { isoTime, readMoment, readRangeEnd } from '../../core/moments.js'
import { parseDuration } from '../../core/units.js'
import type { Queries } from '../../db/database.js'
import { bounceToApi } from '../../deliverability/bounces/bounce-routes.js'
import { type Bounce, findBounceOf } from '../../deliverability/bounces/bounce-store.js'
import { findContents } from '../../messages/content-store.js'
import type { SubmittedBy } from '../../messages/mail-log.js'
import { MESSAGE_STATUSES } from '../../messages/message-status.js'
import { findAnyMessage, findMessagesOf, type Message } from '../../messages/message-store.js'
import type { MessageSchema } from '../../msa/log/message-schema.js'
import {
  findRelayedContent,
  type FoundMessage,
  type MessageSearch,
  searchMessages,
} from '../../msa/log/message-search-store.js'
import { messageWithTrace } from '../../msa/log/message-view.js'
import { type DeliveryState, findDeliveryStates, WAITING_STATES } from '../../queue/delivery-state-store.js'
import {
  type CliContext,
  type CommonOptions,
  type ListOptions,
  printResult,
  table,
  UsageError,
  withAppliance,
} from '../context.js'
import { choice, command, limited } from '../options.js'

type MessageView = Static<typeof MessageSchema>

export function messageCommands(program: Command, context: CliContext): void {
  const group = program.command('message').description('messages and their delivery traces')
  messageListCommand(group, context)
  command(group, 'show <id>', 'show status and delivery trace of a message, by id or Message-ID').action(
    async (id: string, options: CommonOptions) => {
      await withAppliance(context, options, async ({ database, returnPath }) => {
        const { reader } = database
        const message = await getMessageNamed(reader, id)
        const view = await messageWithTrace(reader, message)
        const sender = returnPath(message.id, message.recipient)
        const [content] = await findContents(reader, [message.contentId])
        const bounce = await findBounceOf(reader, message.id)
        const json = {
          ...view,
          workspace_id: message.workspaceId,
          envelope_sender: sender,
          key_id: content?.submittedBy?.keyId ?? null,
          peer: content?.submittedBy?.peer ?? null,
          bounce: bounce ? bounceToApi(bounce) : null,
        }
        printResult(context, options, json, () =>
          [
            messageText(view, sender, content?.submittedBy),
            ...(bounce && isLate(bounce, view) ? lateBounceLines(bounce) : []),
          ].join('\n'),
        )
      })
    },
  )
}

/** A bounce that came by mail; rejections during delivery are part of the trace. */
function isLate({ createdAt }: Bounce, { trace }: MessageView): boolean {
  const last = trace.at(-1)
  return (
    last === undefined || last.outcome === 'delivered' || Date.parse(last.finished_at) + 60_000 < createdAt
  )
}

function lateBounceLines(bounce: Bounce): string[] {
  const { createdAt, cause, scope, subtype, type, smtpStatus, remoteMta, diagnosticCode } = bounce
  return [
    '',
    `bounced     ${isoTime(createdAt)}  ${type} (${cause}/${scope}/${subtype})`,
    `  ${remoteMta ?? 'its server'}: ${smtpStatus} ${diagnosticCode}`,
  ]
}

export function messageText(view: MessageView, envelopeSender: string, submittedBy?: SubmittedBy): string {
  const facts: [string, string | number | null][] = [
    ['message', view.message_id],
    ['status', view.reason === undefined ? view.status : `${view.status} (${view.reason})`],
    ['envelope', `<${envelopeSender}> to <${view.to}>`],
    ['from', view.from],
    ['subject', view.subject],
    ['accepted', view.created_at],
    ['submitted by', submittedBy ? `key ${submittedBy.keyId} from ${submittedBy.peer}` : null],
    ['delivered', view.delivered_at],
    ['bounced', view.bounced_at],
    ['next attempt', view.next_attempt_at],
  ]
  const lines = facts
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name.padEnd(13)} ${value ?? ''}`)
  return [...lines, ...view.trace.flatMap(attemptLines)].join('\n')
}

function attemptLines(attempt: MessageView['trace'][number]): string[] {
  const why = [attempt.cause, attempt.scope, attempt.subtype].filter(word => word !== null).join('/')
  return [
    '',
    `attempt ${attempt.attempt}  ${attempt.started_at}  ${attempt.outcome}${why === '' ? '' : ` (${why})`}`,
    `  ${attempt.summary}`,
    ...attempt.hosts.flatMap(hostLines),
  ]
}

function hostLines(host: MessageView['trace'][number]['hosts'][number]): string[] {
  const tls = host.tls
    ? `${host.tls.version} ${host.tls.cipher}, ${host.tls.verified ? 'verified' : `not verified: ${host.tls.unverified_reason ?? ''}`}`
    : 'no TLS'
  const reuse = host.reused_connection ? ', connection reused' : ''
  return [
    `  ${host.host} [${host.address ?? 'no address'}]:${host.port}  ${host.duration_ms} ms, ${tls}${reuse}`,
    ...policyLines(host),
    `    ${host.stage}: ${host.reply ?? host.error ?? 'no reply'}`,
  ]
}

/** Empty if neither a TLS policy nor MTA-STS applied. */
function policyLines({
  tls_policy: policy,
  tls_policy_source: source,
  mta_sts: sts,
}: MessageView['trace'][number]['hosts'][number]): string[] {
  const demand =
    policy === null || source === null || source === 'default'
      ? []
      : [`    TLS policy: ${policy} (${source})`]
  if (sts === null) return demand
  const findings = [sts.result, sts.reason].filter(part => part !== null).join(': ')
  return [...demand, `    MTA-STS ${sts.mode}${findings === '' ? '' : `, ${findings}`}`]
}

/** `queued` and `deferred` are subsets of `sent`. */
const STATUSES = [...MESSAGE_STATUSES, ...WAITING_STATES] as const

interface SearchOptions extends ListOptions {
  readonly to?: string
  readonly from?: string
  readonly status?: string
  readonly since?: string
  readonly until?: string
  readonly subject?: string
  readonly messageId?: string
  readonly key?: string
  readonly workspace?: string
}

function messageListCommand(group: Command, context: CliContext): void {
  const list = command(group, 'list', 'list messages of all workspaces, newest first')
  choice(limited(list, 50), '--status <status>', STATUSES)
    .option('--to <address>', 'recipient, or a domain as @example.com')
    .option('--from <address>', 'author, or a domain as @example.com')
    .option('--since <when>', 'accepted since: 2h, 3d, or a date and time (UTC)')
    .option('--until <when>', 'accepted before, in the same form')
    .option('--subject <part>', 'text in the subject')
    .option('--message-id <id>', 'Message-ID header')
    .option('--key <id>', 'submitted with this API key')
    .option('--workspace <name|id>', 'only this workspace')
    .action(async (options: SearchOptions) => {
      await withAppliance(context, options, async ({ database, world }) => {
        const search = readSearch(options, world.clock.now())
        const found = await find(database.reader, search, options)
        const unsettled = found.filter(({ status }) => status === 'sent').map(({ id }) => id)
        const states = await findDeliveryStates(database.reader, unsettled)
        const shown = found.map(one => ({ ...one, deliveryState: states.get(one.id) ?? null }))
        printResult(context, options, shown.map(toJson), () => toText(shown))
      })
    })
}

/** Accepts a message's id, its content's id, or a Message-ID with or without `<>`. */
async function findMatching(db: Queries, named: string): Promise<Message[]> {
  const id = named.trim().replace(/^<(.*)>$/, '$1')
  // Our Message-IDs are an id at the appliance's hostname.
  const local = (id.split('@')[0] ?? '').toLowerCase()
  if (isUuid(local)) {
    const message = await findAnyMessage(db, local)
    if (message) return [message]
    const copies = await findMessagesOf(db, local)
    if (copies.length > 0) return copies
  }
  if (!id.includes('@')) return []
  const contentId = await findRelayedContent(db, id)
  return contentId === undefined ? [] : findMessagesOf(db, contentId)
}

async function find(db: Queries, search: MessageSearch, options: SearchOptions): Promise<FoundMessage[]> {
  const { messageId, limit } = options
  if (messageId === undefined) return searchMessages(db, search, await listWorkspaceIds(db), limit)
  const others = [options.to, options.from, options.status, options.since, options.until, options.subject]
  if ([...others, options.key, options.workspace].some(value => value !== undefined))
    throw new UsageError('--message-id cannot be combined with other options')
  const messages = (await findMatching(db, messageId)).slice(0, limit)
  const contents = await findContents(db, [...new Set(messages.map(({ contentId }) => contentId))])
  return messages.map(message => {
    const content = contents.find(({ id }) => id === message.contentId)
    const { submittedBy } = content ?? {}
    return {
      ...message,
      subject: content?.subject ?? '',
      from: content?.from.address ?? '',
      ...(submittedBy ? { submittedBy } : {}),
    }
  })
}

function readSearch(options: SearchOptions, now: number): MessageSearch {
  const { to, from, status, since, until, subject, key, workspace } = options
  for (const [name, address] of Object.entries({ to, from }))
    if (address !== undefined && !address.includes('@'))
      throw new UsageError(`--${name} must be an address, or a domain as @example.com`)
  return {
    ...(to === undefined ? {} : { to: to.trim() }),
    ...(from === undefined ? {} : { from: from.trim() }),
    ...(status === undefined ? {} : { status: status as (typeof STATUSES)[number] }),
    ...(since === undefined ? {} : { since: readWhen('--since', since, now, readMoment) }),
    ...(until === undefined ? {} : { until: readWhen('--until', until, now, readRangeEnd) }),
    ...(subject === undefined ? {} : { subject }),
    ...(key === undefined ? {} : { keyId: key }),
    ...(workspace === undefined ? {} : { workspaceId: workspace }),
  }
}

/** @param read parses a date and time; a duration is subtracted from now */
export function readWhen(
  option: string,
  text: string,
  now: number,
  read: (text: string) => number | undefined,
): number {
  const ago = parseDuration(text)
  const at = ago === undefined ? read(text) : now - ago
  if (at === undefined)
    throw new UsageError(`${option} ${text} is not a time; use 30m, 2h, 3d, or a date and time`)
  return at
}

/** @throws AppError not_found */
async function getMessageNamed(db: Queries, named: string): Promise<Message> {
  const [message, ...others] = await findMatching(db, named)
  if (!message) throw new AppError('not_found', `no message ${named}`)
  if (others.length > 0)
    throw new AppError(
      'conflict',
      `${named} went to ${others.length + 1} recipients; use one of these ids: ${[message, ...others]
        .slice(0, 12)
        .map(({ id, recipient }) => `${id} (${recipient})`)
        .join(', ')}`,
    )
  return message
}

type ListedMessage = FoundMessage & { readonly deliveryState: DeliveryState | null }

function toJson(found: ListedMessage) {
  return {
    message_id: found.id,
    workspace_id: found.workspaceId,
    status: found.status,
    delivery_state: found.deliveryState,
    reason: found.reason,
    from: found.from,
    to: found.recipient,
    subject: found.subject,
    key_id: found.submittedBy?.keyId ?? null,
    peer: found.submittedBy?.peer ?? null,
    created_at: isoTime(found.createdAt),
    is_sandbox: found.isSandbox,
  }
}

function statusOf({ status, reason, deliveryState }: ListedMessage): string {
  const detail = reason ?? deliveryState
  return detail === null ? status : `${status} (${detail})`
}

const SUBJECT_SHOWN = 40

function toText(found: readonly ListedMessage[]): string {
  return table(
    ['ID', 'ACCEPTED', 'STATUS', 'FROM', 'TO', 'KEY', 'PEER', 'SUBJECT'],
    found.map(one => [
      one.id,
      isoTime(one.createdAt),
      statusOf(one),
      one.from,
      one.recipient,
      one.submittedBy?.keyId ?? null,
      one.submittedBy?.peer ?? null,
      one.subject.replace(/[\p{Cc}]/gu, ' ').slice(0, SUBJECT_SHOWN),
    ]),
  )
}
