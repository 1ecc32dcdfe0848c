/** The bounce consumer and its routes, on both databases. */
import t from 'tap'
import { followSuppressions } from '../../src/audience/contacts/follow-suppressions.js'
import { bounceConsumer } from '../../src/deliverability/bounces/bounce-consumer.js'
import { bounceRoutes } from '../../src/deliverability/bounces/bounce-routes.js'
import { listBounces } from '../../src/deliverability/bounces/bounce-store.js'
import { ispName } from '../../src/deliverability/bounces/isp-name.js'
import {
  insertSuppression,
  listSuppressions,
} from '../../src/deliverability/suppressions/suppression-store.js'
import type { Database } from '../../src/db/database.js'
import type { EmailBounced, Event } from '../../src/events/event.js'
import { serveRoutes } from '../support/api/api.js'
import { eachDatabase, sqliteDatabase } from '../support/db/database.js'
import { NOW } from '../support/mailroom.js'

const PAGE = { limit: 100, offset: 0 }
const consumer = bounceConsumer(followSuppressions())

const head = (messageId: string) => ({ workspaceId: 'w1', messageId, isSandbox: false, occurredAt: NOW })

function bounce(messageId: string, payload: Partial<EmailBounced['payload']> = {}): EmailBounced {
  return {
    ...head(messageId),
    kind: 'email.bounced',
    payload: {
      to: `${messageId}@x.example`,
      bounceType: 'permanent',
      cause: 'recipient',
      scope: 'address',
      subtype: 'no_such_mailbox',
      smtpStatus: '5.1.1',
      diagnosticCode: 'smtp; 550 5.1.1 no such user',
      ...payload,
    },
  }
}

const react = (database: Database, ...events: Event[]) =>
  database.write(tx =>
    consumer.react(
      tx,
      events.map((event, index) => ({ ...event, seq: index + 1 })),
    ),
  )
const suppressed = async (database: Database, workspace = 'w1') =>
  (await listSuppressions(database.reader, workspace, PAGE)).map(
    ({ email, reason, scope }) => `${email} ${reason} ${scope}`,
  )
const recorded = async (database: Database) => (await listBounces(database.reader, 'w1', {}, PAGE)).items

eachDatabase(
  t,
  'only a permanent failure caused by the recipient suppresses, only the address, and never after a single DNS lookup',
  async (t, database) => {
    await react(
      database,
      bounce('gone', { to: 'Gone@X.example' }),
      bounce('nodomain', { scope: 'domain', subtype: 'bad_destination', smtpStatus: '5.1.2' }),
      bounce('nullmx', { scope: 'domain', subtype: 'domain_accepts_no_mail' }),
      bounce('full', { bounceType: 'transient', subtype: 'mailbox_full' }),
      bounce('reputation', { cause: 'reputation', scope: 'source' }),
      bounce('content', { cause: 'content', scope: 'sender' }),
      bounce('policy', { cause: 'policy', scope: 'address' }),
      bounce('config', { cause: 'config', scope: 'source' }),
      bounce('undetermined', { bounceType: 'undetermined' }),
    )
    t.equal((await recorded(database)).length, 9)
    t.same((await suppressed(database)).sort(), [
      'gone@x.example hard_bounce all',
      'nullmx@x.example hard_bounce all',
    ])
  },
)

eachDatabase(t, 'a repeated event has no further effect', async (t, database) => {
  await react(database, bounce('m1'), bounce('m1', { smtpStatus: '5.2.1' }))
  const [first] = await recorded(database)
  await react(database, bounce('m1'))
  t.same(await recorded(database), [first])
  t.equal((await suppressed(database)).length, 1)
})

eachDatabase(
  t,
  'an entry for all mail replaces one for marketing, never the reverse',
  async (t, database) => {
    const to = 'ann@x.example'
    const wish: Event = { ...head('m1'), kind: 'email.unsubscribed', payload: { to, source: 'one_click' } }
    await database.write(tx =>
      insertSuppression(tx.db, {
        ...{ workspaceId: 'w1', email: to, reason: 'unsubscribe', scope: 'marketing' },
        ...{ sourceMessageId: 'm1', createdAt: NOW },
      }),
    )
    t.same(await suppressed(database), ['ann@x.example unsubscribe marketing'])
    await react(database, bounce('m2', { to }), bounce('m3', { to }), wish)
    t.same(await suppressed(database), ['ann@x.example hard_bounce all'])
    await react(database, { ...head('m4'), kind: 'email.complained', payload: { to, feedbackType: 'abuse' } })
    t.same(await suppressed(database), ['ann@x.example hard_bounce all'])
  },
)

eachDatabase(t, 'a manual entry is not replaced', async (t, database) => {
  const entry = { workspaceId: 'w1', email: 'm1@x.example', reason: 'manual' as const, scope: 'all' as const }
  await database.write(tx => insertSuppression(tx.db, { ...entry, sourceMessageId: null, createdAt: NOW }))
  await react(database, bounce('m1'))
  t.same(await suppressed(database), ['m1@x.example manual all'])
})

eachDatabase(t, 'a sandbox suppresses nobody', async (t, database) => {
  await react(database, { ...bounce('m1'), isSandbox: true })
  t.match(await recorded(database), [{ messageId: 'm1', isSandbox: true }])
  t.equal((await recorded(database)).length, 1)
  t.same(await suppressed(database), [])
})

