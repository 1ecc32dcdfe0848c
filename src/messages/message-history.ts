/**
 * Applies transitions to messages and appends the events that follow.
 *
 * The only way a message changes or an `email.*` event is written after acceptance: deliveries, returned mail,
 * deletions, cancellations and the simulator. A batch runs one statement per kind of transition. Callers wake the event
 * consumers after the commit.
 */
import { given } from '../core/given.js'
import { must } from '../core/must.js'
import type { Tx } from '../db/database.js'
import type { AboutMessage, Event } from '../events/event.js'
import { appendEvents } from '../events/store.js'
import { findOrigins } from './content-store.js'
import type { MailOrigin } from './mail-origin.js'
import { TRANSITIONS, RULES, type SkipReason, type TransitionKind } from './message-status.js'
import {
  applyTransition,
  changesMessages,
  findHeads,
  type MessageHead,
  removeQueued,
} from './message-status-store.js'
import { TotalsChange } from './mail-totals-store.js'

export type FactsOf<Kind extends Event['kind']> = Omit<
  Extract<Event, { kind: Kind }>['payload'],
  keyof AboutMessage
>

type TransitionFacts =
  | { readonly kind: 'started' | 'cancelled' | 'offered' | 'presumed' }
  | { readonly kind: 'suppressed' | 'withheld'; readonly facts?: FactsOf<'email.suppressed'> }
  | { readonly kind: 'delivered'; readonly facts: FactsOf<'email.delivered'> }
  | { readonly kind: 'opened'; readonly facts: FactsOf<'email.opened'> }
  | { readonly kind: 'inferred_open'; readonly facts: FactsOf<'email.opened'> }
  | { readonly kind: 'clicked'; readonly facts: FactsOf<'email.clicked'> }
  | { readonly kind: 'bounced'; readonly facts: FactsOf<'email.bounced'> }
  | { readonly kind: 'complained'; readonly facts: FactsOf<'email.complained'> }
  | { readonly kind: 'unsubscribed'; readonly facts: FactsOf<'email.unsubscribed'> }
  | { readonly kind: 'failed'; readonly facts: FactsOf<'email.failed'> }

export type Transition = TransitionFacts & {
  readonly messageId: string
  readonly at: number
}

/**
 * Transitions of one message are applied in the order of `TRANSITIONS`; events keep the given order. A click by a
 * person on a message without an open also records an open. Transitions of the same kind in a batch share the first
 * one's moment.
 *
 * @param origins by content id, as far as the caller knows them
 * @returns the transitions that applied; the others changed nothing and have no event
 */
export async function recordTransitions(
  tx: Tx,
  recorded: readonly Transition[],
  origins: ReadonlyMap<string, MailOrigin> = new Map(),
): Promise<ReadonlySet<Transition>> {
  const transitions = recorded.flatMap(withInferredOpen)
  const heads = new Map<string, MessageHead>()
  const taken = new Set<Transition>()
  const ended: string[] = []
  const totals = new TotalsChange()
  const groups = byKind(transitions)
  for (const group of groups.filter(({ kind }) => changesMessages(kind))) {
    const changed = await change(tx, group)
    for (const head of changed) {
      heads.set(head.id, head)
      totals.moved(group.kind, head)
    }
    take(group, new Set(changed.map(({ id }) => id)), taken)
    if (RULES[group.kind].endsDelivery) ended.push(...changed.map(({ id }) => id))
    for (const head of await presume(tx, group, changed)) {
      totals.moved('presumed', head)
      ended.push(head.id)
    }
  }
  for (const group of groups.filter(({ kind }) => !changesMessages(kind))) {
    await lookUp(tx, group, heads)
    const { next } = RULES[group.kind]
    const takers = group.transitions.filter(({ messageId }) => {
      const head = heads.get(messageId)
      return head !== undefined && next[head.status] !== undefined
    })
    take(group, new Set(takers.map(({ messageId }) => messageId)), taken)
  }
  await removeQueued(tx.db, ended)
  await totals.write(tx.db)
  await appendEvents(
    tx,
    await eventsOf(
      tx,
      transitions.filter(one => taken.has(one)),
      heads,
      origins,
    ),
  )
  return taken
}

function withInferredOpen(transition: Transition): readonly Transition[] {
  if (transition.kind !== 'clicked' || transition.facts.isBot) return [transition]
  const { messageId, at, facts } = transition
  const { ip, userAgent } = facts
  const seen = { ip, userAgent, isBot: false, isInferred: true }
  return [{ kind: 'inferred_open', messageId, at, facts: seen }, transition]
}

