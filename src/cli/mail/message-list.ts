/** `postroad message list`: searches the messages of all workspaces. */
import type { Command } from 'commander'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { isoTime, readMoment, readRangeEnd } from '../../core/moments.js'
import { parseDuration } from '../../core/units.js'
import type { Queries } from '../../db/database.js'
import { findContents } from '../../messages/content-store.js'
import { MESSAGE_STATUSES } from '../../messages/message-status.js'
import { findAnyMessage, findMessagesOf, type Message } from '../../messages/message-store.js'
import {
  findRelayedContent,
  searchMessages,
  type FoundMessage,
  type MessageSearch,
} from '../../msa/log/message-search-store.js'
import { findDeliveryStates, WAITING_STATES, type DeliveryState } from '../../queue/delivery-state-store.js'
import { listWorkspaceIds } from '../../accounts/workspace-store.js'
import {
  command,
  limited,
  printResult,
  table,
  UsageError,
  withAppliance,
  type CliContext,
  type ListOptions,
} from '../context.js'

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

export function messageListCommand(group: Command, context: CliContext): void {
  limited(command(group, 'list', 'list messages of all workspaces, newest first'), 50)
    .option('--to <address>', 'recipient, or a domain as @example.com')
    .option('--from <address>', 'author, or a domain as @example.com')
    .option('--status <status>', `one of ${STATUSES.join(', ')}`)
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
export async function findMatching(db: Queries, named: string): Promise<Message[]> {
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
  if (status !== undefined && !(STATUSES as readonly string[]).includes(status))
    throw new UsageError(`unknown status ${status}; use one of ${STATUSES.join(', ')}`)
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
export async function mustFindMeant(db: Queries, named: string): Promise<Message> {
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
