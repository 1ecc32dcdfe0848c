/** The state machine of messages: every transition in every status, as the table says and as both databases do it. */
import t from 'tap'
import type { Database } from '../../src/db/database.js'
import { readEventsAfter } from '../../src/events/store.js'
import { insertContent } from '../../src/messages/content-store.js'
import { recordTransitions, type Transition } from '../../src/messages/message-history.js'
import {
  TRANSITIONS,
  MESSAGE_STATUSES,
  RULES,
  stateAfter,
  type TransitionKind,
  type MessageState,
  type MessageStatus,
} from '../../src/messages/message-status.js'
import { findAnyMessage, insertMessages } from '../../src/messages/message-store.js'
import { eachDatabase } from '../support/db/database.js'
import { CONTENT, enqueue, NOW } from '../support/mailroom.js'

/** What each transition makes of each status; `·` not taken, `=` taken, the status stays. */
const EXPECTED = `
               scheduled   cancelled  sent        delivered  opened   clicked  bounced  failed  suppressed  tells
  started      sent        ·          ·           ·          ·        ·        ·        ·       ·           nothing
  cancelled    cancelled   ·          ·           ·          ·        ·        ·        ·       ·           nothing
  offered      ·           ·          =           =          =        =        =        =       =           email.sent
  delivered    ·           ·          delivered   =          =        =        =        ·       ·           email.delivered
  opened       ·           ·          opened      opened     =        =        =        =       =           email.opened
  inferred_open ·          ·          opened      opened     =        =        =        =       =           email.opened
  clicked      ·           ·          clicked     clicked    clicked  =        =        =       =           email.clicked
  bounced      ·           ·          bounced     bounced    =        =        =        =       =           email.bounced
  complained   ·           ·          =           =          =        =        =        =       =           email.complained
  unsubscribed ·           ·          =           =          =        =        =        =       =           email.unsubscribed
  failed       failed      ·          failed      ·          ·        ·        ·        ·       ·           email.failed
  suppressed   suppressed  ·          suppressed  ·          ·        ·        ·        ·       ·           email.suppressed
  withheld     ·           ·          suppressed  ·          ·        ·        ·        ·       ·           email.suppressed
  presumed     ·           ·          ·           ·          =        =        ·        ·       ·           nothing
`

interface Pair {
  readonly kind: TransitionKind
  readonly before: MessageStatus
  /** Undefined where it is not taken. */
  readonly after: MessageStatus | undefined
}

function readExpected(): { pairs: Pair[]; tells: ReadonlyMap<string, string> } {
  const [head = [], ...rows] = EXPECTED.trim()
    .split('\n')
    .map(line => line.trim().split(/\s+/))
  const pairs = rows.flatMap(([kind = '', ...cells]) =>
    head.slice(0, -1).map((before, at): Pair => {
      const cell = cells[at]
      const after = cell === '=' ? before : cell === '·' ? undefined : cell
      return { kind, before, after } as Pair
    }),
  )
  return { pairs, tells: new Map(rows.map(row => [row[0] ?? '', row.at(-1) ?? ''])) }
}

const { pairs, tells } = readExpected()

const SETS: Readonly<Record<string, readonly (keyof MessageState)[]>> = {
  started: ['sentAt'],
  delivered: ['deliveredAt'],
  opened: ['openedAt'],
  inferred_open: ['openedAt'],
  clicked: ['openedAt', 'clickedAt'],
  bounced: ['bouncedAt'],
  complained: ['complainedAt'],
  presumed: ['deliveredAt'],
}

const NOTHING_YET: Omit<MessageState, 'status'> = {
  reason: null,
  bounceType: null,
  sentAt: null,
  deliveredAt: null,
  openedAt: null,
  clickedAt: null,
  bouncedAt: null,
  complainedAt: null,
}

const AT = NOW + 60_000

function expectedAfter({ kind, before, after }: Pair): MessageState {
  const state = { ...NOTHING_YET, status: before, sentAt: before === 'sent' ? NOW : null }
  if (after === undefined) return state
  const isSuppressed = after === 'suppressed' && before !== after
  return {
    ...state,
    ...Object.fromEntries((SETS[kind] ?? []).map(moment => [moment, AT])),
    ...(kind === 'suppressed' ? { sentAt: null } : {}),
    status: after,
    reason: isSuppressed ? 'suppressed' : null,
    bounceType: kind === 'bounced' ? 'permanent' : null,
  }
}

