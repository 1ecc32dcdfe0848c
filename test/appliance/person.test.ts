/** What is stored of one contact: its timeline, and the export of all of it. */
import t, { type Test } from 'tap'
import { KNOWN_BY, OWNED } from '../../src/appliance/erasure/erasure-store.js'
import { MENTIONS } from '../../src/appliance/erasure/mention-store.js'
import { REWRITTEN } from '../../src/appliance/erasure/rewrite-store.js'
import { IMPERSONAL, PERSONAL, SECTIONS } from '../../src/appliance/erasure/personal-tables.js'
import { listTimeline, TIMELINE_TYPES } from '../../src/appliance/timeline/timeline-store.js'
import { exportPerson } from '../../src/appliance/erasure/export-person.js'
import { createContact } from '../../src/audience/contacts/contacts.js'
import { uuidv7 } from '../../src/core/ids.js'
import type { Queries } from '../../src/db/database.js'
import { insertPart } from '../../src/messages/content-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { eachDatabase, sqliteDatabase } from '../support/db/database.js'
import { NOW } from '../support/mailroom.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { until } from '../support/until.js'

const ANN = 'ann@x.example'
const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'

t.test('each table is exported, excluded for a reason, or contains nothing personal', async t => {
  const database = await sqliteDatabase(t)
  const tables = (await database.reader.introspection.getTables())
    .map(({ name }) => name)
    .filter(name => !name.startsWith('contact_search') && !name.startsWith('sqlite_'))
  t.same(
    [...Object.keys(PERSONAL), ...IMPERSONAL].sort(),
    [...tables].sort(),
    'see erasure/personal-tables.ts',
  )
  const erased = [...OWNED.map(({ table }) => table), ...KNOWN_BY.map(([table]) => table)]
  for (const table of [
    ...erased,
    'events',
    'activities',
    'webhook_deliveries',
    'kept_answers',
    'inbound_mails',
    ...REWRITTEN.map(({ table }) => table),
  ])
    t.ok(Object.hasOwn(PERSONAL, table), `${table} is erased, so it is personal`)
  t.equal(Object.keys(MENTIONS).length, 7, 'a log that is searched for a person is personal')
  const sections = new Set(Object.values(PERSONAL).flatMap(({ section }) => section ?? []))
  t.same([...sections].filter(section => section !== 'contact').sort(), [...SECTIONS].sort())
  for (const [table, { section, leftOut }] of Object.entries(PERSONAL))
    t.ok((section === undefined) !== (leftOut === undefined), table)
})

