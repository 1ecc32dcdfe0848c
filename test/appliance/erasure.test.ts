/** Erasing a person: nothing of it is left, others stay, its suppression survives, and an older backup does not bring it back. */
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import t, { type Test } from 'tap'
import { erasePerson } from '../../src/appliance/erasure/erase.js'
import { createContact, findContact } from '../../src/audience/contacts/contacts.js'
import { followSuppressions } from '../../src/audience/contacts/follow-suppressions.js'
import { findAudience } from '../../src/audience/audience-store.js'
import { uuidv7 } from '../../src/core/ids.js'
import type { Database } from '../../src/db/database.js'
import { findSuppressed } from '../../src/deliverability/suppressions/suppression-store.js'
import { addSuppression, removeSuppression } from '../../src/deliverability/suppressions/suppressions.js'
import { SHELL } from '../../src/core/actor.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { findImportBySeq, listRejections } from '../../src/audience/transfer/import-store.js'
import { findAutomationBySeq } from '../../src/automations/flows/automation-store.js'
import { Importer } from '../../src/audience/transfer/importer.js'
import { appendEvents } from '../../src/events/store.js'
import { brandOf } from '../../src/content/rendering/merging.js'
import { NEW_WORKSPACE } from '../../src/accounts/workspace-store.js'
import { findContents, insertPart } from '../../src/messages/content-store.js'
import { openFlows } from '../support/automations.js'
import { eachDatabase } from '../support/db/database.js'
import { POSTGRES_SERVER } from '../support/db/real-postgres.js'
import { imported, partsOf, receive } from '../support/imports.js'
import { addWorkspace, CONTENT, enqueue, NOW } from '../support/mailroom.js'
import { initialise, routeTo } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

const ANN = 'ann@x.example'
const ATTACHMENT = { filename: 'a.txt', contentType: 'text/plain', size: 20 * ANN.length }
const ACTING = { workspaceId: 'w1', isSandbox: false, source: 'api' } as const

eachDatabase(t, 'a suppression outlives the erasure of its address', async (t: Test, database: Database) => {
  const clock = new FakeClock()
  let ids = 0
  const newId = () => uuidv7(clock.now(), Buffer.alloc(10, ++ids))
  const parts = { database, clock, newId, dataDir: t.testdir(), onEvents: () => {} }
  const add = (email: string) => database.write(tx => createContact(parts, tx, ACTING, { email }))
  for (const email of [ANN, 'joann@x.example']) await add(email)
  const suppression = { workspaceId: 'w1', email: ANN, reason: 'manual', scope: 'all' } as const
  await database.write(tx =>
    addSuppression(
      tx,
      { ...suppression, sourceMessageId: null, createdAt: NOW },
      followSuppressions(),
      SHELL,
    ),
  )
  t.match(await erasePerson(parts, ANN, SHELL, 'w1'), {
    contacts: 1,
    suppressions_hashed: 1,
    events: Number,
  })
  t.notOk(await findContact(database.reader, 'w1', { email: ANN }))
  t.ok(await findContact(database.reader, 'w1', { email: 'joann@x.example' }), 'another address stays')
  t.match(await findAudience(database.reader, 'w1'), { contacts: 1, unsubscribed: 0 })
  const rows = await database.reader.selectFrom('suppressions').select('email').execute()
  t.match(rows, [{ email: /^erased:[0-9a-f]{64}$/ }])
  t.same([...(await findSuppressed(database.reader, 'w1', [ANN, 'joann@x.example'], false))], [ANN])
  t.equal((await add(ANN)).subscribed, false, 'a new contact follows it')
  await database.write(tx =>
    removeSuppression(tx, { ...suppression, createdAt: NOW }, followSuppressions(), SHELL),
  )
  t.equal((await findContact(database.reader, 'w1', { email: ANN }))?.subscribed, true, 'it can be removed')
  await erasePerson(parts, ANN, SHELL, 'w1')
  const again = await erasePerson(parts, ANN, SHELL, 'w1')
  t.same(
    Object.entries(again).filter(([, count]) => count > 0),
    [],
    'nothing is left to erase',
  )
})

