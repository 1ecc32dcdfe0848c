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
import { OPERATOR } from '../../src/events/activity-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { eachDatabase } from '../support/db/database.js'
import { NOW } from '../support/mailroom.js'
import { initialise, routeTo } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

const ANN = 'ann@x.example'
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
    addSuppression(tx, { ...suppression, sourceMessageId: null, createdAt: NOW }, followSuppressions()),
  )
  t.match(await erasePerson(parts, ANN, OPERATOR, 'w1'), {
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
  await database.write(tx => removeSuppression(tx, { ...suppression, createdAt: NOW }, followSuppressions()))
  t.equal((await findContact(database.reader, 'w1', { email: ANN }))?.subscribed, true, 'it can be removed')
  await erasePerson(parts, ANN, OPERATOR, 'w1')
  const again = await erasePerson(parts, ANN, OPERATOR, 'w1')
  t.same(
    Object.entries(again).filter(([, count]) => count > 0),
    [],
    'nothing is left to erase',
  )
})

t.test('nothing of an erased person is left, and an older backup does not bring it back', async t => {
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
  // What both were sent is still the other's.
  t.same(mentions(), ['message_contents'])
  t.match(await server.get('/api/v1/contacts', { key }), { body: { data: [{ email: 'joann@x.example' }] } })
  t.match(await post('/email/send', { ...letter, to: ANN }), { results: [{ reason: 'suppressed' }] })
  t.match(await postroad.json('activity', 'list', '--workspace', workspaceId), [{ action: 'contact.erased' }])
  t.match(await postroad.run('erase', ANN), { status: 2, err: /--yes/ })
  t.match(await postroad.run('erase', ANN, '--yes'), { status: 0, out: /messages +1/ })

  await server.end('SIGTERM')
  t.match(await postroad.run('restore', backup, '--yes'), { status: 0 })
  t.same(mentions(), ['message_contents'])
})