/** One contact with something of everything, beside another with the same. */
async function fill(
  db: Queries,
  seqs: { readonly ann: number; readonly other: number },
  ids: [string, string],
) {
  const [ann, other] = ids
  const content = {
    ...{
      workspace_id: 'w1',
      from_address: 'shop@shop.example',
      from_name: null,
      reply_to: null,
      subject: 'Sale',
    },
    ...{ html: null, text: 'Hi', signing_domain_id: null, track_opens: 0, track_clicks: 0, created_at: NOW },
  } as const
  const insert = async (table: string, rows: readonly object[]) => {
    await db
      .insertInto(table as 'events')
      .values(rows as never)
      .execute()
  }
  await insert('message_contents', [{ id: 'content', ...content }])
  const { recipientBucket } = await import('../../src/messages/message-store.js')
  const message = (id: string, recipient: string, more: object) => ({
    ...{ id, workspace_id: 'w1', content_id: 'content', recipient, is_sandbox: 0 },
    ...{ recipient_bucket: recipientBucket(recipient), ...more },
  })
  await insert('messages', [
    message('m1', 'Ann@X.example', {
      ...{ status: 'clicked', created_at: NOW + 10, sent_at: NOW + 10, delivered_at: NOW + 20 },
      ...{ opened_at: NOW + 3_000, clicked_at: NOW + 4_000 },
    }),
  ])
  await insert('messages', [
    message('m2', ANN, { status: 'bounced', created_at: NOW + 50, sent_at: NOW + 50, bounced_at: NOW + 60 }),
    message('m4', 'bob@x.example', { status: 'bounced', created_at: NOW, sent_at: NOW, bounced_at: NOW }),
  ])
  await insert('messages', [
    message('m3', ANN, { status: 'suppressed', reason: 'suppressed', created_at: NOW + 70 }),
  ])
  await insert('attempts', [
    {
      ...{ message_id: 'm1', number: 1, started_at: NOW + 11, finished_at: NOW + 20, kind: 'delivered' },
      ...{ summary: '250 OK', tried: '[]' },
    },
  ])
  const thing = (id: string, name: string) => ({
    id,
    workspace_id: 'w1',
    name,
    created_at: NOW,
    updated_at: NOW,
  })
  await insert('lists', [
    { ...thing('l1', 'News'), type: 'static', is_public: 0, double_opt_in: 0, member_count: 2 },
  ])
  await insert('tags', [{ ...thing('t1', 'VIP'), name_folded: 'vip', contact_count: 2 }])
  for (const contact of [seqs.ann, seqs.other]) {
    await insert('list_members', [{ list: 1, contact, added_at: NOW + 100 }])
    await insert('contact_tags', [{ tag: 1, contact, added_at: NOW + 200 }])
  }
  for (const [at, id] of [ann, other].entries()) {
    const email = [ANN, 'bob@x.example'][at]
    await insert('opt_ins', [
      {
        id: `o${at}`,
        form_id: 'f1',
        workspace_id: 'w1',
        email,
        fields: '{"plan":"pro"}',
        created_at: NOW + 300,
      },
    ])
    await insert('suppressions', [
      { workspace_id: 'w1', email, reason: 'manual', scope: 'all', created_at: NOW + 400 },
    ])
    await insert('conversions', [
      {
        ...{
          id: `c${at}`,
          workspace_id: 'w1',
          contact_id: id,
          value: 5,
          currency: 'EUR',
          metadata: '{"order":1}',
        },
        ...{ is_sandbox: 0, created_at: NOW + 500 },
      },
    ])
    await insert('product_views', [
      {
        ...{ id: `p${at}`, workspace_id: 'w1', contact_id: id, product_id: 'shoe', product: '{"price":9}' },
        ...{ is_sandbox: 0, viewed_at: NOW + 600 },
      },
    ])
    await insert('events', [
      {
        ...{ kind: 'list.member_removed', workspace_id: 'w1', is_sandbox: 0, occurred_at: NOW + 700 },
        payload: JSON.stringify({ contact_id: id, email, list_id: 'l9', list_name: 'Old' }),
      },
    ])
  }
}

eachDatabase(
  t,
  'a timeline is merged from all tables, newest first, and read to its end by cursor',
  async (t, database) => {
    const { contacts } = await both(database)
    const [ann] = contacts
    const list = (limit: number, after?: readonly (string | number)[], total = 0) =>
      listTimeline(database.reader, 'w1', ann, {
        ...{ limit, offset: 0 },
        ...(after ? { after: { total, position: () => after } } : {}),
      })
    const whole = await list(100)
    t.same(
      whole.items.map(({ type, at }) => `${type} ${at - NOW}`),
      [
        ...['email.clicked 4000', 'email.opened 3000', 'product.viewed 600', 'conversion.created 500'],
        ...['suppression.added 400', 'form.submitted 300', 'tag.added 200', 'list.member_added 100'],
        ...['email.accepted 70', 'email.bounced 60', 'email.sent 50', 'email.delivered 20', 'email.sent 10'],
        'contact.created 0',
      ],
    )
    t.equal(whole.total, 14)
    t.match(whole.items[0], { data: { message_id: 'm1', subject: 'Sale', status: 'clicked' } })
    t.match(whole.items[4], { data: { reason: 'manual', scope: 'all' } })
    t.match(whole.items[5], { data: { form_id: 'f1', fields: { plan: 'pro' }, confirmed: false } })
    t.match(whole.items[7], { data: { list_id: 'l1', list_name: 'News' } })
    const pieces = []
    for (let page = await list(3); ; page = await list(3, page.end, page.total)) {
      pieces.push(...page.items)
      if (!page.hasMore) break
    }
    t.same(pieces, whole.items)
  },
)

