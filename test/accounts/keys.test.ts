/** API keys on both databases: made once, kept as a hash, recognised until revoked. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { createKey, keyAuthenticator, DEFAULT_KEY_LIMITS, type NewKey } from '../../src/accounts/keys.js'
import { listApiKeys, revokeApiKey } from '../../src/accounts/key-store.js'
import {
  findActingWorkspace,
  findWorkspace,
  listWorkspaces,
  removeWorkspace,
  sandboxIdOf,
  updateWorkspace,
} from '../../src/accounts/workspace-store.js'
import { SHELL } from '../../src/core/actor.js'
import { uuidv7 } from '../../src/core/ids.js'
import type { Database } from '../../src/db/database.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { eachDatabase } from '../support/db/database.js'
import { addWorkspace } from '../support/mailroom.js'
import { until } from '../support/until.js'

const PAGE = { limit: 100, offset: 0 }

async function office(database: Database) {
  await addWorkspace(database)
  const clock = new FakeClock()
  const random = new SeededRandom()
  const parts = { database, clock, random, newId: () => uuidv7(clock.now(), random.bytes(10)) }
  return {
    clock,
    authenticate: keyAuthenticator(database, clock),
    make: (wanted: Partial<NewKey> = {}) =>
      createKey(
        parts,
        {
          workspaceId: 'w1',
          name: 'shop',
          isSandbox: false,
          ...DEFAULT_KEY_LIMITS,
          ...wanted,
        },
        SHELL,
      ),
  }
}

eachDatabase(
  t,
  'a new key is 40 random characters behind a prefix, and no two are alike',
  async (t, database) => {
    const { make } = await office(database)
    const keys = [await make(), await make(), await make({ isSandbox: true })].map(({ key }) => key)
    t.match(keys, [/^ts_live_[0-9A-Za-z]{40}$/, /^ts_live_[0-9A-Za-z]{40}$/, /^ts_test_[0-9A-Za-z]{40}$/])
    t.equal(new Set(keys).size, 3)
  },
)

eachDatabase(t, 'of a key only its hash and a hint are stored', async (t, database) => {
  const { make } = await office(database)
  const { key } = await make()
  const stored = (await listApiKeys(database.reader, 'w1', PAGE)).items
  t.notMatch(JSON.stringify(stored), key.slice(8, -4))
  t.match(stored, [
    {
      hash: createHash('sha256').update(key).digest('hex'),
      hint: `ts_live_...${key.slice(-4)}`,
    },
  ])
})

eachDatabase(t, 'a key is recognised as what its row says', async (t, database) => {
  const { make, authenticate } = await office(database)
  const { key, row } = await make({ isSandbox: true, rateLimit: 7, emailRateLimit: 0 })
  t.same(await authenticate(key), {
    keyId: row.id,
    keyName: 'shop',
    actor: { type: 'api_key', id: row.id, name: 'shop' },
    workspaceId: sandboxIdOf('w1'),
    liveWorkspaceId: 'w1',
    keyType: 'full_access',
    permissions: ['*'],
    isSandbox: true,
    rateLimit: 7,
    emailRateLimit: 0,
  })
})

eachDatabase(
  t,
  'permissions make the type: all, exactly the sending ones, or custom',
  async (t, database) => {
    const { make, authenticate } = await office(database)
    const typeOf = async (permissions: string[]) => {
      const { keyType, permissions: kept } = await authenticate((await make({ permissions })).key)
      return [keyType, kept]
    }
    t.same(await typeOf(['email:send', 'smtp:send', 'email:read']), [
      'sending_access',
      ['email:send', 'smtp:send', 'email:read'],
    ])
    t.same(await typeOf(['sending_access']), ['sending_access', ['email:send', 'email:read', 'smtp:send']])
    t.same(await typeOf(['full_access']), ['full_access', ['*']])
    t.equal((await typeOf(['sending_access', 'domains:read']))[0], 'custom')
    t.same(await typeOf(['email:send', 'email:send']), ['custom', ['email:send']])
    t.same(await typeOf(['domains:read', '*']), ['full_access', ['domains:read', '*']])
  },
)

eachDatabase(t, 'a key that cannot be made is refused with what is wrong', async (t, database) => {
  const { make } = await office(database)
  await t.rejects(make({ permissions: ['email:send', 'email:fly'] }), {
    code: 'validation_error',
    message: /^unknown permission email:fly; known: full_access sending_access \* email:send/,
    path: 'permissions',
  })
  await t.rejects(make({ permissions: [] }), { code: 'validation_error' })
  for (const rateLimit of [-1, 1.5, NaN, 1e10])
    await t.rejects(make({ rateLimit }), { code: 'validation_error' }, String(rateLimit))
  await t.rejects(make({ workspaceId: 'nowhere' }), { code: 'not_found', message: 'no workspace nowhere' })
  t.same((await listApiKeys(database.reader, undefined, PAGE)).items, [])
})

eachDatabase(
  t,
  'an unknown key, a shortened one and another case of a right one are unauthorized',
  async (t, database) => {
    const { make, authenticate } = await office(database)
    const { key } = await make()
    for (const wrong of [
      '',
      'ts_live_',
      key.slice(0, -1),
      `${key}x`,
      key.toLowerCase(),
      createHash('sha256').update(key).digest('hex'),
    ])
      await t.rejects(authenticate(wrong), { code: 'unauthorized' }, wrong)
  },
)

eachDatabase(
  t,
  'a revoked key is refused from a second later on, and revoked only once',
  async (t, database) => {
    const { make, authenticate, clock } = await office(database)
    const { key, row } = await make()
    await authenticate(key)
    t.equal(await database.write(tx => revokeApiKey(tx.db, row.id, clock.now())), true)
    t.equal(await database.write(tx => revokeApiKey(tx.db, row.id, clock.now())), false)
    t.equal(await database.write(tx => revokeApiKey(tx.db, 'no such key', clock.now())), false)
    await clock.advance(1_000)
    await t.rejects(authenticate(key), { code: 'unauthorized' })
  },
)

eachDatabase(t, 'a key of a removed workspace gets an error that says so', async (t, database) => {
  const { make, authenticate, clock } = await office(database)
  const { key } = await make()
  t.equal(await database.write(tx => removeWorkspace(tx.db, 'w1', clock.now(), 'appliance')), true)
  t.equal(await database.write(tx => removeWorkspace(tx.db, 'w1', clock.now(), 'appliance')), false)
  await t.rejects(authenticate(key), { code: 'workspace_not_found' })
  t.equal(await findWorkspace(database.reader, 'w1'), undefined)
})

eachDatabase(t, 'keys are listed per workspace, or all of them, oldest first', async (t, database) => {
  const { make, clock } = await office(database)
  await addWorkspace(database, 'w2')
  await make({ name: 'first' })
  await clock.advance(1)
  await make({ name: 'second', workspaceId: 'w2' })
  await clock.advance(1)
  await make({ name: 'third' })
  const names = async (id?: string) =>
    (await listApiKeys(database.reader, id, PAGE)).items.map(({ name }) => name)
  t.same(await names('w1'), ['first', 'third'])
  t.same(await names(), ['first', 'second', 'third'])
})

eachDatabase(
  t,
  "a workspace's settings read back as they were written, changed ones too",
  async (t, database) => {
    const workspace = await addWorkspace(database)
    t.same(await findWorkspace(database.reader, 'w1'), workspace)
    const changed = {
      ...workspace,
      name: 'Ünïcode & Sons',
      defaultFromEmail: 'shop@example.com',
      companyAddress: 'Main St 1\nTown',
      attribution: false,
      hourlyLimit: 0,
      allowPrivateWebhooks: true,
    }
    await database.write(tx => updateWorkspace(tx.db, changed))
    t.same(await findWorkspace(database.reader, 'w1'), changed)
    t.same(await listWorkspaces(database.reader), [changed])
  },
)

eachDatabase(
  t,
  'the sandbox of a workspace has its settings, stands in no list, and goes with it',
  async (t, database) => {
    const { clock, make, authenticate } = await office(database)
    const { key } = await make({ isSandbox: true })
    const { workspaceId } = await authenticate(key)
    const live = await findWorkspace(database.reader, 'w1')
    t.same(await findActingWorkspace(database.reader, 'w1'), { ...live, liveId: 'w1' })
    t.same(await findActingWorkspace(database.reader, workspaceId), {
      ...live,
      id: workspaceId,
      liveId: 'w1',
    })
    t.equal(await findWorkspace(database.reader, workspaceId), undefined)
    t.match(await listWorkspaces(database.reader), [{ id: 'w1' }])
    await t.rejects(make({ workspaceId }), { code: 'not_found' }, 'nor can it have keys')
    await database.write(tx => removeWorkspace(tx.db, 'w1', clock.now(), 'appliance'))
    t.equal(await findActingWorkspace(database.reader, workspaceId), undefined)
    await t.rejects(keyAuthenticator(database, clock)(key), {
      code: 'workspace_not_found',
    })
  },
)

eachDatabase(t, 'the last use of a key is stored, at most once a minute', async (t, database) => {
  const { make, authenticate, clock } = await office(database)
  const { key } = await make()
  const lastUsed = async () => (await listApiKeys(database.reader, 'w1', PAGE)).items[0]?.lastUsedAt
  t.equal(await lastUsed(), null)
  const first = clock.now()
  await authenticate(key)
  await until('the use to be stored', async () => (await lastUsed()) === first)
  clock.skip(59_000)
  await authenticate(key)
  await database.write(async () => {})
  t.equal(await lastUsed(), first)
  clock.skip(1_000)
  await authenticate(key)
  await until('the next use to be stored', async () => (await lastUsed()) === first + 60_000)
})