eachDatabase(
  t,
  'a second erasure keeps the suppression that stops more',
  async (t: Test, database: Database) => {
    const clock = new FakeClock()
    const newId = () => uuidv7(clock.now(), Buffer.alloc(10, 1))
    const parts = { database, clock, newId, dataDir: t.testdir(), onEvents: () => {} }
    const suppress = (reason: 'unsubscribe' | 'complaint', scope: 'marketing' | 'all') => {
      const entry = { workspaceId: 'w1', email: ANN, reason, scope, sourceMessageId: null, createdAt: NOW }
      return database.write(tx => addSuppression(tx, entry, followSuppressions(), SHELL))
    }
    const isSuppressed = async () => (await findSuppressed(database.reader, 'w1', [ANN], false)).size > 0
    await suppress('unsubscribe', 'marketing')
    await erasePerson(parts, ANN, SHELL, 'w1')
    await suppress('complaint', 'all')
    await erasePerson(parts, ANN, SHELL, 'w1')
    t.equal(await isSuppressed(), true, 'who complained gets no transactional mail')
    await suppress('unsubscribe', 'marketing')
    await erasePerson(parts, ANN, SHELL, 'w1')
    t.equal(await isSuppressed(), true, 'and a weaker entry does not replace it')
    const rows = await database.reader.selectFrom('suppressions').select(['email', 'reason']).execute()
    t.match(rows, [{ email: /^erased:/, reason: 'complaint' }])
    t.equal(rows.length, 1)
  },
)

eachDatabase(
  t,
  'erasing a person takes their runs out of the counts of automations',
  async (t: Test, database: Database) => {
    const flows = await openFlows(database)
    const parts = { ...flows.parts, dataDir: t.testdir() }
    const waits = await flows.flow({ steps: [{ step_type: 'delay', config: { duration: 3, unit: 'days' } }] })
    const ends = await flows.flow({ steps: [] })
    for (const name of ['ann', 'bob']) {
      const contact = await flows.contact(name)
      for (const automation of [waits, ends]) await flows.enter(automation, contact)
    }
    await flows.settle()
    await erasePerson(parts, 'ann@one.test', SHELL, flows.workspace.id)
    t.match(await findAutomationBySeq(database.reader, waits.seq), { runs: { active: 1, cancelled: 0 } })
    t.match(await findAutomationBySeq(database.reader, ends.seq), { runs: { active: 0, completed: 1 } })
  },
)

/** Three queued mails to Ann: one alone, one with Joann, one with an attachment; their events, and a conversion. */
async function withMail(database: Database) {
  const clock = new FakeClock()
  let ids = 0
  const newId = () => uuidv7(clock.now(), Buffer.alloc(10, ++ids))
  await addWorkspace(database)
  const parts = { database, clock, newId, dataDir: '', onEvents: () => {} }
  const { id } = await database.write(tx => createContact(parts, tx, ACTING, { email: ANN }))
  for (const [content, to] of [
    ['alone', [ANN]],
    ['shared', [ANN, 'joann@x.example']],
    ['parts', [ANN]],
  ] as const) {
    const letters = to.map(address => ({ id: newId(), to: address }))
    await enqueue(database, letters, {
      id: content,
      addressees: { to: to.map(address => ({ name: address, address })), cc: [], hasCopies: false },
      attachments: content === 'parts' ? [ATTACHMENT] : [],
      merging: { brand: brandOf(NEW_WORKSPACE), hasFooter: false, data: { account: ANN, greeting: 'Hello' } },
    })
    await database.write(async tx => {
      for (let part = 1; content === 'parts' && part <= 20; part += 1)
        await insertPart(tx.db, content, part, Buffer.from(ANN))
      await appendEvents(
        tx,
        letters.map(({ id: messageId, to: recipient }) => ({
          ...{ kind: 'email.accepted', workspaceId: 'w1', messageId, isSandbox: false, occurredAt: NOW },
          payload: { to: recipient },
        })),
      )
    })
  }
  await database.write(tx =>
    tx.db
      .insertInto('conversions')
      .values({
        ...{
          id: 'conversion',
          workspace_id: 'w1',
          contact_id: id,
          value: 5,
          currency: 'EUR',
          metadata: '{}',
        },
        ...{ message_id: null, campaign_id: null, is_sandbox: 0, created_at: NOW },
      })
      .execute(),
  )
  return { parts, contactId: id }
}

