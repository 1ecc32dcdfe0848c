/**
 * Every table that can hold an address gets one that stands nowhere else; after the erasure, the whole database is searched for it: each
 * value of each row, and every octet of SQLite's file.
 */
import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { SHELL } from '../../src/core/actor.js'
import { eraseAgain, erasePerson } from '../../src/appliance/erasure/erase.js'
import { PERSONAL } from '../../src/appliance/erasure/personal-tables.js'
import { addressesIn, withoutAddress } from '../../src/appliance/erasure/person-words.js'
import { createContact } from '../../src/audience/contacts/contacts.js'
import { uuidv7 } from '../../src/core/ids.js'
import type { Database } from '../../src/db/database.js'
import { recipientBucket } from '../../src/messages/message-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import type { Rows } from '../db/migration-rows.js'
import { eachDatabase, sqliteDatabase, sqliteFile } from '../support/db/database.js'
import { insertRows, readAllRows } from '../support/db/rows.js'
import { addWorkspace, NOW } from '../support/mailroom.js'

/** No other text has this local part. */
const LOCAL = 'q7marked.person'
const ADDRESS = `${LOCAL}@xn--bcher-kva.example`
const UNICODE = `${LOCAL}@bücher.example`
const URL_FORM = `https://shop.example/?email=${encodeURIComponent(ADDRESS)}&plain=${ADDRESS}`
const NAMED = `"Marked" <${ADDRESS.toUpperCase()}>`
/** The mail to the person. */
const MESSAGE = '0199f000-0000-7000-8000-000000000001'
const OTHER = 'bob@two.example'

/**
 * Columns that hold no address whatever happens: keys, kinds, states and codes of ours. All other text of a personal table has to be marked
 * below, so that a new column is either erased or named here.
 */
const NO_ADDRESS =
  /(^|_)(id|status|kind|type|subtype|cause|scope|reason|state|outcome|verdict_at|consumer|lane|destination|domain|hash|bucket|wait|event|message|currency|classification|isp_name|dsn_ret|dsn_notify|claimed_by|session|peer|peer_address|helo_name|result|charset|action|remote_mta|smtp_status|etag)$/

/** Left out, and why. */
const NOT_FILLED: Readonly<Record<string, string>> = {
  'message_contents.html': 'the text of mail to others stays until retention deletes it',
  'message_contents.text': 'the same',
  'message_contents.raw': 'the same',
  'captured_mails.raw': 'the same',
  'webhook_attempts.user_agent': 'what this server calls itself',
  'message_parts.octets': 'filled for mail to the person, see below',
  'contact_import_parts.octets': 'deleted when the import ends (erasure.test.ts)',
  'activities.actor_name': 'an operator, whose account is not erased',
  'contact_attributes.compared': 'filled with the contact, in the format of each database',
}

const octets = (text: string) => Uint8Array.from(Buffer.from(text))
const json = JSON.stringify

/** Content of mail; all columns that may name people. */
const content = (id: string, more: object = {}) => ({
  ...{ id, workspace_id: 'w1', created_at: NOW, from_address: ADDRESS, from_name: NAMED },
  ...{ reply_to: json({ name: 'Marked', address: ADDRESS }), subject: `About ${ADDRESS.toUpperCase()}` },
  ...{ track_opens: 0, track_clicks: 0, tags: json([`of ${UNICODE}`]), submitter: ADDRESS },
  ...{ dsn_envid: `envelope-of-${ADDRESS}`.replace('-q7', '/q7') },
  addressees: json({ to: [OTHER, { name: 'Marked', address: ADDRESS }], cc: [ADDRESS], hasCopies: true }),
  headers: json([
    { name: 'X-Seller', value: NAMED },
    { name: 'X-Order', value: '7' },
  ]),
  attachments: json([{ filename: `${ADDRESS} invoice.pdf`, contentType: 'text/plain', size: 0 }]),
  merging: json({ data: { link: URL_FORM, note: `line\n${ADDRESS}`, order: 7 } }),
  ...more,
})

const message = (id: string, contentId: string, recipient: string) => ({
  ...{ id, workspace_id: 'w1', content_id: contentId, recipient, status: 'delivered', is_sandbox: 0 },
  ...{ recipient_bucket: recipientBucket(recipient), created_at: NOW, dsn_orcpt: `rfc822;${ADDRESS}` },
  merge_data: json({ colleague: UNICODE, plan: 'pro' }),
})

