/**
 * What happens to messages: changes them as the state machine says, and tells the event log what changed, and nothing else.
 *
 * The one way by which a message changes and an email.* event is written after its acceptance: settled deliveries, mail that
 * came back, what the operator or a caller takes back, the simulator. A batch is a statement for each kind of happening.
 * Whoever calls it wakes the consumers of the event log after the commit. Fails: as the database does.
 */
import type { Tx } from '../db/database.js'
import type { AboutMessage, Event } from '../events/event.js'
import { appendEvents } from '../events/store.js'
import { findOrigins } from './content-store.js'
import type { MailOrigin } from './mail-origin.js'
import { HAPPENINGS, RULES, type HappeningKind } from './message-status.js'
import { applyHappening, changesMessages, findHeads, type MessageHead } from './message-status-store.js'
import { removeQueued } from './queued-store.js'

/** What an event says beside what all events say of their message. */
export type FactsOf<Kind extends Event['kind']> = Omit<
  Extract<Event, { kind: Kind }>['payload'],
  keyof AboutMessage
>

type Told =
  | { readonly what: 'began' | 'cancelled' | 'handed_over' | 'suppressed' | 'withheld' }
  | { readonly what: 'delivered'; readonly facts: FactsOf<'email.delivered'> }
  | { readonly what: 'opened'; readonly facts: FactsOf<'email.opened'> }
  | { readonly what: 'inferred_open'; readonly facts: FactsOf<'email.opened'> }
  | { readonly what: 'clicked'; readonly facts: FactsOf<'email.clicked'> }
  | { readonly what: 'bounced'; readonly facts: FactsOf<'email.bounced'> }
  | { readonly what: 'complained'; readonly facts: FactsOf<'email.complained'> }
  | { readonly what: 'unsubscribed'; readonly facts: FactsOf<'email.unsubscribed'> }
  | { readonly what: 'failed'; readonly facts: FactsOf<'email.failed'> }

export type Happening = Told & {
  readonly messageId: string
  /** Ms since epoch UTC. */
  readonly at: number
}

/**
 * Happenings of one message take effect in the order of the table, whatever the order given; events are in the order given. A click
 * by a person on a message without an open also records the open, as an event of its own before that of the click.
 * Moments of the same kind of happening are that of the first of the batch.
 *
 * @param origins by content, where the caller knows them already
 * @returns those that were taken; the others changed nothing and were told to nobody
 */
export async function recordHappenings(
  tx: Tx,
  given: readonly Happening[],
  origins: ReadonlyMap<string, MailOrigin> = new Map(),
): Promise<ReadonlySet<Happening>> {
  const happenings = given.flatMap(withInferredOpen)
  const heads = new Map<string, MessageHead>()
  const taken = new Set<Happening>()
  const ended: string[] = []
  const groups = byKind(happenings)
  for (const group of groups.filter(({ kind }) => changesMessages(kind))) {
    const changed = await change(tx, group)
    for (const head of changed) heads.set(head.id, head)
    take(group, new Set(changed.map(({ id }) => id)), taken)
    if (RULES[group.kind].endsDelivery) ended.push(...changed.map(({ id }) => id))
  }
  for (const group of groups.filter(({ kind }) => !changesMessages(kind))) {
    await lookUp(tx, group, heads)
    const { takes } = RULES[group.kind]
    const takers = group.happenings.filter(({ messageId }) => {
      const head = heads.get(messageId)
      return head !== undefined && takes[head.status] !== undefined
    })
    take(group, new Set(takers.map(({ messageId }) => messageId)), taken)
  }
  await removeQueued(tx.db, ended)
  await appendEvents(
    tx,
    await eventsOf(
      tx,
      happenings.filter(one => taken.has(one)),
      heads,
      origins,
    ),
  )
  return taken
}

function withInferredOpen(happening: Happening): readonly Happening[] {
  if (happening.what !== 'clicked' || happening.facts.isBot) return [happening]
  const { messageId, at, facts } = happening
  const { ip, userAgent } = facts
  const seen = { ip, userAgent, isBot: false, isInferred: true }
  return [{ what: 'inferred_open', messageId, at, facts: seen }, happening]
}

interface Group {
  readonly kind: HappeningKind
  readonly happenings: readonly Happening[]
}

/** In the order of the table. Bounces of one type share a statement. */
function byKind(happenings: readonly Happening[]): Group[] {
  const groups = new Map<string, Happening[]>()
  for (const one of happenings) {
    const key = one.what === 'bounced' ? `bounced ${one.facts.bounceType}` : one.what
    const group = groups.get(key)
    if (group) group.push(one)
    else groups.set(key, [one])
  }
  return [...groups.values()]
    .map(group => ({ kind: group[0]?.what ?? 'began', happenings: group }))
    .sort((a, b) => HAPPENINGS.indexOf(a.kind) - HAPPENINGS.indexOf(b.kind))
}

function change(tx: Tx, { kind, happenings }: Group): Promise<MessageHead[]> {
  const [first] = happenings
  const ids = happenings.map(({ messageId }) => messageId)
  const bounceType = first?.what === 'bounced' ? first.facts.bounceType : undefined
  return applyHappening(tx.db, kind, ids, first?.at ?? 0, bounceType)
}

async function lookUp(tx: Tx, { happenings }: Group, heads: Map<string, MessageHead>): Promise<void> {
  const unknown = happenings.map(({ messageId }) => messageId).filter(id => !heads.has(id))
  for (const head of await findHeads(tx.db, [...new Set(unknown)])) heads.set(head.id, head)
}

/** What can be taken again is taken as often as the batch has it, everything else once for a message. */
function take({ kind, happenings }: Group, takers: ReadonlySet<string>, taken: Set<Happening>): void {
  const { takes, once } = RULES[kind]
  const isRepeatable = once === undefined && Object.values(takes).every(after => takes[after] !== undefined)
  const left = new Set(takers)
  for (const one of happenings) {
    if (!left.has(one.messageId)) continue
    taken.add(one)
    if (!isRepeatable) left.delete(one.messageId)
  }
}

async function eventsOf(
  tx: Tx,
  taken: readonly Happening[],
  heads: ReadonlyMap<string, MessageHead>,
  origins: ReadonlyMap<string, MailOrigin>,
): Promise<Event[]> {
  const told = taken.filter(({ what }) => RULES[what].tells !== undefined)
  const unknown = new Set(told.map(({ messageId }) => heads.get(messageId)?.contentId ?? ''))
  for (const id of origins.keys()) unknown.delete(id)
  const found = await findOrigins(tx.db, [...unknown])
  return told.flatMap(happening => {
    const head = heads.get(happening.messageId)
    return head ? [eventOf(happening, head, origins.get(head.contentId) ?? found.get(head.contentId))] : []
  })
}

/** What is told of a happening that was taken, or that changes nothing. */
export function eventOf(happening: Happening, head: MessageHead, origin: MailOrigin | undefined): Event {
  const { campaignId, contactId } = head
  return {
    kind: RULES[happening.what].tells,
    workspaceId: head.workspaceId,
    messageId: head.id,
    isSandbox: head.isSandbox,
    occurredAt: happening.at,
    payload: {
      to: head.recipient,
      ...origin,
      ...(campaignId === null ? {} : { campaignId }),
      ...(contactId === null ? {} : { contactId }),
      ...('facts' in happening ? happening.facts : {}),
    },
    // Which facts belong to which kind is what `Happening` says.
  } as Event
}