interface Group {
  readonly kind: TransitionKind
  readonly transitions: readonly Transition[]
}

/** In the order of `TRANSITIONS`. Bounces of one type share a statement, as does what is withheld for one reason. */
function byKind(transitions: readonly Transition[]): Group[] {
  const groups = new Map<string, Transition[]>()
  for (const one of transitions) {
    const key = `${one.kind} ${one.kind === 'bounced' ? one.facts.bounceType : (reasonOf(one) ?? '')}`
    const group = groups.get(key)
    if (group) group.push(one)
    else groups.set(key, [one])
  }
  return [...groups.values()]
    .map(group => ({ kind: group[0]?.kind ?? 'started', transitions: group }))
    .sort((a, b) => TRANSITIONS.indexOf(a.kind) - TRANSITIONS.indexOf(b.kind))
}

function change(tx: Tx, { kind, transitions }: Group): Promise<MessageHead[]> {
  const [first] = transitions
  const ids = transitions.map(({ messageId }) => messageId)
  const bounceType = first?.kind === 'bounced' ? first.facts.bounceType : undefined
  const reason = first && reasonOf(first)
  return applyTransition(tx.db, kind, ids, must(first, 'a transition').at, given({ bounceType, reason }))
}

function reasonOf(one: Transition): SkipReason | undefined {
  return one.kind === 'suppressed' || one.kind === 'withheld' ? one.facts?.reason : undefined
}

const GIVES_UP: ReadonlySet<TransitionKind> = new Set(['failed', 'suppressed', 'withheld'])

/** An opened message has been delivered, so it does not fail: it leaves the queue as delivered. */
async function presume(
  tx: Tx,
  { kind, transitions }: Group,
  changed: readonly MessageHead[],
): Promise<MessageHead[]> {
  if (!GIVES_UP.has(kind) || changed.length === transitions.length) return []
  const known = new Set(changed.map(({ id }) => id))
  const ids = transitions.map(({ messageId }) => messageId).filter(id => !known.has(id))
  return applyTransition(tx.db, 'presumed', ids, must(transitions[0], 'a transition').at)
}

async function lookUp(tx: Tx, { transitions }: Group, heads: Map<string, MessageHead>): Promise<void> {
  const unknown = transitions.map(({ messageId }) => messageId).filter(id => !heads.has(id))
  for (const head of await findHeads(tx.db, [...new Set(unknown)])) heads.set(head.id, head)
}

/** Repeatable transitions apply as often as the batch contains them, others once per message. */
function take({ kind, transitions }: Group, takers: ReadonlySet<string>, taken: Set<Transition>): void {
  const { next, once } = RULES[kind]
  const isRepeatable = once === undefined && Object.values(next).every(after => next[after] !== undefined)
  const left = new Set(takers)
  for (const one of transitions) {
    if (!left.has(one.messageId)) continue
    taken.add(one)
    if (!isRepeatable) left.delete(one.messageId)
  }
}

async function eventsOf(
  tx: Tx,
  taken: readonly Transition[],
  heads: ReadonlyMap<string, MessageHead>,
  origins: ReadonlyMap<string, MailOrigin>,
): Promise<Event[]> {
  const logged = taken.filter(({ kind }) => RULES[kind].event !== undefined)
  const unknown = new Set(logged.map(({ messageId }) => heads.get(messageId)?.contentId ?? ''))
  for (const id of origins.keys()) unknown.delete(id)
  const found = await findOrigins(tx.db, [...unknown])
  return logged.flatMap(transition => {
    const head = heads.get(transition.messageId)
    return head ? [eventOf(transition, head, origins.get(head.contentId) ?? found.get(head.contentId))] : []
  })
}

/** The event of a transition that applied or that changes nothing. */
export function eventOf(transition: Transition, head: MessageHead, origin: MailOrigin | undefined): Event {
  const { campaignId, contactId } = head
  return {
    kind: RULES[transition.kind].event,
    workspaceId: head.workspaceId,
    messageId: head.id,
    isSandbox: head.isSandbox,
    occurredAt: transition.at,
    payload: {
      to: head.recipient,
      ...origin,
      ...(campaignId === null ? {} : { campaignId }),
      ...(contactId === null ? {} : { contactId }),
      ...('facts' in transition ? transition.facts : {}),
    },
    // `Transition` pairs kinds with their facts.
  } as Event
}