const attempt = (id: string) => ({
  ...{ message_id: id, number: 1, started_at: NOW, finished_at: NOW, kind: 'delivered' },
  ...{ summary: `250 queued for '${ADDRESS}'`, tried: json([{ host: 'mx', reply: `to ${ADDRESS}` }]) },
})

const captured = (id: string, recipient: string, raw: string) => ({
  ...{ message_id: id, captured_at: NOW, envelope_sender: ADDRESS, recipient, size: 3 },
  ...{ subject: `About ${ADDRESS}`, raw: octets(raw) },
})

/** Of each, one row of the person and one of somebody else that names the person. */
function rows(person: { readonly id: string; readonly seq: number }, other: { readonly id: string }): Rows {
  const owned = { workspace_id: 'w1', is_sandbox: 0 }
  const both = [
    ['person', ADDRESS, person.id],
    ['other', OTHER, other.id],
  ] as const
  const delivery = (id: string, payload: number) => ({
    ...{ id, subscription_id: 'hook', payload, status: 'delivered', attempts: 1, attempts_before: 0 },
    created_at: NOW,
  })
  return {
    message_contents: [
      content('to-person', {
        ...{ html: `<p>${ADDRESS}</p>`, text: ADDRESS, raw: octets(`To: ${ADDRESS}\r\n\r\n`) },
        raw_size: 100,
      }),
      content('to-other', { text: 'Hello' }),
    ],
    message_parts: [{ content_id: 'to-person', part: 1, octets: octets(`more of ${ADDRESS}`) }],
    messages: [message(MESSAGE, 'to-person', ADDRESS), message('m-other', 'to-other', OTHER)],
    attempts: [attempt(MESSAGE), attempt('m-other')],
    captured_mails: [captured(MESSAGE, ADDRESS, `To: ${ADDRESS}`), captured('m-other', OTHER, 'To: bob')],
    queue: [
      {
        ...{ message_id: MESSAGE, workspace_id: 'w1', destination: 'x.example', priority: 0, lane: 'l' },
        ...{ attempts: 0, next_attempt_at: NOW, expires_at: NOW, is_held: 0, was_handed_over: 0 },
        ...{ enqueued_at: NOW, content_id: 'to-person', recipient: ADDRESS },
      },
    ],
    suppressions: [
      { workspace_id: 'w1', email: ADDRESS, reason: 'manual', scope: 'all', created_at: NOW },
      { workspace_id: 'w1', email: OTHER, reason: 'manual', scope: 'all', created_at: NOW },
    ],
    bounces: both.map(([id, email]) => ({
      ...{
        id,
        ...owned,
        message_id: id === 'person' ? MESSAGE : 'm-other',
        email,
        type: 'permanent',
        subtype: 'general',
      },
      ...{
        cause: 'recipient',
        scope: 'recipient',
        created_at: NOW,
        smtp_status: '5.1.1',
        diagnostic_code: `550 <${ADDRESS}> gone`,
      },
    })),
    domain_denials: both.map(([id, email]) => ({
      ...{
        domain: 'two.test',
        denied_at: NOW,
        workspace_id: 'w1',
        email,
        message_id: id === 'person' ? MESSAGE : 'm-other',
        is_ours: 1,
      },
      verdict: json({ text: `no ${ADDRESS}` }),
    })),
    opt_ins: both.map(([id, email]) => ({
      ...{ id, form_id: 'form', workspace_id: 'w1', email, created_at: NOW, fields: json({ by: ADDRESS }) },
    })),
    conversions: both.map(([id, , contact]) => ({
      ...{ id, ...owned, contact_id: contact, value: 1, currency: 'EUR', metadata: json({ by: ADDRESS }) },
      created_at: NOW,
    })),
    product_views: both.map(([id, , contact]) => ({
      ...{
        id,
        ...owned,
        contact_id: contact,
        product_id: `for ${ADDRESS}`,
        product: json({ url: URL_FORM }),
      },
      viewed_at: NOW,
    })),
    automations: [
      {
        ...{ seq: 1, id: 'automation', ...owned, name: 'Welcome', status: 'active', trigger_type: 'manual' },
        ...{ trigger_config: '{}', runs_active: 1, runs_completed: 1, runs_failed: 0, runs_cancelled: 0 },
        ...{ created_at: NOW, updated_at: NOW },
      },
    ],
    automation_runs: both.map(([id, email, contact], at) => ({
      ...{ seq: at + 1, id, automation: 1, ...owned, contact_id: contact, contact_email: email },
      ...{ status: 'completed', steps_done: 1, failures: 0, trigger_type: 'manual', started_at: NOW },
      ...{ trigger_data: json({ by: ADDRESS }), error: `refused ${ADDRESS}`, exit_reason: null },
    })),
    automation_run_steps: [1, 2].map(run => ({
      ...{
        run,
        at: NOW,
        step_id: 's',
        step_type: 'email',
        outcome: 'completed',
        detail: json({ to: ADDRESS }),
      },
    })),
    events: (
      [
        ['email.delivered', MESSAGE, { to: ADDRESS, contactId: person.id, from: ADDRESS }],
        ['email.clicked', 'm-other', { to: OTHER, contactId: other.id, from: ADDRESS, url: URL_FORM }],
        ['contact.updated', null, { email: ADDRESS }],
      ] as const
    ).map(([kind, messageId, payload]) => ({
      ...{ kind, workspace_id: 'w1', message_id: messageId, is_sandbox: 0 },
      ...{ occurred_at: NOW, payload: json(payload) },
    })),
    set_aside_events: [
      {
        ...{
          consumer: 'counters',
          seq: 900,
          event: json({ workspaceId: 'w1', payload: { from: ADDRESS } }),
          error: `no ${ADDRESS}`,
        },
        ...{ set_aside_at: NOW, is_retry_wanted: 0 },
      },
    ],
    webhook_subscriptions: [
      {
        ...{ id: 'hook', ...owned, event: 'email.sent', target_url: 'https://hooks.example/' },
        ...{ secret: 's', created_at: NOW },
      },
    ],
    webhook_payloads: [{ seq: 1, event: 'email.sent', body: json({ from: ADDRESS }), created_at: NOW }],
    webhook_deliveries: [delivery('delivery', 1)],
    webhook_attempts: [
      {
        ...{ delivery_id: 'delivery', number: 1, started_at: NOW, duration_ms: 5, status_code: 0 },
        ...{ error: `no ${ADDRESS}`, response: `no ${ADDRESS}` },
      },
    ],
    kept_answers: [
      { id: 'answer', body_hash: 'h', status: 200, value: json({ to: ADDRESS }), created_at: NOW },
    ],
    email_batches: [
      {
        ...{ id: 'batch', ...owned, key_id: 'key', total: 1, sent: 1, skipped: 0, failed: 0 },
        ...{ errors: json([{ to: ADDRESS }]), created_at: NOW, released_at: NOW },
      },
    ],
    activities: [
      {
        ...{
          workspace_id: 'w1',
          actor_type: 'operator',
          actor_id: 'o1',
          peer: '',
          action: 'contact.updated',
        },
        ...{ subject: ADDRESS, details: json({ email: ADDRESS }), changes: json({ email: ADDRESS }) },
        ...{ created_at: NOW, actor_name: 'Operator' },
      },
    ],
    contact_imports: [
      {
        ...{
          seq: 1,
          id: 'import',
          ...owned,
          status: 'completed',
          charset: 'utf-8',
          options: '{}',
          octets: 20,
        },
        ...{ octets_read: 20, rows_done: 1, created: 0, updated: 0, unchanged: 0, rejected: 1 },
        created_at: NOW,
      },
    ],
    contact_import_rejections: [{ import: 1, line: 2, reason: `no ${ADDRESS}`, cells: json([ADDRESS]) }],
    inbound_mails: [
      {
        ...{ seq: 1, body_id: 'body', received_at: NOW, session: 's', peer_address: '192.0.2.1', tries: 0 },
        ...{
          helo_name: 'mx',
          envelope_sender: ADDRESS,
          recipients: json([{ address: ADDRESS, messageId: MESSAGE }]),
          size: 4,
        },
        findings: json({ for: ADDRESS }),
      },
    ],
    inbound_parts: [{ body_id: 'body', part: 0, octets: octets(`From: ${ADDRESS}`) }],
    daily_group_counters: [
      { workspace_id: 'w1', dimension: 'tag', day: NOW, value: `of ${ADDRESS}`, accepted: 2 },
      { workspace_id: 'w1', dimension: 'tag', day: NOW, value: '', accepted: 3 },
    ],
    quarter_counters: [
      { workspace_id: 'w1', dimension: 'tag', starts_at: NOW, value: `of ${ADDRESS}`, accepted: 2 },
      { workspace_id: 'w1', dimension: 'tag', starts_at: NOW, value: '', accepted: 3 },
    ],
  }
}

