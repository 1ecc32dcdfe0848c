/** Images on a real PostgreSQL server: every node serves them, and a copy of a SQLite database has them. */
import { join } from 'node:path'
import t from 'tap'
import { newDatabase } from '../support/db/real-postgres.js'
import { picture } from '../support/content/images.js'
import { install, routeTo, type Serving } from '../support/program/process.js'
import { openTwo } from '../support/program/nodes.js'

interface Image {
  readonly id: string
  readonly url: string
  readonly variants: readonly { readonly url: string }[]
}

async function upload({ baseUrl }: Serving, key: string, file: Buffer): Promise<Image> {
  const response = await fetch(`${baseUrl}/api/v1/media?file_name=flag.jpg`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'image/jpeg' },
    body: Buffer.from(file),
  })
  const { data } = (await response.json()) as { data: Image }
  return data
}

/** @returns the status if it is not there */
async function fetched({ baseUrl }: Serving, url: string): Promise<Buffer | number> {
  const response = await fetch(baseUrl + new URL(url).pathname)
  const octets = Buffer.from(await response.arrayBuffer())
  return response.status === 200 ? octets : response.status
}

t.test(
  'an image uploaded through one node is served by the other, and gone from both once deleted',
  async t => {
    const { first, one, two } = await openTwo(t)
    const { id, url, variants } = await upload(one, first.key, await picture('jpeg', 1_300, 900))
    for (const file of [url, ...variants.map(variant => variant.url)]) {
      const there = await fetched(two, file)
      t.type(there, Buffer)
      t.same(await fetched(one, file), there)
    }
    t.match(await two.delete(`/api/v1/media/${id}`, { key: first.key }), { status: 200 })
    t.equal(await fetched(one, url), 404, 'although it was in memory')
    t.equal(await fetched(two, url), 404)
  },
)

t.test('migrate copy takes the images along', async t => {
  const env = { ...routeTo(9), POSTROAD_DATABASE_URL: 'sqlite:postroad.db' }
  const original = install(t, { env })
  const { workspace } = await original.json<{ workspace: { id: string } }>('init')
  const named = ['--workspace', workspace.id, '--name', 'test']
  const { key } = await original.json<{ key: string }>('key', 'create', ...named)
  const before = await original.serve()
  const { url, variants } = await upload(before, key, await picture('jpeg', 1_300, 900))
  const files = [url, ...variants.map(variant => variant.url)]
  const octets = await Promise.all(files.map(file => fetched(before, file)))
  await before.end('SIGTERM')
  const there = newDatabase(t)
  const copied = await original.run(
    'migrate',
    'copy',
    `sqlite:${join(original.dataDir, 'postroad.db')}`,
    there,
  )
  t.match(copied, { status: 0 }, copied.err)
  const copy = install(t, { env: { ...env, POSTROAD_DATABASE_URL: there } })
  copy.writeConfig('')
  const server = await copy.serve()
  t.same(await Promise.all(files.map(file => fetched(server, file))), octets)
})