async function both(database: Awaited<ReturnType<typeof sqliteDatabase>>) {
  let ids = 0
  const parts = {
    ...{ database, clock: new FakeClock(), onEvents: () => {} },
    newId: () => uuidv7(NOW, Buffer.from(String(++ids).padStart(10, '0'))),
  }
  const acting = { workspaceId: 'w1', isSandbox: false, source: 'api' } as const
  const contacts = await database.write(async tx => {
    const ann = await createContact(parts, tx, acting, { email: ANN, attributes: { plan: 'pro' } })
    const bob = await createContact(parts, tx, acting, { email: 'bob@x.example' })
    await fill(tx.db, { ann: ann.seq, other: bob.seq }, [ann.id, bob.id])
    return [ann, bob] as const
  })
  return { contacts }
}

eachDatabase(
  t,
  'an export has something of every table that was filled, and nothing of anybody else',
  async (t, database) => {
    const { contacts } = await both(database)
    const pieces = []
    for await (const piece of exportPerson(database.reader, 'w1', contacts[0], {
      now: NOW,
      isSandbox: false,
    }))
      pieces.push(piece)
    const document = JSON.parse(pieces.join('')) as Record<string, readonly Record<string, unknown>[]>
    t.same(Object.keys(document), ['exported_at', 'contact', ...SECTIONS])
    t.match(document, {
      contact: { email: ANN, attributes: { plan: 'pro' } },
      lists: [{ id: 'l1', name: 'News', added_at: /^2026/ }],
      tags: [{ name: 'VIP' }],
      suppressions: [{ email: ANN, reason: 'manual' }],
      messages: [
        { id: 'm1', subject: 'Sale', opened_at: /^2026/, attempts: [{ number: 1, summary: '250 OK' }] },
        { id: 'm2', attempts: [] },
        { id: 'm3', status: 'suppressed' },
      ],
      conversions: [{ value: 5, metadata: { order: 1 } }],
      product_views: [{ product_id: 'shoe', product: { price: 9 } }],
      form_submissions: [{ fields: { plan: 'pro' } }],
      events: [{ kind: 'contact.created' }, { kind: 'list.member_removed', payload: { list_name: 'Old' } }],
      campaigns: [],
    })
    t.notMatch(pieces.join(''), /bob@x|workspace_id|"seq"/)
    t.notMatch(pieces.join(''), contacts[1].id)
  },
)

eachDatabase(
  t,
  'an export contains large mail and all its attachments, of which memory holds one part',
  async (t, database) => {
    const { contacts } = await both(database)
    const source = Buffer.from('0123456789'.repeat(90_000))
    const files = [Buffer.alloc(300_001, 'a'), Buffer.alloc(0), Buffer.alloc(400_000, 'b')]
    const facts = files.map(({ length }, at) => ({
      filename: `${at}`,
      contentType: 'text/plain',
      size: length,
    }))
    await database.write(async tx => {
      const change = (more: object) => tx.db.updateTable('message_contents').set(more).execute()
      await change({
        raw: source.subarray(0, 100_001),
        raw_size: source.length,
        attachments: JSON.stringify(facts),
      })
      const rest = Buffer.concat([source.subarray(100_001), ...files])
      for (let part = 1, at = 0; at < rest.length; part += 1, at += 262_144)
        await insertPart(tx.db, 'content', part, rest.subarray(at, at + 262_144))
    })
    const pieces = []
    const [ann] = contacts
    for await (const piece of exportPerson(database.reader, 'w1', ann, { now: NOW, isSandbox: false }))
      pieces.push(piece)
    t.ok(Math.max(...pieces.map(({ length }) => length)) < 500_000)
    const document = JSON.parse(pieces.join(''))
    for (const message of document.messages) {
      t.ok(Buffer.from(message.source, 'base64').equals(source))
      t.same(
        message.attachments.map(({ content }: { content: string }) => Buffer.from(content, 'base64').length),
        [300_001, 0, 400_000],
      )
      t.ok(Buffer.from(message.attachments[2].content, 'base64').equals(files[2] ?? source))
    }
    await database.write(async tx => {
      await tx.db.updateTable('message_contents').set({ pruned_at: NOW, raw: null, text: null }).execute()
      await tx.db.deleteFrom('message_parts').execute()
    })
    const after = []
    for await (const piece of exportPerson(database.reader, 'w1', ann, { now: NOW, isSandbox: false }))
      after.push(piece)
    t.match(JSON.parse(after.join('')), { messages: [{ text: null, source: null }] }, 'deleted by retention')
  },
)

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const { key } = postroad
  const add = async (path: string, body: object) =>
    (await postroad.post(`/api/v1${path}`, body, { key })).body.data
  const read = (path: string) => postroad.get(`/api/v1${path}`, { key })
  return { postroad, key, add, read }
}