eachDatabase(t, 'a bounce belongs to its campaign and contact', async (t, database) => {
  const [event, other] = [bounce('m1'), bounce('m2')]
  const payload = { ...event.payload, campaignId: 'spring', contactId: 'ann' }
  await react(database, { ...event, payload }, other)
  const [first, second] = [...(await recorded(database))].sort((a, b) => (a.messageId < b.messageId ? -1 : 1))
  t.match(first, { messageId: 'm1', campaignId: 'spring', contactId: 'ann' })
  t.match(second, { messageId: 'm2', campaignId: null, contactId: null })
})

t.test('providers are recognized by domain, by country and by host', t => {
  t.equal(ispName('gmail.com'), 'Gmail')
  t.equal(ispName('yahoo.co.uk'), 'Yahoo')
  t.equal(ispName('yahoo.co.jp'), 'Yahoo Japan')
  t.equal(ispName('hotmail.fr'), 'Outlook')
  t.equal(ispName('company.example', 'company-example.mail.protection.outlook.com'), 'Outlook')
  t.equal(ispName('company.example', 'ASPMX.L.GOOGLE.COM.'), 'Gmail')
  t.equal(ispName('notgmail.com'), null)
  t.equal(ispName('company.example', 'mx.company.example'), null)
  t.equal(ispName(''), null)
  t.end()
})

async function serveBounces(t: Parameters<typeof sqliteDatabase>[0]) {
  const database = await sqliteDatabase(t)
  await react(
    database,
    {
      ...bounce('m1', { to: 'Ann@gmail.com', remoteMta: 'gmail-smtp-in.l.google.com' }),
      occurredAt: NOW - 2_000,
    },
    {
      ...bounce('m2', { bounceType: 'transient', cause: 'transient', subtype: 'expired' }),
      occurredAt: NOW - 1_000,
    },
    bounce('m3', { bounceType: 'undetermined', cause: 'policy', subtype: 'unclassified' }),
    { ...bounce('m4'), workspaceId: 'w2' },
  )
  const api = await serveRoutes(t, bounceRoutes(database.reader))
  const list = async (query = '') => {
    const { status, json } = await api.ask({ path: `/api/v1/bounces${query}` })
    return { status, ...(json as { data: Record<string, unknown>[]; pagination: object; error: object }) }
  }
  const messages = async (query: string) => (await list(query)).data.map(one => one['message_id'])
  return { api, list, messages }
}

t.test('bounces are listed newest first, for their workspace only, in pages', async t => {
  const { list, messages } = await serveBounces(t)
  t.match(await list(), { status: 200, pagination: { total: 3, limit: 100, offset: 0, has_more: false } })
  t.same(await messages(''), ['m3', 'm2', 'm1'])
  t.match(await list('?limit=1&offset=1'), {
    data: [{ message_id: 'm2' }],
    pagination: { total: 3, limit: 1, offset: 1, has_more: true },
  })
})

t.test('bounces are filtered by every field of the contract and more', async t => {
  const { list, messages } = await serveBounces(t)
  t.same(await messages('?type=permanent'), ['m1'])
  t.same(await messages('?subtype=expired'), ['m2'])
  t.same(await messages('?email=ANN@gmail.com'), ['m1'])
  t.same(await messages('?message_id=m3'), ['m3'])
  t.same(await messages('?campaign_id=c1'), [])
  const at = (offset: number) => encodeURIComponent(new Date(NOW + offset).toISOString())
  t.same(await messages(`?since=${at(-1_000)}`), ['m3', 'm2'])
  t.same(await messages(`?until=${at(-1_000)}`), ['m1'])
  t.same(await messages(`?since=${at(-1_000)}&until=${at(0)}&type=transient`), ['m2'])
  t.equal((await messages(`?until=${at(0).slice(0, 10)}`)).length, 3, 'that day included')
  for (const [query, path] of [
    ['?type=hard', 'type'],
    ['?since=yesterday', 'since'],
    ['?until=2026-13-45', 'until'],
    ['?since=2026-02-30T00:00:00Z', 'since'],
    ['?colour=red', 'colour'],
    ['?limit=1001', 'limit'],
  ] as const)
    t.match(await list(query), { status: 400, error: { code: 'validation_error', path } }, query)
})

t.test('a bounce is shown in full to its workspace and to keys that may read bounces', async t => {
  const { api, list } = await serveBounces(t)
  const { data } = await list('?message_id=m1')
  const path = `/api/v1/bounces/${String(data[0]!['id'])}`
  t.match(await api.ask({ path }), {
    status: 200,
    json: {
      data: {
        message_id: 'm1',
        email: 'ann@gmail.com',
        contact_id: null,
        campaign_id: null,
        type: 'permanent',
        subtype: 'no_such_mailbox',
        cause: 'recipient',
        scope: 'address',
        smtp_status: '5.1.1',
        diagnostic_code: 'smtp; 550 5.1.1 no such user',
        isp_name: 'Gmail',
        remote_mta: 'gmail-smtp-in.l.google.com',
        is_sandbox: false,
        created_at: new Date(NOW - 2_000).toISOString(),
      },
    },
  })
  t.match(await api.ask({ path, key: 'reader' }), { status: 403 })
  t.match(await api.ask({ path: '/api/v1/bounces', key: 'reader' }), { status: 403 })
  t.match(await api.ask({ path: '/api/v1/bounces/nonsense' }), {
    status: 404,
    json: { error: { code: 'not_found' } },
  })
})

t.test('a bounce of another workspace is not found', async t => {
  const database = await sqliteDatabase(t)
  await react(database, { ...bounce('m4'), workspaceId: 'w2' })
  const [foreign] = (await listBounces(database.reader, 'w2', {}, PAGE)).items
  const api = await serveRoutes(t, bounceRoutes(database.reader))
  t.match(await api.ask({ path: `/api/v1/bounces/${foreign!.id}` }), { status: 404 })
})
