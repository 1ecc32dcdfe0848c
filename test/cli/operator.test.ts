/** `postroad operator` and the first owner of `postroad init`, with and without a running server and against a remote one. */
import t from 'tap'
import { openBrowser, signedIn } from '../support/program/operators.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { initialise, install } from '../support/program/process.js'

interface Operator {
  readonly id: string
  readonly email: string
  readonly link_token: string
}

t.test('init prints a one-time link for the first owner, once', async t => {
  const postroad = install(t)
  const first = await postroad.run('init', '--without-key', '--operator', 'Ann@Example.com')
  t.match(first, { status: 0, out: /\/console\/#\/link\/[\w-]{43}\n/ })
  t.match(first.out, 'Sign in as ann@example.com once with:')
  const again = await postroad.run('init', '--operator', 'bob@example.com')
  t.match(again, { status: 0, out: /There is an operator already: ann@example\.com/ })
  t.notMatch(again.out, '/link/')
  t.match(await postroad.json('operator', 'list'), [
    { email: 'ann@example.com', roles: [{ workspace_id: null, role: 'owner' }] },
  ])
  t.match(await install(t).run('init', '--operator', 'nobody'), { status: 1, err: /not an email address/ })
})

t.test('init prints another link while nobody has signed in, and the first no longer works', async t => {
  const postroad = await openTestAppliance(t)
  const init = () => postroad.json<{ link_token: string | null }>('init', '--operator', 'Ann@example.com')
  const signIn = (token: string | null) => openBrowser(postroad).ask('POST', '/session/link', { token })
  const lost = await init()
  const { link_token: link } = await init()
  t.notOk(lost.link_token === link)
  t.match(await signIn(lost.link_token), { status: 401 })
  t.match(await signIn(link), { status: 200 })
  t.match(await init(), { link_token: null }, 'an account in use keeps what it signs in with')
})

t.test('init says where links to the console come from, until there is an account', async t => {
  const postroad = install(t)
  t.match((await postroad.run('init')).out, 'postroad init --operator you@example.com')
  await postroad.json('init', '--operator', 'ann@example.com')
  t.notMatch((await postroad.run('init')).out, '--operator')
})

t.test('operators are managed without a server', async t => {
  const postroad = await initialise(t)
  const owner = await postroad.run('operator', 'add', 'ann@example.com', '--role', 'owner')
  t.match(owner, { status: 0, out: /POST \/api\/admin\/v1\/session\/link/ })
  t.match(await postroad.run('operator', 'add', 'ann@example.com', '--role', 'owner'), {
    status: 1,
    err: /there is an operator ann@example\.com already/,
  })
  t.match(await postroad.run('operator', 'add', 'bob@example.com'), { status: 2, err: /--role is missing/ })
  t.match(await postroad.run('operator', 'add', 'b@example.com', '--role', 'king'), { status: 2 })
  const bob = ['bob@example.com', '--role', 'viewer', '--workspace', postroad.workspaceId, '--name', 'Bob']
  await postroad.json('operator', 'add', ...bob)
  t.match(await postroad.run('operator', 'set', 'bob@example.com', '--role', 'operator'), {
    status: 0,
    out: /^bob@example\.com {2}operator of all, viewer of [0-9a-f-]{36}\nThe address was not proved, so .* removed\.\nSend a new link: postroad operator reset bob@example\.com --invite\n$/,
  })
  t.match(await postroad.run('operator', 'set', 'bob@example.com', '--remove-role'), {
    status: 0,
    out: /^bob@example\.com {2}viewer of [0-9a-f-]{36}\n$/,
  })
  t.match(await postroad.run('operator', 'set', 'bob@example.com'), { status: 2, err: /nothing to change/ })
  const { out } = await postroad.run('operator', 'list')
  t.match(out, /^EMAIL +NAME +ROLES/)
  t.match(out, /bob@example\.com +Bob +viewer of/)
  t.match(await postroad.run('operator', 'remove', 'bob@example.com'), { status: 2, err: /--yes/ })
  t.match(await postroad.run('operator', 'remove', 'bob@example.com', '--yes'), {
    status: 0,
    out: 'removed\n',
  })
  t.match(await postroad.run('operator', 'remove', 'ann@example.com', '--yes'), {
    status: 1,
    err: /last owner of all workspaces/,
  })
  t.match(await postroad.json('operator', 'reset', 'ann@example.com', '--yes'), { link_token: String })
  t.match(await postroad.run('operator', 'reset', 'eve@example.com', '--yes'), {
    status: 1,
    err: /no operator eve@example\.com/,
  })
})

t.test('a token of the shell works on the appliance from afar, until it is revoked', async t => {
  const appliance = await openTestAppliance(t)
  const { link_token: link } = await appliance.json<Operator>(
    'operator',
    'add',
    'ann@x.test',
    '--role',
    'owner',
  )
  const ann = openBrowser(appliance)
  t.equal((await ann.ask('POST', '/session/link', { token: link })).status, 200)

  t.match(await appliance.run('operator', 'token', 'create', '--name', 'ansible'), {
    status: 2,
    err: /--operator is missing/,
  })
  const made = await appliance.run(
    'operator',
    'token',
    'create',
    '--name',
    'ansible',
    '--operator',
    'ann@x.test',
  )
  t.match(made, { status: 0, out: /^pa_[0-9A-Za-z]{40}\n$/, err: /^id / })
  const remote = ['--server', appliance.baseUrl, '--token', made.out.trim()]
  t.match(await appliance.json('operator', 'list', ...remote), [{ email: 'ann@x.test' }])
  t.match(
    await appliance.run('operator', 'token', 'create', '--name', 'own', '--role', 'viewer', ...remote),
    {
      status: 0,
      out: /^pa_/,
    },
  )
  const tokens = await appliance.json<{ id: string; name: string }[]>('operator', 'token', 'list', ...remote)
  t.same(tokens.map(({ name }) => name).sort(), ['ansible', 'own'])
  const { id } = tokens.find(({ name }) => name === 'ansible') ?? { id: '' }
  const whose = ['--operator', 'ann@x.test']
  t.match(await appliance.run('operator', 'token', 'revoke', id, ...whose), { status: 0, out: 'revoked\n' })
  t.match(await appliance.run('operator', 'list', ...remote), {
    status: 1,
    err: /unknown, revoked or expired/,
  })
})

t.test('the shell alone makes tokens for others', async t => {
  const appliance = await openTestAppliance(t)
  const [ann, bob] = [await signedIn(appliance), await signedIn(appliance, { role: 'viewer' })]
  t.match(await ann.ask('POST', `/operators/${bob.id}/tokens`, { name: 'x' }), { status: 403 })
})
