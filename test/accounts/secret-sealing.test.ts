/** `secrets.key` at start, on both databases: sealing what is plain, the right key, the wrong one, none. */
import { join } from 'node:path'
import t from 'tap'
import { openSecretBox, type SealingParts } from '../../src/accounts/secret-sealing.js'
import { plainBox } from '../../src/accounts/secret-box.js'
import { ensureSecret, findNewestSecret, readSecrets } from '../../src/accounts/secret-store.js'
import { parseSecretKeySource } from '../../src/config/schema/secret-key.js'
import type { Database } from '../../src/db/database.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { eachDatabase, sqliteDatabase } from '../support/db/database.js'
import { NOW } from '../support/mailroom.js'

const KEY = Buffer.alloc(32, 7).toString('base64')
const OTHER_KEY = Buffer.alloc(32, 8).toString('base64')
const secret = Buffer.alloc(32, 1)

function open(database: Database, key: string, more: Partial<SealingParts> = {}) {
  return openSecretBox({
    database,
    random: new SeededRandom(),
    source: key === '' ? undefined : parseSecretKeySource(key),
    maySeal: true,
    sealOthers: async () => undefined,
    ...more,
  })
}

const stored = async (database: Database) => (await findNewestSecret(database.reader))?.value

eachDatabase(t, 'plain secrets are sealed at start and read as before', async (t, database) => {
  await ensureSecret(database, 'return_path', secret, NOW, plainBox)
  t.equal(await stored(database), secret.toString('base64'))
  const box = await open(database, KEY)
  const sealed = await stored(database)
  t.match(sealed, /^sealed:1:/)
  t.same(await readSecrets(database.reader, 'return_path', box), [{ version: 1, secret }])
  await open(database, KEY)
  t.equal(await stored(database), sealed, 'once is enough')
})

eachDatabase(t, 'with a key from the start nothing is ever stored plain', async (t, database) => {
  const box = await open(database, KEY)
  t.same(await ensureSecret(database, 'return_path', secret, NOW, box), [{ version: 1, secret }])
  t.match(await stored(database), /^sealed:1:/)
})

eachDatabase(t, 'without the key, or with another, sealed secrets are an error', async (t, database) => {
  await ensureSecret(database, 'return_path', secret, NOW, await open(database, KEY))
  await t.rejects(open(database, ''), {
    name: 'SecretKeyError',
    message: 'the secrets in the database are sealed: set secrets.key',
  })
  for (const maySeal of [true, false]) {
    const error: unknown = await open(database, OTHER_KEY, { maySeal }).catch((thrown: unknown) => thrown)
    t.match(error, { name: 'SecretKeyError', message: /^secrets\.key is not the key that/ })
    t.notMatch(String(error), OTHER_KEY)
  }
  await t.resolves(open(database, KEY, { maySeal: false }))
})

eachDatabase(
  t,
  'who may not change the schema leaves plain secrets to the server that reads them',
  async (t, database) => {
    await ensureSecret(database, 'return_path', secret, NOW, plainBox)
    const box = await open(database, KEY, { maySeal: false })
    t.equal(await stored(database), secret.toString('base64'))
    t.equal(box.seal('another', 'place'), 'another')
  },
)

eachDatabase(t, 'all secrets are sealed together or none', async (t, database) => {
  await ensureSecret(database, 'return_path', secret, NOW, plainBox)
  const sealOthers = async () => Promise.reject(new Error('disk full'))
  await t.rejects(open(database, KEY, { sealOthers }), { message: 'disk full' })
  t.equal(await stored(database), secret.toString('base64'))
})

t.test('the key can be read from a file', async t => {
  const folder = t.testdir({ 'secrets.key': `${KEY}\n` })
  const database = await sqliteDatabase(t, join(folder, 'test.db'))
  await ensureSecret(database, 'return_path', secret, NOW, plainBox)
  const file = join(folder, 'secrets.key')
  await open(database, file)
  t.same(await readSecrets(database.reader, 'return_path', await open(database, KEY)), [
    { version: 1, secret },
  ])
})

t.test('a missing or invalid key file is an error that names the file and quotes nothing', async t => {
  const folder = t.testdir({ 'secrets.key': 'hunter2' })
  const database = await sqliteDatabase(t, join(folder, 'test.db'))
  const file = join(folder, 'secrets.key')
  const wrong: unknown = await open(database, file).catch((thrown: unknown) => thrown)
  t.match(wrong, { name: 'SecretKeyError', message: `secrets.key: ${file} does not hold 32 bytes in base64` })
  t.notMatch(String(wrong), 'hunter2')
  await t.rejects(open(database, `${file}.gone`), {
    name: 'SecretKeyError',
    message: `secrets.key: ${file}.gone cannot be read (ENOENT)`,
  })
})

t.test(
  'a base64 key that starts with a slash is a key, an absolute path is a path, anything else is invalid',
  async t => {
    const slash = Buffer.alloc(32, 255).toString('base64')
    t.match(slash, /^\//)
    t.same(parseSecretKeySource(slash), { bytes: Buffer.alloc(32, 255) })
    t.same(parseSecretKeySource('/etc/postroad/secrets.key'), { file: '/etc/postroad/secrets.key' })
    const short = Buffer.alloc(31).toString('base64')
    for (const text of ['', 'hunter2', 'secrets.key', short, `${KEY} `, KEY.replace('=', '')])
      t.equal(parseSecretKeySource(text), undefined, text)
  },
)