// answers: GET /contacts/{id}/export: contact_not_found; GET /contacts/{id}/timeline: contact_not_found
t.test('the timeline and the export of a contact are read over HTTP', async t => {
  const { postroad, key, add, read } = await open(t)
  const list = await add('/lists', { name: 'News' })
  const { id } = await add('/contacts', { email: ANN, list_id: list.id })
  await add('/conversions', { contact_id: id, value: 5, currency: 'EUR' })
  const file = Buffer.from('Ticket 7')
  await postroad.send(key, {
    ...{
      to: ANN,
      from_email: 'shop@shared.test',
      reply_to: 'desk@shared.test',
      subject: 'Hi',
      tags: ['order'],
    },
    ...{ text: 'Hi {{seat}}', html: '<p>Hi</p>', headers: { 'X-Order': '7' }, template_data: { seat: '4B' } },
    attachments: [{ filename: 'a.txt', content: file.toString('base64'), content_type: 'text/plain' }],
  })
  await postroad.delete(`/api/v1/lists/${list.id}/members`, { key }, { contact_ids: [id] })
  const types = await until('the mail to be delivered', async () => {
    const { data } = (await read(`/contacts/${id}/timeline`)).body
    const found = data.map(({ type }: { type: string }) => type)
    return found.includes('email.delivered') ? found : undefined
  })
  t.same([...types].sort(), ['contact.created', 'conversion.created', 'email.delivered', 'email.sent'])
  const page = (await read(`/contacts/${id}/timeline?limit=3`)).body
  t.match(page.pagination, { total: 4, has_more: true })
  const rest = (await read(`/contacts/${id}/timeline?limit=3&after=${page.pagination.next_cursor}`)).body
  t.match(rest.pagination, { total: 4, has_more: false, next_cursor: null })
  t.same(
    [...page.data, ...rest.data].map(({ type }) => type),
    types,
  )
  const { status, body, headers } = await read(`/contacts/${id}/export`)
  t.match(
    { status, body },
    { status: 200, body: { contact: { id, email: ANN }, messages: [{ subject: 'Hi' }] } },
  )
  t.match(body.messages[0], {
    ...{ text: 'Hi {{seat}}', html: /<p>Hi/, template_data: { seat: '4B' }, reply_to: { address: /desk@/ } },
    ...{ headers: [{ name: 'X-Order', value: '7' }], tags: ['order'], source: null },
    attachments: [
      { filename: 'a.txt', content_type: 'text/plain', size: 8, content: file.toString('base64') },
    ],
  })
  t.match(headers.get('Content-Type'), 'application/json')
  t.match(
    body.events.map(({ kind }: { kind: string }) => kind),
    /list.member_removed/,
  )
  t.match(await read(`/contacts/${MADE_UP}/timeline`), {
    status: 404,
    body: { error: { code: 'contact_not_found' } },
  })
  t.match(await read(`/contacts/${MADE_UP}/export`), {
    status: 404,
    body: { error: { code: 'contact_not_found' } },
  })
  t.ok(TIMELINE_TYPES.includes('email.opened'))
})