/** What was opened counts as delivered once its delivery is given up. */
function expectedInDatabase(pair: Pair): MessageState {
  const isGivenUp = ['failed', 'suppressed', 'withheld'].includes(pair.kind)
  const isOpened = pair.before === 'opened' || pair.before === 'clicked'
  return { ...expectedAfter(pair), ...(isGivenUp && isOpened ? { deliveredAt: AT } : {}) }
}

t.test('every transition is listed for every status', async t => {
  t.equal(pairs.length, TRANSITIONS.length * MESSAGE_STATUSES.length)
  for (const kind of TRANSITIONS) t.equal(RULES[kind].event ?? 'nothing', tells.get(kind), kind)
})

t.test('the table applies each transition in each status as listed', async t => {
  for (const pair of pairs) {
    const { kind, before, after } = pair
    const state = { ...NOTHING_YET, status: before, sentAt: before === 'sent' ? NOW : null }
    t.same(
      stateAfter(state, kind, AT, 'permanent'),
      after === undefined ? undefined : expectedAfter(pair),
      `${kind} while ${before}`,
    )
  }
})

t.test('one-time transitions do not repeat, and first moments stay', async t => {
  const state = { ...NOTHING_YET, status: 'clicked' as const, openedAt: NOW, clickedAt: NOW }
  t.equal(stateAfter(state, 'inferred_open', AT), undefined, 'an open is known')
  for (const kind of ['delivered', 'bounced', 'complained'] as const) {
    const once = stateAfter(state, kind, AT, 'permanent')
    t.ok(once, kind)
    t.equal(stateAfter(once ?? state, kind, AT + 1), undefined, `${kind} again`)
  }
  t.match(stateAfter(state, 'clicked', AT), { openedAt: NOW, clickedAt: NOW, status: 'clicked' })
})

const seen = { ip: '192.0.2.1', userAgent: 'test', isBot: false }
const FACTS = {
  delivered: { remoteMta: 'mx.x.example' },
  opened: seen,
  inferred_open: { ...seen, isInferred: true },
  clicked: { ...seen, url: 'https://shop.example/' },
  bounced: {
    bounceType: 'permanent',
    cause: 'recipient',
    scope: 'address',
    subtype: 'no_such_mailbox',
    smtpStatus: '5.1.1',
    diagnosticCode: 'smtp; 550 5.1.1 no such user',
  },
  complained: { feedbackType: 'abuse' },
  unsubscribed: { source: 'one_click' },
  failed: { reason: 'the subject holds a line break' },
} as const

function transition(kind: TransitionKind, messageId: string, at = AT): Transition {
  const facts = kind in FACTS ? { facts: FACTS[kind as keyof typeof FACTS] } : {}
  return { kind: kind, messageId, at, ...facts } as Transition
}

const KINDS = [
  'email.sent',
  'email.delivered',
  'email.opened',
  'email.clicked',
  'email.bounced',
  'email.complained',
  'email.unsubscribed',
  'email.failed',
  'email.suppressed',
] as const

const eventsOf = async (database: Database) => readEventsAfter(database.reader, 0, KINDS, 1_000)

const stateOf = async (database: Database, id: string): Promise<MessageState> => {
  const message = await findAnyMessage(database.reader, id)
  if (!message) throw new Error(`no message ${id}`)
  const { status, reason, bounceType, sentAt, deliveredAt, openedAt, clickedAt, bouncedAt, complainedAt } =
    message
  const moments = { sentAt, deliveredAt, openedAt, clickedAt, bouncedAt, complainedAt }
  return { status, reason, bounceType, ...moments }
}