/** Tables with a row that names Ann or her contact. */
async function mentioning({ reader }: Database, contactId: string): Promise<string[]> {
  const tables = [
    'contacts',
    'messages',
    'message_contents',
    'message_parts',
    'events',
    'conversions',
  ] as const
  const found: string[] = []
  for (const table of tables) {
    const rows = await reader.selectFrom(table).selectAll().execute()
    const texts = rows.map(row =>
      Object.values(row)
        .map(value => (value instanceof Uint8Array ? Buffer.from(value).toString() : String(value)))
        .join(' '),
    )
    if (texts.some(text => /(?<!jo)ann@x\.example/.test(text) || text.includes(contactId))) found.push(table)
  }
  return found
}

eachDatabase(
  t,
  'mail that others got too no longer names the person, and stays theirs',
  async (t, database) => {
    const { parts, contactId } = await withMail(database)
    const dataDir = t.testdir()
    t.match(await erasePerson({ ...parts, dataDir }, ANN, SHELL, 'w1'), {
      messages: 3,
      message_contents: 2,
    })
    t.same(await mentioning(database, contactId), [])
    const [shared, ...others] = await findContents(database.reader, ['alone', 'shared', 'parts'])
    t.same(others, [])
    t.match(shared, {
      html: CONTENT.html,
      addressees: { to: [{ address: 'joann@x.example' }] },
      merging: { data: { greeting: 'Hello' } },
    })
  },
)

eachDatabase(t, 'an erasure cut off anywhere is completed by repeating it', async (t, database) => {
  const { parts, contactId } = await withMail(database)
  const dataDir = t.testdir()
  let cutOffs = 0
  for (let writes = 1; ; writes += 1) {
    let left = writes
    const write: Database['write'] = (work, options) => {
      left -= 1
      if (left < 0) return Promise.reject(new Error('cut off'))
      return database.write(work, options)
    }
    const dying = Object.assign(Object.create(database) as Database, { write })
    try {
      await erasePerson({ ...parts, database: dying, dataDir }, ANN, SHELL, 'w1')
      break
    } catch (error) {
      t.match(error, { message: 'cut off' })
      cutOffs += 1
    }
  }
  t.ok(cutOffs > 2)
  t.same(await mentioning(database, contactId), [])
  t.equal((await database.reader.selectFrom('messages').select('id').execute()).length, 1)
})

eachDatabase(t, 'an import under way does not bring an erased person back', async (t, database) => {
  const parts = partsOf(database)
  const rows = ['ann@x.example,Ann', 'ANN@X.example,Ann', 'joann@x.example,Jo', 'nobody,ann@x.example']
  const seq = await receive(parts, `email,first_name\n${rows.join('\n')}\n`)
  await erasePerson({ ...parts, dataDir: t.testdir() }, ANN, SHELL, 'w1')
  await new Importer(parts).run(AbortSignal.timeout(60_000))
  t.match(await findImportBySeq(database.reader, seq), { status: 'completed', created: 1, rejected: 3 })
  const contacts = await database.reader.selectFrom('contacts').select('email').execute()
  t.same(contacts, [{ email: 'joann@x.example' }])
  t.same(
    await database.reader.selectFrom('contact_import_parts').selectAll().execute(),
    [],
    'the file is gone',
  )
  t.notMatch(JSON.stringify(await listRejections(database.reader, seq, 0, 10)), /"ann@x|"Ann/i)
  t.match(await imported(parts, 'email\nann@x.example\n'), { created: 1 }, 'a later file may name them again')
})

