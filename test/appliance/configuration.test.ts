/** The configuration in effect by the admin API: sources, secrets, and changes that await a reload or restart. */
import t from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { tokenWith } from '../support/program/operators.js'

const PATH = '/api/admin/v1/configuration'

const FILE = `
public_url = "http://127.0.0.1:8025"
[mta]
routes = [{ domain = "*", host = "127.0.0.1", username = "me", password = "correct horse" }]
[inbound]
sessions = 40
`

t.test('each key is shown with its source, and no secret', async t => {
  const postroad = await openTestAppliance(t, { toml: FILE })
  const viewer = { key: await tokenWith(postroad, 'viewer') }
  const { status, body } = await postroad.get(PATH, viewer)
  t.equal(status, 200)
  const settings = new Map(body.data.settings.map((one: { key: string }) => [one.key, one]))
  t.match(settings.get('inbound.sessions'), {
    ...{ value: 40, source: 'file', applied_by: 'reload', pending: false },
    variable: 'POSTROAD_INBOUND_SESSIONS',
  })
  t.match(settings.get('mta.retry.first'), { value: '1s', default: '5m', source: 'environment' })
  t.match(settings.get('mta.retry.max'), { source: 'default', applied_by: 'restart' })
  t.match(settings.get('mta.return_path_domain'), { value: 'mx.postroad.test', source: 'default' })
  t.match(settings.get('mta.routes'), { value: [{ password: '********' }] })
  t.notMatch(JSON.stringify(body), 'correct horse')
  t.match(body.data, { file: postroad.configFile, fault: null, toml: /sessions = 40/ })
  const elsewhere = { key: await tokenWith(postroad, [{ workspaceId: postroad.workspaceId, role: 'owner' }]) }
  t.match(await postroad.get(PATH, elsewhere), { status: 403 })
})

t.test('a change of the file is pending until it is loaded, and a faulty file is reported', async t => {
  const postroad = await openTestAppliance(t, { toml: FILE })
  const viewer = { key: await tokenWith(postroad, 'viewer') }
  const pending = async () => {
    const { data } = (await postroad.get(PATH, viewer)).body
    const keys = (data.settings as { key: string; pending: boolean }[]).filter(one => one.pending)
    return { fault: data.fault as string | null, keys: keys.map(({ key }) => key) }
  }
  t.same(await pending(), { fault: null, keys: [] })
  postroad.writeConfig(FILE.replace('40', '41'))
  t.same(await pending(), { fault: null, keys: ['inbound.sessions'] })
  postroad.writeConfig(FILE.replace('sessions', 'sesions'))
  t.match(await pending(), { fault: /did you mean inbound\.sessions/, keys: [] })
})

t.test('config show prints the configuration of a remote appliance', async t => {
  const postroad = await openTestAppliance(t, { toml: FILE })
  const remote = ['--server', postroad.baseUrl, '--token', await tokenWith(postroad, 'viewer')]
  const here = await postroad.run('config', 'show')
  t.match(here, { status: 0, out: /sessions = 40/ })
  t.same((await postroad.run('config', 'show', ...remote)).out, here.out)
  t.match(await postroad.run('config', 'show', '--server', postroad.baseUrl, '--token', 'pa_wrong'), {
    status: 1,
    out: '',
  })
})