eachDatabase(
  t,
  'a batch of every transition in every status does what the table says',
  async (t, database) => {
    const idOf = ({ kind, before }: Pair) => `${kind} while ${before}`
    await database.write(async ({ db }) => {
      await insertContent(db, CONTENT)
      await insertMessages(
        db,
        CONTENT,
        false,
        pairs.map(pair => ({
          id: idOf(pair),
          recipient: `${pair.before}@x.example`,
          status: pair.before,
          reason: null,
        })),
      )
    })
    const taken = await database.write(tx =>
      recordTransitions(
        tx,
        pairs.map(pair => transition(pair.kind, idOf(pair))),
      ),
    )
    for (const pair of pairs)
      t.same(await stateOf(database, idOf(pair)), expectedInDatabase(pair), idOf(pair))
    t.same(
      [...taken].flatMap(({ kind, messageId }) => (messageId.startsWith(kind) ? [messageId] : [])).sort(),
      pairs
        .filter(({ after }) => after !== undefined)
        .map(idOf)
        .sort(),
    )
    t.same(
      (await eventsOf(database)).map(({ messageId, kind }) => [messageId, kind]),
      pairs
        .filter(({ kind, after }) => after !== undefined && tells.get(kind) !== 'nothing')
        .flatMap(pair => [
          ...(pair.kind === 'clicked' ? [[idOf(pair), 'email.opened']] : []),
          [idOf(pair), tells.get(pair.kind)],
        ]),
      'told is what was taken, in the order given',
    )
  },
)

eachDatabase(
  t,
  'one-time transitions have one event, however often and late they come',
  async (t, database) => {
    await enqueue(database, [{ id: 'm1', to: 'm1@x.example' }])
    const record = (...kinds: TransitionKind[]) =>
      database.write(tx =>
        recordTransitions(
          tx,
          kinds.map((kind, at) => transition(kind, 'm1', AT + at)),
        ),
      )
    await record('offered', 'opened')
    await record('bounced', 'bounced', 'complained')
    await record('bounced')
    await record('delivered', 'complained', 'opened')
    await record('delivered')
    t.match(await stateOf(database, 'm1'), {
      status: 'opened',
      openedAt: AT + 1,
      bouncedAt: AT,
      deliveredAt: AT,
      complainedAt: AT + 2,
    })
    t.same(
      (await eventsOf(database)).map(({ kind }) => kind),
      ['email.sent', 'email.opened', 'email.bounced', 'email.complained', 'email.delivered', 'email.opened'],
      'every open is an event',
    )
  },
)

eachDatabase(t, 'a click by a person without an open first records one open', async (t, database) => {
  await enqueue(database, [
    { id: 'm1', to: 'm1@x.example' },
    { id: 'm2', to: 'm2@x.example' },
    { id: 'm3', to: 'm3@x.example' },
  ])
  const record = (...transitions: Transition[]) => database.write(tx => recordTransitions(tx, transitions))
  await record(transition('clicked', 'm1'), transition('clicked', 'm1', AT + 1))
  await record(transition('clicked', 'm1', AT + 2), transition('opened', 'm1', AT + 3))
  await record(transition('opened', 'm2'), transition('clicked', 'm2', AT + 1))
  const scan = { ...seen, isBot: true, url: 'https://shop.example/' }
  await record({ kind: 'clicked', messageId: 'm3', at: AT, facts: scan })
  t.same(
    (await eventsOf(database)).map(({ messageId, kind, payload }) => [
      messageId,
      kind,
      ...('isInferred' in payload ? ['inferred'] : []),
    ]),
    [
      ['m1', 'email.opened', 'inferred'],
      ['m1', 'email.clicked'],
      ['m1', 'email.clicked'],
      ['m1', 'email.clicked'],
      ['m1', 'email.opened'],
      ['m2', 'email.opened'],
      ['m2', 'email.clicked'],
      ['m3', 'email.clicked'],
    ],
  )
  t.match(await stateOf(database, 'm1'), { status: 'clicked', openedAt: AT, clickedAt: AT })
})

eachDatabase(t, 'transitions of unknown messages have no event', async (t, database) => {
  const all = TRANSITIONS.map(kind => transition(kind, 'unknown'))
  t.equal((await database.write(tx => recordTransitions(tx, all))).size, 0)
  t.equal((await database.write(tx => recordTransitions(tx, []))).size, 0)
  t.same(await eventsOf(database), [])
})
