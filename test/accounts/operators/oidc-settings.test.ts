/** The section `[oidc]` as `config check`, `config show` and `doctor` see it. */
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseIssuer } from '../../../src/accounts/operators/oidc/settings.js'
import { openAppliance } from '../../../src/appliance/appliance.js'
import { stateChecks } from '../../../src/appliance/doctor/machine-checks.js'
import { CONFIG_SCHEMA } from '../../../src/appliance/resources.js'
import { loadConfig } from '../../../src/config/load.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { systemWorld } from '../../../src/world/world.js'
import { initialise } from '../../support/program/process.js'

const ROLE = '[[oidc.roles]]\ngroup = "admins"\nrole = "owner"\n'
const SECTION = '[oidc]\nissuer = "https://id.example.com"\nclient_id = "postroad"\n'

async function open(t: Test) {
  const postroad = await initialise(t, { env: { POSTROAD_HTTP_PUBLIC_LISTEN: '127.0.0.1:0' } })
  chmodSync(postroad.dataDir, 0o700)
  chmodSync(postroad.configFile, 0o640)
  return {
    ...postroad,
    check: async (toml: string) => {
      postroad.writeConfig(toml)
      const { status, out, err } = await postroad.run('config', 'check')
      return { status, text: out + err }
    },
  }
}

t.test('an issuer is https, or http on loopback and private addresses', async t => {
  for (const issuer of [
    'https://id.example.com/realms/staff',
    'https://id.example.com/application/o/mail/',
    'http://127.0.0.1:8080/realms/x',
    'http://[::1]:8080/',
    'http://localhost:8080/',
    'http://10.0.0.5/realms/x',
  ])
    t.equal(parseIssuer(issuer), issuer)
  t.equal(parseIssuer('https://id.example.com'), 'https://id.example.com/', 'as the URL standard writes it')
  for (const issuer of [
    'http://id.example.com/',
    'http://192.0.2.1/',
    'ftp://id.example.com/',
    'https://user:pw@id.example.com/',
    'https://id.example.com/?x=1',
    'https://id.example.com/#x',
    'id.example.com',
  ])
    t.equal(parseIssuer(issuer), undefined, issuer)
})

t.test('a complete section passes', async t => {
  const { check } = await open(t)
  t.match(await check(`${SECTION}client_secret = "hunter2"\n${ROLE}`), { status: 0, text: /^ok$/m })
})

t.test('what is missing, doubled or wrong is a fault that names the key and its line', async t => {
  const { check, dataDir } = await open(t)
  const secret = 'client_secret = "hunter2"\n'
  const empty = join(dataDir, 'empty')
  writeFileSync(empty, '\n')
  const faults: readonly [string, RegExp][] = [
    [`${SECTION}${ROLE}`, /oidc\.client_secret: neither client_secret nor client_secret_file is set/],
    [`${SECTION}${secret}client_secret_file = "${empty}"\n${ROLE}`, /oidc\.client_secret: both/],
    [
      `${SECTION}client_secret_file = "/none"\n${ROLE}`,
      /line 6: oidc\.client_secret_file: \/none cannot be read/,
    ],
    [`${SECTION}client_secret_file = "${empty}"\n${ROLE}`, /empty is empty/],
    [`${SECTION}${secret}`, /oidc\.roles: no group gives a role/],
    [`${SECTION}${secret}ca = "${empty}"\n${ROLE}`, /oidc\.ca: .*empty cannot be used/],
    [`[oidc]\nissuer = "https://id.example.com"\n${secret}${ROLE}`, /oidc\.client_id: it is not set/],
    [`[oidc]\nissuer = "http://id.example.com"\n`, /oidc\.issuer: .*http:\/\/id\.example\.com.*https URL/],
    [
      `${SECTION}${secret}${ROLE.replace('owner', 'king')}`,
      /oidc\.roles\.0\.role: .*"king".*owner, operator/,
    ],
    [`${SECTION}${secret}[[oidc.roles]]\nrole = "owner"\n`, /oidc\.roles\.0\.group: missing/],
  ]
  for (const [toml, expected] of faults) {
    const { status, text } = await check(toml)
    t.not(status, 0, toml)
    t.match(text, expected)
    t.notMatch(text, /hunter2/)
  }
  t.match(await check(`[oidc]\nclient_id = "x"\n`), { status: 0, text: /warning: .*oidc.issuer is not set/ })
})

t.test('the client secret is not shown', async t => {
  const postroad = await open(t)
  await postroad.check(`${SECTION}client_secret = "hunter2"\n${ROLE}`)
  const { out } = await postroad.run('config', 'show')
  t.match(out, /client_secret = "\*+"/)
  t.notMatch(out, /hunter2/)
})

t.test('doctor names workspaces of roles that do not exist', async t => {
  const postroad = await open(t)
  const { id } = await postroad.json<{ id: string }>('workspace', 'create', 'Shop')
  const found = async (...workspaces: readonly string[]) => {
    const roles = workspaces.map(name => `${ROLE}workspace = "${name}"\n`)
    postroad.writeConfig(`${SECTION}client_secret = "x"\n${roles.join('')}`)
    const { configFile: file, environment: env } = postroad
    const { config } = loadConfig({ schema: CONFIG_SCHEMA, file, env })
    await using appliance = await openAppliance({ config, world: { ...systemWorld(), log: new FakeLog() } })
    return (await stateChecks(appliance)).filter(({ name }) => name === 'oidc.roles')
  }
  t.match(await found('', 'shop', id), [{ status: 'ok' }])
  t.match(await found('Gone', 'Shop'), [
    { status: 'fail', what: 'no workspace Gone: its roles are not given' },
  ])
})