async function fill(database: Database): Promise<void> {
  await addWorkspace(database)
  const clock = new FakeClock()
  let ids = 0
  const newId = () => uuidv7(clock.now(), Buffer.alloc(10, ++ids))
  const parts = { database, clock, newId, onEvents: () => {} }
  const acting = { workspaceId: 'w1', isSandbox: false, source: 'api' } as const
  await database.write(async tx => {
    const person = await createContact(parts, tx, acting, {
      ...{ email: ADDRESS, firstName: LOCAL, lastName: LOCAL },
      attributes: { mail: ADDRESS },
    })
    const other = await createContact(parts, tx, acting, { email: OTHER })
    await insertRows(tx.db, rows(person, other))
  })
}

/** `table.column` of each value with the mark, in whatever encoding. */
async function findMarks(database: Database): Promise<string[]> {
  const found = new Set<string>()
  for (const [table, ofTable] of await readAllRows(database.reader))
    for (const row of ofTable)
      for (const [column, value] of Object.entries(row))
        if (hasMark(Buffer.from(String(value)))) found.add(`${table}.${column}`)
  return [...found].sort()
}

const ENCODED = [LOCAL, ADDRESS, UNICODE].flatMap(text => [
  ...[text, Buffer.from(text).toString('hex'), encodeURIComponent(text)],
  // The three places at which an octet may stand in base64, without what depends on its neighbours.
  ...[0, 1, 2].map(at =>
    Buffer.from('x'.repeat(at) + text)
      .toString('base64')
      .slice(at && at + 1, -4),
  ),
])