const onSqlite = { skip: POSTGRES_SERVER !== undefined && 'backups are of SQLite' }

t.test(
  'erasing a person leaves nothing behind, and restoring an older backup erases them again',
  onSqlite,
  async t => {
    const sink = await openSink(t)
    const postroad = await initialise(t, { env: routeTo(sink.port) })
    const { key, dataDir, workspaceId } = postroad
    const server = await postroad.serve()
    const post = async (path: string, body: object, more: object = {}) =>
      (await server.post(`/api/v1${path}`, body, { key, ...more })).body.data
    const list = await post('/lists', { name: 'Friends' })
    const form = await post('/forms', { name: 'Newsletter', list_ids: [list.id], double_opt_in: false })
    const contact = await post('/contacts', { email: ANN, attributes: { plan: 'pro' }, list_id: list.id })
    await post('/contacts', { email: 'joann@x.example' })
    await server.post(`/f/${form.id}`, { email: ANN })
    await post('/conversions', { contact_id: contact.id, value: 5, currency: 'EUR' })
    const letter = { from_email: 'me@sender.test', subject: 'Secret of ann@x.example', text: 'Hello.\n' }
    const headers = { 'Idempotency-Key': 'once' }
    await post('/email/send', { ...letter, to: [ANN, 'joann@x.example'] }, { headers })
    await post('/email/send', { ...letter, to: ANN })
    await until('the mail to arrive', () => Promise.resolve(sink.arrived.length === 3))
    await until('its results to be stored', async () => {
      const queued = await postroad.json('queue', 'list')
      return Array.isArray(queued) && queued.length === 0
    })
    await post('/suppressions', { email: ANN })
    const backup = join(t.testdir(), 'older.backup')
    t.match(await postroad.run('backup', backup), { status: 0 })

    t.match(await server.post('/api/v1/contacts/erase', { email: 'nobody' }, { key }), { status: 400 })
    const erased = await server.post('/api/v1/contacts/erase', { email: 'Ann@X.example' }, { key })
    t.match(erased, {
      status: 200,
      body: {
        data: { erased: { contacts: 1, messages: 2, message_contents: 1, conversions: 1, activity: 1 } },
      },
    })
    const mentions = () => {
      const database = new BetterSqlite(join(dataDir, 'postroad.db'), { readonly: true })
      const tables = database
        .prepare<[], { name: string }>(
          `select name from sqlite_master where type = 'table' and name not like '%search%'`,
        )
        .all()
      const found = tables.flatMap(({ name }) =>
        database
          .prepare(`select * from "${name}"`)
          .all()
          .filter(
            row =>
              /(?<!jo)ann@x\.example/.test(JSON.stringify(row)) || JSON.stringify(row).includes(contact.id),
          )
          .map(() => name),
      )
      database.close()
      return [...new Set(found)]
    }
    t.same(mentions(), [])
    t.match(await server.get('/api/v1/contacts', { key }), { body: { data: [{ email: 'joann@x.example' }] } })
    t.match(await post('/email/send', { ...letter, to: ANN }), { results: [{ reason: 'suppressed' }] })
    t.match(await postroad.json('activity', 'list', '--workspace', workspaceId), [
      { action: 'contact.erased' },
    ])
    t.match(await postroad.run('erase', ANN), { status: 2, err: /--yes/ })
    t.match(await postroad.run('erase', ANN, '--yes'), { status: 0, out: /messages +1/ })

    await server.end('SIGTERM')
    t.match(await postroad.run('restore', backup, '--yes'), { status: 0 })
    t.same(mentions(), [])
  },
)
