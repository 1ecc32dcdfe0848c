/** `postroad migrate copy` with a real PostgreSQL server: the copy answers as the original did and goes on with its mail. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { install, routeTo, type Installation, type Serving } from '../support/program/process.js'
import { ask, readOperations, usualRequest } from '../support/api/api-document.js'
import { newDatabase, psql } from '../support/db/real-postgres.js'
import { openSink } from '../support/smtp/sink.js'
import { until } from '../support/until.js'

const letter = (to: string) => ({
  ...{ to: [to], from_email: 'shop@sender.test', subject: 'Grüße', html: '<p>Hello</p>' },
})

interface Report {
  readonly success: boolean
  readonly tables: readonly { readonly table: string; readonly source: object; readonly target: object }[]
}

/** On a SQLite file, with a key. */
async function openOriginal(t: Test, env: Readonly<Record<string, string>>) {
  const original = install(t, { env: { ...env, POSTROAD_DATABASE_URL: 'sqlite:postroad.db' } })
  const { workspace } = await original.json<{ workspace: { id: string } }>('init')
  const options = ['--workspace', workspace.id, '--name', 'of the tests', '--rate-limit', '0']
  const { key } = await original.json<{ key: string }>('key', 'create', ...options, '--email-rate-limit', '0')
  return { original, key, file: join(original.dataDir, 'postroad.db') }
}

/** Asks every route that needs no id, as its example has it: there is something of every kind. */
async function makeSomeOfAll(server: Serving, key: string): Promise<number> {
  let made = 0
  for (const operation of await readOperations(server.baseUrl)) {
    if (operation.method !== 'POST' || !operation.needsKey || operation.pathParameters.length > 0) continue
    const { status } = await ask(
      server.baseUrl,
      usualRequest(operation, () => '', key),
    )
    if (status < 300) made += 1
  }
  return made
}