function hasMark(octets: Buffer): boolean {
  const text = octets.toString('utf8')
  const lower = text.toLowerCase()
  return ENCODED.some(one => text.includes(one) || lower.includes(one.toLowerCase()))
}

const erase = (database: Database, dataDir: string) =>
  erasePerson({ database, clock: new FakeClock(), dataDir }, ADDRESS, SHELL, 'w1')

eachDatabase(
  t,
  'after an erasure no column of any table contains the address, in whatever form',
  async (t, database) => {
    await fill(database)
    const before = await findMarks(database)
    const tables = await database.reader.introspection.getTables()
    for (const { name, columns } of tables.filter(table => Object.hasOwn(PERSONAL, table.name)))
      for (const { name: column, dataType } of columns)
        if (/text|blob|bytea/i.test(dataType) && !NO_ADDRESS.test(column)) {
          const place = `${name}.${column}`
          t.ok(before.includes(place) || Object.hasOwn(NOT_FILLED, place), `${place} is filled`)
        }
    t.match(await erase(database, t.testdir()), {
      contacts: 1,
      messages: 1,
      rows_of_others: 12,
      contents_in_use: 0,
    })
    t.same(await findMarks(database), [])

    const rows = await readAllRows(database.reader)
    t.match(rows.get('message_contents'), [
      {
        ...{ id: 'to-other', from_address: 'erased@erased.invalid', from_name: null, reply_to: null },
        ...{ subject: 'About erased@erased.invalid', text: 'Hello' },
        addressees: json({ hasCopies: true, to: [OTHER], cc: [] }),
        headers: /"X-Order","value":"7"/,
        merging: /"order":7/,
      },
    ])
    t.match(rows.get('messages'), [{ recipient: OTHER, status: 'delivered', merge_data: /"plan":"pro"/ }])
    const clicked = rows.get('events')?.find(({ kind }) => kind === 'email.clicked')
    t.match(
      JSON.parse(String(clicked?.['payload'])),
      { to: OTHER, contactId: String },
      'a click of another stays',
    )
    for (const table of ['daily_group_counters', 'quarter_counters'])
      t.match(rows.get(table), [{ value: '', accepted: 5 }], `its counts are kept: ${table}`)
  },
)

