/** An import in the real program, cut off in the middle: it resumes, nothing twice, nothing by half. */
import BetterSqlite from 'better-sqlite3'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { initialise } from '../../support/program/process.js'
import { until } from '../../support/until.js'

const ROWS = 6_000

t.test('a server killed during an import resumes it at the next start', async t => {
  const postroad = await initialise(t)
  const file = join(postroad.dataDir, 'postroad.db')
  const ask = (query: string): number => {
    const handle = new BetterSqlite(file, { readonly: true })
    try {
      return (handle.prepare(query).pluck().get() as number | undefined) ?? 0
    } finally {
      handle.close()
    }
  }
  let server = await postroad.serve()
  const rows = Array.from({ length: ROWS }, (_, at) =>
    at % 100 === 50 ? `wrong${at},x` : `c${at}@x.example,${at}`,
  )
  const sent = await fetch(`${server.baseUrl}/api/v1/contacts/import?tags=imported`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${postroad.key}`, 'Content-Type': 'text/csv' },
    body: `email,number\n${rows.join('\n')}\n`,
  })
  const { data } = (await sent.json()) as { data: { import_id: string } }
  const counted = 'created + updated + unchanged + rejected'
  for (let kills = 0, done = 0; kills < 3; kills += 1) {
    const before = done
    await until('some rows more', () => ask('select rows_done from contact_imports') > before)
    await server.end('SIGKILL')
    done = ask('select rows_done from contact_imports')
    t.ok(done < ROWS, 'it was killed in the middle')
    t.equal(ask(`select ${counted} from contact_imports`), done, 'what is counted')
    t.equal(ask('select count(*) from contacts'), ask('select created from contact_imports'), 'is done')
    t.equal(ask('select contact_count from tags'), ask('select count(*) from contact_tags'))
    server = await postroad.serve()
  }
  const shown = await until('its end', async () => {
    const { body } = await server.get(`/api/v1/contacts/imports/${data.import_id}`, { key: postroad.key })
    return body.data.status === 'completed' && body.data
  })
  t.match(shown, { rows: ROWS, created: ROWS - 60, updated: 0, unchanged: 0, rejected: 60 })
  t.equal(ask('select count(*) from contacts'), ROWS - 60)
  t.equal(ask('select count(distinct email) from contacts'), ROWS - 60)
  t.equal(ask('select contact_count from tags'), ROWS - 60)
  const changed =
    "select sum(json_array_length(payload, '$.contacts')) from events where kind = 'contacts.imported'"
  t.equal(ask(`${changed} and payload ->> 'is_created'`), ROWS - 60)
  t.equal(ask(`${changed} and payload ->> '$.tags[0].name' = 'imported'`), ROWS - 60)
  t.equal(ask('select count(*) from contact_import_rejections'), 60)
  await until('the file to go', () => ask('select count(*) from contact_import_parts') === 0)
})

t.test('an import that could not write resumes as soon as it can', async t => {
  const postroad = await initialise(t)
  const file = join(postroad.dataDir, 'postroad.db')
  const server = await postroad.serve()
  const rows = Array.from({ length: ROWS }, (_, at) => `c${at}@x.example`)
  const { body: accepted } = await server.post('/api/v1/contacts/import', `email\n${rows.join('\n')}\n`, {
    key: postroad.key,
    headers: { 'Content-Type': 'text/csv' },
  })
  const shown = async () =>
    (await server.get(`/api/v1/contacts/imports/${accepted.data.import_id}`, { key: postroad.key })).body.data
  await until('some rows', async () => (await shown()).rows > 0)
  renameSync(file, `${file}.aside`)
  await server.logged('import interrupted')
  renameSync(`${file}.aside`, file)
  const done = await until('its end', async () => {
    const data = await shown()
    return data.status === 'completed' && data
  })
  t.match(done, { rows: ROWS, created: ROWS })
})
