/**
 * `postroad message show|list`: a message's envelope, status, submitter, delivery attempts and later bounce; and the search for messages.
 */
import type { Command } from 'commander'
import type { Static } from 'typebox'
import { isoTime, readMoment, readRangeEnd } from '../../core/moments.js'
import { parseDuration } from '../../core/units.js'
import { MESSAGE_STATUSES } from '../../messages/message-status.js'
import type { FoundMessageView, MessageDetail } from '../../msa/log/message-admin-routes.js'
import type { MessageSchema } from '../../msa/log/message-schema.js'
import { WAITING_STATES } from '../../queue/delivery-state-store.js'
import { textOf, withApi, type Query } from '../api.js'
import {
  type CliContext,
  type CommonOptions,
  type ListOptions,
  printResult,
  table,
  UsageError,
} from '../context.js'
import { apiCommand, choice, limited } from '../options.js'
import { waitText } from '../waits.js'
import { printable } from './mail-view.js'

type MessageView = Static<typeof MessageSchema>

export function messageCommands(program: Command, context: CliContext): void {
  const group = program.command('message').description('messages and their delivery traces')
  messageListCommand(group, context)
  apiCommand(group, 'show <id>', 'show status and delivery trace of a message, by id or Message-ID')
    .option('--raw', 'print the source of the mail, without the DKIM signature')
    .action(async (id: string, options: CommonOptions & { raw?: boolean }) => {
      await withApi(context, options, async ({ admin }) => {
        const path = `/messages/${encodeURIComponent(id)}`
        if (options.raw) {
          context.print(printable((await textOf(await admin.download(`${path}/source`))).trimEnd()))
          return
        }
        const view = await admin.get<MessageDetail>(path)
        const { bounce } = view
        printResult(context, options, view, () =>
          [
            messageText(view, view.envelope_sender, view),
            ...(bounce && isLate(bounce, view) ? lateBounceLines(bounce) : []),
          ].join('\n'),
        )
      })
    })
}

/** A bounce that came by mail; rejections during delivery are part of the trace. */
function isLate({ created_at: createdAt }: Bounce, { trace }: MessageView): boolean {
  const last = trace.at(-1)
  return (
    last === undefined ||
    last.outcome === 'delivered' ||
    Date.parse(last.finished_at) + 60_000 < Date.parse(createdAt)
  )
}

function lateBounceLines(bounce: Bounce): string[] {
  const { cause, scope, subtype, type } = bounce
  return [
    '',
    `bounced     ${bounce.created_at}  ${type} (${cause}/${scope}/${subtype})`,
    `  ${bounce.remote_mta ?? 'its server'}: ${bounce.smtp_status} ${bounce.diagnostic_code}`,
  ]
}

type Bounce = NonNullable<MessageDetail['bounce']>

export function messageText(
  view: MessageView,
  envelopeSender: string,
  submittedBy?: Pick<MessageDetail, 'key_id' | 'peer'>,
): string {
  const facts: [string, string | number | null][] = [
    ['message', view.message_id],
    ['status', view.reason === undefined ? view.status : `${view.status} (${view.reason})`],
    ['envelope', `<${envelopeSender}> to <${view.to}>`],
    ['from', view.from],
    ['subject', view.subject],
    ['accepted', view.created_at],
    ['submitted by', submittedBy ? submitterOf(submittedBy) : null],
    ['delivered', view.delivered_at],
    ['bounced', view.bounced_at],
    ['next attempt', view.next_attempt_at],
    ['waits for', waitText(view.waiting_for)],
  ]
  const lines = facts
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name.padEnd(13)} ${value ?? ''}`)
  return [...lines, ...view.trace.flatMap(attemptLines)].join('\n')
}

/** A user of the shell has no address. */
function submitterOf({ key_id: key, peer }: Pick<MessageDetail, 'key_id' | 'peer'>): string | null {
  return key && (peer ? `key ${key} from ${peer}` : `key ${key}`)
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
  const list = apiCommand(group, 'list', 'list messages of all workspaces, newest first')
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
      const query = readSearch(options, context.world.clock.now())
      await withApi(context, options, async ({ admin }) => {
        const found = await admin.list<FoundMessageView>(
          '/messages',
          { ...query, workspace_id: options.workspace },
          options.limit,
        )
        printResult(context, options, found, () => toText(found))
      })
    })
}

/** @throws UsageError */
function readSearch(options: SearchOptions, now: number): Query {
  const { to, from, status, since, until, subject, key, messageId } = options
  for (const [name, address] of Object.entries({ to, from }))
    if (address !== undefined && !address.includes('@'))
      throw new UsageError(`--${name} must be an address, or a domain as @example.com`)
  const others = [to, from, status, since, until, subject, key, options.workspace]
  if (messageId !== undefined && others.some(value => value !== undefined))
    throw new UsageError('--message-id cannot be combined with other options')
  return {
    to,
    from,
    status,
    subject,
    key_id: key,
    message_id: messageId,
    since: since === undefined ? undefined : isoTime(readWhen('--since', since, now, readMoment)),
    until: until === undefined ? undefined : isoTime(readWhen('--until', until, now, readRangeEnd)),
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

function statusOf({ status, reason, delivery_state: state }: FoundMessageView): string {
  const detail = reason ?? state
  return detail === null ? status : `${status} (${detail})`
}

const SUBJECT_SHOWN = 40

function toText(found: readonly FoundMessageView[]): string {
  return table(
    ['ID', 'ACCEPTED', 'STATUS', 'FROM', 'TO', 'KEY', 'PEER', 'SUBJECT'],
    found.map(one => [
      one.message_id,
      one.created_at,
      statusOf(one),
      one.from,
      one.to,
      one.key_id,
      one.peer,
      one.subject.replace(/[\p{Cc}]/gu, ' ').slice(0, SUBJECT_SHOWN),
    ]),
  )
}