t.test('after an erasure the file of SQLite does not contain the address either', async t => {
  const file = sqliteFile(t)
  const database = await sqliteDatabase(t, file)
  await fill(database)
  await erase(database, t.testdir())
  // The last connection writes the log back into the file and deletes it.
  await database[Symbol.asyncDispose]()
  const folder = dirname(file)
  t.same(
    readdirSync(folder).filter(name => hasMark(readFileSync(join(folder, name)))),
    [],
  )
})

eachDatabase(
  t,
  'mail to others that is still to be sent goes out as accepted, and a repeated erasure takes the address out',
  async (t, database) => {
    await addWorkspace(database)
    const { id, ...queued } = { ...rows({ id: 'c', seq: 1 }, { id: 'o' })['queue']?.[0], id: 'm-other' }
    await database.write(tx =>
      insertRows(tx.db, {
        message_contents: [content('to-other', { text: 'Hello' })],
        messages: [message('m-other', 'to-other', OTHER)],
        queue: [{ ...queued, message_id: id, content_id: 'to-other', recipient: OTHER }],
      }),
    )
    const from = async () =>
      (await database.reader.selectFrom('message_contents').select('from_address').execute())[0]?.from_address
    t.match(await erase(database, t.testdir()), { contents_in_use: 1 })
    t.equal(await from(), ADDRESS)
    await database.write(tx => tx.db.deleteFrom('queue').execute())
    t.match(await erase(database, t.testdir()), { contents_in_use: 0 })
    t.equal(await from(), 'erased@erased.invalid')
    t.same(await findMarks(database), [])
  },
)

eachDatabase(
  t,
  'restoring a backup erases those again who only stand in mail to others',
  async (t, database) => {
    const dataDir = t.testdir()
    await addWorkspace(database)
    await erase(database, dataDir)
    const { message_contents: contents, messages } = rows({ id: 'c', seq: 1 }, { id: 'o' })
    await database.write(tx =>
      insertRows(tx.db, {
        message_contents: (contents ?? []).filter(row => row['id'] === 'to-other'),
        messages: (messages ?? []).filter(row => row['id'] === 'm-other'),
      }),
    )
    t.equal(await eraseAgain({ database, clock: new FakeClock(), dataDir }), 1)
    t.same(await findMarks(database), [])
  },
)

eachDatabase(
  t,
  'restoring a backup erases those again who only stand in a rejected row of an import',
  async (t, database) => {
    const dataDir = t.testdir()
    await addWorkspace(database)
    await erase(database, dataDir)
    const { contact_imports: imports, contact_import_rejections: rejections } = rows(
      { id: 'c', seq: 1 },
      { id: 'o' },
    )
    await database.write(tx =>
      insertRows(tx.db, {
        contact_imports: [...(imports ?? []), { ...imports?.[0], id: 'other', seq: 99, rejected: 1 }],
        contact_import_rejections: [
          ...(rejections ?? []),
          { import: 99, line: 2, reason: 'no address', cells: json([OTHER]) },
        ],
      }),
    )
    t.not((await findMarks(database)).length, 0)
    t.equal(await eraseAgain({ database, clock: new FakeClock(), dataDir }), 1)
    t.same(await findMarks(database), [])
    const left = await database.reader.selectFrom('contact_import_rejections').select('import').execute()
    t.same(left, [{ import: 99 }], 'rows of others stay')
  },
)

t.test('whoever shares part of an address is somebody else', t => {
  const [ann, without] = ['ann@x.example', (text: string) => withoutAddress(text, 'ann@x.example')]
  for (const other of [
    ...['joann@x.example', "o'ann@x.example", 'jo.ann@x.example', 'jo+ann@x.example', 'ann@x.example.test'],
    ...['ann@x.example-shop.test', 'bounce+ann=x.example@y.example'],
  ])
    t.equal(without(`<${other}>`), `<${other}>`, other)
  for (const text of [
    ...[
      `<${ann}>`,
      `mailto:${ann}?subject=x`,
      `?email=${ann}&x`,
      `'${ann}'`,
      'ANN@X.Example',
      `line\\n${ann}`,
    ],
    ...['?e=ann%40x.example', `\\u003c${ann}`, `{{${ann}}}`, `at the end ${ann}.`],
  ])
    t.notMatch(without(text), /ann/i, text)
  t.same(
    [...addressesIn(`<${ann}>, "BOB@two.example"; ?e=eve%40x.example.`)],
    [ann, 'bob@two.example', 'eve@x.example'],
  )
  t.end()
})