/** What all lists and other readings without an id answer, but for what changes by itself. */
async function readAll(server: Serving, key: string): Promise<Record<string, unknown>> {
  const read: Record<string, unknown> = {}
  for (const operation of await readOperations(server.baseUrl)) {
    const isRead = operation.method === 'GET' && operation.needsKey && operation.pathParameters.length === 0
    if (!isRead || /live|health|stream/.test(operation.path)) continue
    const { status, text } = await ask(
      server.baseUrl,
      usualRequest(operation, () => '2026-01-01T00:00:00Z', key),
    )
    read[operation.name] = { status, text: text.replace(/"last_used_at":"[^"]*"/g, '') }
  }
  return read
}

const copyJson = async (installation: Installation, source: string, target: string) => {
  const report = await installation.json<Report>('migrate', 'copy', source, target)
  if (!report.success) throw new Error('not equal')
  return report.tables
}

t.test('a server on the copy answers as the original did, and sends the mail that was waiting', async t => {
  const sink = await openSink(t)
  sink.atRcpt = 'defer'
  // What is deferred stays so until it is asked for.
  const env = { ...routeTo(sink.port), POSTROAD_MTA_RETRY_FIRST: '1h' }
  const { original, key, file } = await openOriginal(t, env)
  const before = await original.serve()
  t.ok((await makeSomeOfAll(before, key)) > 10)
  for (const name of ['ann', 'bob', 'cid'])
    t.equal((await before.send(key, letter(`${name}@one.test`))).status, 200)
  await until('all mail to be deferred', async () => {
    const { body } = await before.get('/api/v1/email?limit=100', { key })
    const mails = body.data as readonly { status: string; delivery_state: string }[]
    return mails.every(({ status, delivery_state: state }) => status !== 'sent' || state === 'deferred')
  })
  t.match(await original.run('migrate', 'copy', file, newDatabase(t)), {
    status: 1,
    err: /another postroad serves/,
  })
  const old = await readAll(before, key)
  t.ok(Object.keys(old).length > 10)
  await before.end('SIGTERM')
  const url = newDatabase(t)
  const there = await copyJson(original, 'sqlite:postroad.db', url)
  t.ok(there.filter(({ source }) => 'rows' in source && Number(source.rows) > 0).length > 20)
  const published = psql(url, "select name from published_names where purpose = 'reports'")
  t.same(published, ['mx.postroad.test'], 'reports to the former name are accepted after a move')

  const copied = install(t, { env: { ...env, POSTROAD_DATABASE_URL: url } })
  copied.writeConfig('')
  const server = await copied.serve()
  const fresh = await readAll(server, key)
  for (const [name, answer] of Object.entries(old)) t.same(fresh[name], answer, name)

  sink.atRcpt = 'accept'
  t.match(await copied.run('migrate', 'copy', url, join(copied.dataDir, 'back.db')), {
    status: 1,
    err: /servers use the database: mx.postroad.test/,
  })
  await copied.run('queue', 'retry', '--all')
  await server.send(key, letter('dee@one.test'))
  const recipients = new Set(['ann', 'bob', 'cid', 'dee'].map(name => `${name}@one.test`))
  const mine = () => sink.accepted.flatMap(mail => mail.recipients).filter(to => recipients.has(to))
  await until('all four to arrive', () => mine().length >= 4)
  t.same(mine().sort(), [...recipients])
  await server.end('SIGTERM')

  const back = join(copied.dataDir, 'back.db')
  await copyJson(copied, url, back)
  const third = install(t, { env: { ...env, POSTROAD_DATABASE_URL: `sqlite:${back}` } })
  mkdirSync(third.dataDir)
  const last = await third.serve()
  t.equal((await last.send(key, letter('eve@one.test'))).status, 200)
})

t.test('what a node that was killed had claimed is delivered from the copy', async t => {
  const sink = await openSink(t)
  sink.atDot = 'hold'
  const { original, key, file } = await openOriginal(t, routeTo(sink.port))
  const before = await original.serve()
  await before.send(key, letter('ann@one.test'))
  await sink.arrivedOnce(1)
  await before.end('SIGKILL')
  const url = newDatabase(t)
  await copyJson(original, file, url)
  t.same(psql(url, 'select count(*) from queue where claimed_by is not null'), ['1'])
  sink.release()
  const copied = install(t, { env: { ...routeTo(sink.port), POSTROAD_DATABASE_URL: url } })
  const server = await copied.serve()
  await server.logged('message delivered')
})

t.test('a target with data or other tables is refused, and passwords are not printed', async t => {
  const { original, file } = await openOriginal(t, {})
  const withPassword = (url: string) => url.replace('//postroad@', '//postroad:s3cret@')
  const url = newDatabase(t)
  const text = await original.run('migrate', 'copy', file, withPassword(url))
  t.match(text, { status: 0, out: /read back, every table is equal/, err: /copying workspaces: 1 rows/ })
  const again = await original.run('migrate', 'copy', file, withPassword(url))
  t.match(again, { status: 1, err: /holds data.*drop that database/ })
  const other = newDatabase(t)
  psql(other, 'create table shop (id int)')
  const foreign = await original.run('migrate', 'copy', file, withPassword(other))
  t.match(foreign, { status: 1, err: /holds other tables \(shop\)/ })
  t.same(psql(other, `select tablename from pg_tables where schemaname = 'public'`), ['shop'])
  const empty = await original.run('migrate', 'copy', withPassword(newDatabase(t)), `${file}.copy`)
  t.match(empty, { status: 1, err: /source: the PostgreSQL database is empty/ })
  t.notOk(existsSync(`${file}.copy`))
  writeFileSync(`${file}.copying`, 'left by a copy that was killed')
  t.match(await original.run('migrate', 'copy', withPassword(url), `${file}.copy`, '--json'), { status: 0 })
  for (const { out, err } of [text, again, foreign, empty]) t.notMatch(out + err, /s3cret/)
})
