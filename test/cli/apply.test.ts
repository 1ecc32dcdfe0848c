/** `postroad apply`: a file describes workspaces; what differs is planned, applied once, and then there is nothing to do. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { tokenWith } from '../support/program/operators.js'
import { initialise, type Initialised } from '../support/program/process.js'

const SHOP = `
[[workspaces]]
name = "Shop"
timezone = "Europe/Berlin"
hourly_limit = 5000
brand_color = "#1D5FA8"

  [[workspaces.domains]]
  domain = "Shop.example"
  vouched = true

  [[workspaces.tags]]
  name = "vip"
  color = "#3366cc"

  [[workspaces.lists]]
  name = "News"
  public = true

  [[workspaces.lists]]
  name = "VIP"
  type = "dynamic"
  conditions = { match = "all", rules = [{ field = "tags", operator = "contains", value = "vip" }] }

  [[workspaces.templates]]
  name = "Welcome"
  html_file = "welcome.html"

  [[workspaces.webhooks]]
  url = "https://203.0.113.7/hook"
  events = ["email.delivered", "email.bounced"]

  [[workspaces.forms]]
  name = "Newsletter"
  lists = ["News"]
  fields = [{ name = "first_name", label = "First name" }]
  redirect_url = "https://shop.example"
`

interface Planned {
  readonly action: string
  readonly resource: string
  readonly name: string
  readonly changes: Readonly<Record<string, unknown>>
}

function describe(postroad: Initialised, text: string, name = 'state.toml'): string {
  const file = join(postroad.dataDir, '..', name)
  writeFileSync(join(postroad.dataDir, '..', 'welcome.html'), '<p>Welcome, {{firstName|friend}}</p>')
  writeFileSync(file, text)
  return file
}

async function applied(postroad: Initialised, file: string, ...options: string[]): Promise<Planned[]> {
  return (await postroad.json<{ changes: Planned[] }>('apply', file, ...options)).changes
}

const namesOf = (changes: readonly Planned[]) =>
  changes.map(one => `${one.action} ${one.resource} ${one.name}`)

t.test('a file is applied once, and the second time there is nothing to do', async t => {
  const postroad = await initialise(t)
  const file = describe(postroad, SHOP)
  const planned = await postroad.run('apply', file, '--plan', '--exit-code')
  t.match(planned, { status: 3, out: /\+ workspace Shop[^]*\+ list News \(workspace Shop\)[^]*9 to create/ })
  t.equal((await postroad.json<unknown[]>('workspace', 'list')).length, 1, 'a plan changes nothing')
  t.match(await postroad.run('apply', file), { status: 2, err: /--yes/ }, 'nothing without a confirmation')
  t.same(namesOf(await applied(postroad, file, '--yes')), [
    'create workspace Shop',
    'create domain shop.example',
    'create tag vip',
    'create list News',
    'create list VIP',
    'create template Welcome',
    'create webhook https://203.0.113.7/hook email.delivered',
    'create webhook https://203.0.113.7/hook email.bounced',
    'create form Newsletter',
  ])
  t.same(await applied(postroad, file, '--yes'), [])
  t.match(await postroad.run('apply', file, '--plan', '--exit-code'), { status: 0, out: 'nothing to do\n' })
  t.match(await postroad.json('workspace', 'show', 'shop'), {
    timezone: 'Europe/Berlin',
    hourly_limit: 5_000,
  })
  t.match(await postroad.json('lists', 'list', '--workspace', 'Shop'), [{ name: 'VIP' }, { name: 'News' }])
})

t.test(
  'a file that spells things otherwise than they are stored has nothing to do the second time',
  async t => {
    const postroad = await initialise(t)
    const text = `
[[workspaces]]
name = "Shop"
brand_color = "#1D5FA8"

  [[workspaces.tags]]
  name = " vip "
  color = "#3366CC"
  description = "  Spends most "

  [[workspaces.lists]]
  name = "News "
  description = " "

  [[workspaces.webhooks]]
  url = "https://203.0.113.7"
  events = ["email.delivered", "email.delivered"]

  [[workspaces.forms]]
  name = " Newsletter"
  title = " Join us "
  lists = ["News ", "News"]
  fields = [{ name = "attributes.city", label = " City " }]

[[operators]]
email = "Ann@Example.com"
roles = [{ role = "owner" }]

[[operators]]
email = "bob@example.com"
roles = [{ role = "viewer", workspace = "SHOP" }]
`
    t.equal((await applied(postroad, describe(postroad, text), '--yes')).length, 7)
    t.same(await applied(postroad, describe(postroad, text), '--yes'), [])
    t.match(await postroad.json('tags', 'list', '--workspace', 'Shop'), [{ name: 'vip', color: '#3366cc' }])
  },
)

t.test('declared attributes are created, changed and pruned', async t => {
  const postroad = await initialise(t)
  const shop = (attributes: string, prune = '') =>
    describe(postroad, `[[workspaces]]\nname = "Shop"\n${prune}\n${attributes}`)
  const text = `
  [[workspaces.attributes]]
  name = " revenue "
  type = "number"
  label = " Revenue "

  [[workspaces.attributes]]
  name = "Revenue"
  type = "text"

  [[workspaces.lists]]
  name = "Buyers"
  type = "dynamic"
  conditions = { match = "all", rules = [{ field = "attributes.revenue", operator = "gt", value = 5 }] }
`
  t.same(namesOf(await applied(postroad, shop(text), '--yes')), [
    'create workspace Shop',
    'create attribute revenue',
    'create attribute Revenue',
    'create list Buyers',
  ])
  t.same(await applied(postroad, shop(text), '--yes'), [])
  const changed = text.replace('"text"', '"date"').replace('" Revenue "', '""')
  t.match(await applied(postroad, shop(changed), '--yes'), [
    { action: 'change', name: 'revenue', changes: { label: { before: 'Revenue', after: null } } },
    { action: 'change', name: 'Revenue', changes: { type: { before: 'text', after: 'date' } } },
  ])
  t.same(namesOf(await applied(postroad, shop('', 'prune = ["attributes"]'), '--yes')), [
    'delete attribute Revenue',
    'delete attribute revenue',
  ])
  t.match(await postroad.run('apply', shop(text.replace('"text"', '"money"')), '--plan'), {
    status: 2,
    err: /workspaces\.0\.attributes\.1\.type/,
  })
  t.match(await postroad.run('apply', shop(text.replace('"Revenue"', '"revenue"')), '--plan'), {
    status: 2,
    err: /workspaces\.0\.attributes\.1: revenue is described twice/,
  })
})

t.test('only what differs is changed, and nothing is deleted without prune', async t => {
  const postroad = await initialise(t)
  await applied(postroad, describe(postroad, SHOP), '--yes')
  const changed = SHOP.replace('hourly_limit = 5000', 'hourly_limit = 100')
    .replace('public = true', 'description = "Monthly"')
    .replace(', "email.bounced"', '')
    .replace('color = "#3366cc"', 'color = ""')
  const plan = await applied(postroad, describe(postroad, changed), '--plan')
  t.match(plan, [
    { action: 'change', resource: 'workspace', changes: { hourly_limit: { before: 5_000, after: 100 } } },
    {
      action: 'change',
      resource: 'tag',
      name: 'vip',
      changes: { color: { before: '#3366cc', after: null } },
    },
    {
      action: 'change',
      resource: 'list',
      name: 'News',
      changes: { description: { before: null, after: 'Monthly' } },
    },
  ])
  t.equal(plan.length, 3)
  const pruned = changed.replace('name = "Shop"', 'name = "Shop"\nprune = ["webhooks", "lists", "forms"]')
  const withoutForm = pruned
    .slice(0, pruned.indexOf('[[workspaces.forms]]'))
    .replace(/\[\[workspaces.lists\]\]\n {2}name = "News"\n.*\n/, '')
  t.same(namesOf(await applied(postroad, describe(postroad, withoutForm), '--yes')), [
    'change workspace Shop',
    'change tag vip',
    'delete form Newsletter',
    'delete webhook https://203.0.113.7/hook email.bounced',
    'delete list News',
  ])
  t.same(await applied(postroad, describe(postroad, withoutForm), '--yes'), [])
  t.match(await postroad.json('lists', 'list', '--workspace', 'Shop'), [{ name: 'VIP' }])
  t.same(
    await applied(
      postroad,
      describe(postroad, 'prune = ["workspaces"]\n[[workspaces]]\nname = "Shop"'),
      '--yes',
    ),
    [
      {
        action: 'delete',
        resource: 'workspace',
        workspace: null,
        name: 'default',
        changes: {},
        applied: true,
      },
    ],
  )
})

t.test('a domain that waits for its records can be vouched for later', async t => {
  const postroad = await initialise(t)
  const waiting = SHOP.replace('vouched = true', '')
  await applied(postroad, describe(postroad, waiting), '--yes')
  t.match(await applied(postroad, describe(postroad, SHOP), '--yes'), [
    { action: 'change', resource: 'domain', name: 'shop.example', applied: true },
  ])
  t.match(await postroad.json('domain', 'show', 'shop.example', '--workspace', 'Shop'), { vouched: true })
  t.same(await applied(postroad, describe(postroad, SHOP), '--yes'), [])
})

t.test('what cannot be reached is refused before anything is changed', async t => {
  const postroad = await initialise(t)
  await applied(postroad, describe(postroad, SHOP), '--yes')
  const other = SHOP.replace('hourly_limit = 5000', 'hourly_limit = 1').replace(
    'vouched = true',
    'vouched = false',
  )
  t.match(await postroad.run('apply', describe(postroad, other), '--yes'), {
    status: 1,
    err: /vouched of the domain shop\.example.*cannot be changed/,
  })
  const noList = other.replace('vouched = false', '').replace('lists = ["News"]', 'lists = ["Nws"]')
  t.match(await postroad.run('apply', describe(postroad, noList), '--yes'), {
    status: 1,
    err: /no list Nws.*form Newsletter/,
  })
  t.match(await postroad.json('workspace', 'show', 'Shop'), { hourly_limit: 5_000 })
})

t.test('a change that fails names itself, and applying again makes the rest', async t => {
  const postroad = await initialise(t)
  const wrong = SHOP.replace('html_file = "welcome.html"', 'html = "{{#if"')
  t.match(await postroad.run('apply', describe(postroad, wrong), '--yes'), {
    status: 1,
    err: /template Welcome \(workspace Shop\): .*line 1.*5 of 9 changes were made/s,
  })
  t.same(namesOf(await applied(postroad, describe(postroad, SHOP), '--yes')), [
    'create template Welcome',
    'create webhook https://203.0.113.7/hook email.delivered',
    'create webhook https://203.0.113.7/hook email.bounced',
    'create form Newsletter',
  ])
})

t.test('html_file leads nowhere outside the folder of the file', async t => {
  const postroad = await initialise(t)
  const folder = join(postroad.dataDir, '..', 'described')
  mkdirSync(join(folder, 'templates'), { recursive: true })
  writeFileSync(join(folder, 'templates', 'in.html'), '<p>In</p>')
  writeFileSync(join(folder, '..', 'secret'), '<p>secret</p>')
  symlinkSync(join(folder, '..', 'secret'), join(folder, 'link.html'))
  symlinkSync('templates/in.html', join(folder, 'inner.html'))
  const file = join(folder, 'state.toml')
  const apply = (name: string) => {
    writeFileSync(file, SHOP.replace('welcome.html', name))
    return postroad.run('apply', file, '--plan')
  }
  for (const name of [
    '../secret',
    join(folder, '..', 'secret'),
    '/etc/passwd',
    'link.html',
    'templates/../../secret',
  ])
    t.match(
      await apply(name),
      { status: 2, err: /line 27: workspaces\.0\.templates\.0\.html_file: .* is outside/ },
      name,
    )
  for (const name of ['templates/in.html', 'inner.html', join(folder, 'templates', 'in.html')])
    t.match(await apply(name), { status: 0 }, name)
})

t.test('a mistake in the file is named with its line, and the key that was meant', async t => {
  const postroad = await initialise(t)
  for (const [text, err] of [
    [
      SHOP.replace('hourly_limit', 'hourly_limt'),
      /line 5: workspaces\.0\.hourly_limt: unknown key, did you mean hourly_limit/,
    ],
    [
      SHOP.replace('public = true', 'public = "yes"'),
      /line 18: workspaces\.0\.lists\.0\.public: must be a boolean/,
    ],
    [SHOP.replace('"VIP"', '"news"'), /line 20: workspaces\.0\.lists\.1: news is described twice/],
    [
      SHOP.replace('welcome.html', 'none.html'),
      /line 27: workspaces\.0\.templates\.0\.html_file: cannot be read/,
    ],
    [
      SHOP.replace('email.bounced', 'email.bounce'),
      /line 31: workspaces\.0\.webhooks\.0\.events\.1: must be one of/,
    ],
    ['[[workspaces]\n', /line 1, column/],
  ] as const)
    t.match(await postroad.run('apply', describe(postroad, text), '--plan'), { status: 2, err }, String(err))
  t.match(await postroad.run('apply', describe(postroad, '{"workspace": []}', 'state.json'), '--plan'), {
    status: 2,
    err: /workspace: unknown key, did you mean workspaces/,
  })
})

t.test('what others use is pruned only with --force, and a refused plan names what to do', async t => {
  const postroad = await initialise(t)
  await applied(postroad, describe(postroad, SHOP), '--yes')
  const tag = SHOP.slice(SHOP.indexOf('  [[workspaces.tags]]'), SHOP.indexOf('  [[workspaces.lists]]'))
  const file = describe(postroad, SHOP.replace(tag, '').replace('"Shop"', '"Shop"\nprune = ["tags"]'))
  t.match(await postroad.run('apply', file, '--yes'), {
    status: 1,
    err: /tag "vip" is used by dynamic list "VIP" [^]*or delete it anyway with --force/,
  })
  t.same(namesOf(await applied(postroad, file, '--yes', '--force')), ['delete tag vip'])
  const elsewhere = describe(postroad, SHOP.replace('Europe/Berlin', 'Europe/Brlin'))
  t.match(await postroad.run('apply', elsewhere, '--plan'), {
    status: 2,
    err: /workspaces\.0\.timezone: Europe\/Brlin is not an IANA time zone name/,
  })
})

t.test('operators get exactly the described roles; the one who applies is never pruned', async t => {
  const postroad = await initialise(t)
  const text = `
[[workspaces]]
name = "Shop"

[[operators]]
email = "Ann@example.com"
name = "Ann"
roles = [{ role = "owner" }]

[[operators]]
email = "bob@example.com"
roles = [{ role = "viewer" }, { role = "marketer", workspace = "Shop" }]
`
  t.same(namesOf(await applied(postroad, describe(postroad, text), '--yes')), [
    'create workspace Shop',
    'create operator Ann@example.com',
    'create operator bob@example.com',
  ])
  t.same(await applied(postroad, describe(postroad, text), '--yes'), [])
  const changed = text.replace('{ role = "viewer" }, ', '').replace('name = "Ann"', 'name = "Ann B."')
  t.match(await applied(postroad, describe(postroad, changed), '--yes'), [
    { name: 'Ann@example.com', changes: { name: { before: 'Ann', after: 'Ann B.' } } },
    {
      name: 'bob@example.com',
      changes: { roles: { before: 'marketer in Shop, viewer in all workspaces', after: 'marketer in Shop' } },
    },
  ])
  t.same(await applied(postroad, describe(postroad, changed), '--yes'), [])
  const unknown = changed.replace('workspace = "Shop"', 'workspace = "Shp"')
  t.match(await postroad.run('apply', describe(postroad, unknown), '--plan'), {
    status: 1,
    err: /no workspace Shp.*bob@example\.com/,
  })
  const onlyBob = `prune = ["operators"]\n[[operators]]\nemail = "bob@example.com"`
  t.match(
    await postroad.run('apply', describe(postroad, onlyBob), '--yes'),
    { status: 1, err: /Ann@example\.com|ann@example\.com.*last owner/s },
    'the last owner stays',
  )
  const onlyAnn = `prune = ["operators"]\n[[operators]]\nemail = "ann@example.com"`
  t.same(namesOf(await applied(postroad, describe(postroad, onlyAnn), '--yes')), [
    'delete operator bob@example.com',
  ])
})

t.test('a file is applied to a remote appliance', async t => {
  const postroad = await initialise(t)
  const server = await postroad.serve()
  const token = await tokenWith(postroad, 'owner')
  const remote = ['--server', server.baseUrl, '--token', token]
  t.equal((await applied(postroad, describe(postroad, SHOP), '--yes', ...remote)).length, 9)
  t.same(await applied(postroad, describe(postroad, SHOP), '--yes', ...remote), [])
  const viewer = await tokenWith(postroad, 'viewer')
  const changed = describe(postroad, SHOP.replace('hourly_limit = 5000', 'hourly_limit = 1'))
  t.match(await postroad.run('apply', changed, '--yes', '--server', server.baseUrl, '--token', viewer), {
    status: 1,
    err: /workspace Shop: your role lacks the permission workspace:write; 0 of 1 changes were made/,
  })
  const alone = `prune = ["operators"]\n[[operators]]\nemail = "other@example.com"\nroles = [{ role = "owner" }]`
  t.match(await postroad.run('apply', describe(postroad, alone), '--yes', ...remote), {
    status: 1,
    err: /who runs this/,
  })
})

/** A proxy whose first answers are 429. @param retryAfter seconds */
async function limitingProxy(t: Test, target: string, refused: number, retryAfter: number) {
  const seen: string[] = []
  const proxy = createServer((request, response) => {
    seen.push(`${request.method ?? ''} ${request.url ?? ''}`)
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (seen.length <= refused) {
        response.writeHead(429, { 'Retry-After': String(retryAfter), 'Content-Type': 'application/json' })
        response.end(JSON.stringify({ error: { code: 'rate_limited', message: 'too many requests' } }))
        return
      }
      const body = Buffer.concat(chunks)
      void fetch(target + (request.url ?? ''), {
        method: request.method ?? 'GET',
        headers: {
          authorization: request.headers.authorization ?? '',
          ...(body.length > 0 ? { 'content-type': 'application/json' } : {}),
          ...(request.headers['x-workspace']
            ? { 'x-workspace': String(request.headers['x-workspace']) }
            : {}),
        },
        ...(body.length > 0 ? { body } : {}),
      }).then(async answer => {
        response.writeHead(answer.status, { 'Content-Type': 'application/json' })
        response.end(await answer.text())
      })
    })
  })
  await new Promise<void>(resolve => {
    proxy.listen(0, '127.0.0.1', resolve)
  })
  t.teardown(() => proxy.close())
  return { url: `http://127.0.0.1:${(proxy.address() as { port: number }).port}`, seen }
}

t.test('a rate limit is waited for as the server asks, within bounds', async t => {
  const postroad = await initialise(t)
  const server = await postroad.serve()
  const token = await tokenWith(postroad, 'owner')
  const file = describe(postroad, '[[workspaces]]\nname = "Shop"\n\n  [[workspaces.tags]]\n  name = "vip"\n')
  const apply = (url: string) =>
    postroad.run('apply', file, '--yes', '--json', '--server', url, '--token', token)

  const hourly = await limitingProxy(t, server.baseUrl, Infinity, 3_600)
  t.match(await apply(hourly.url), { status: 1, err: /too many requests/ })
  t.equal(hourly.seen.length, 1, 'a long wait is left to the user')

  const endless = await limitingProxy(t, server.baseUrl, Infinity, 0)
  t.match(await apply(endless.url), { status: 1, err: /too many requests/ })
  t.equal(endless.seen.length, 6)

  const busy = await limitingProxy(t, server.baseUrl, 2, 1)
  const done = await apply(busy.url)
  t.match(done, { status: 0, err: /trying again in 1 s/ })
  t.same(namesOf((JSON.parse(done.out) as { changes: Planned[] }).changes), [
    'create workspace Shop',
    'create tag vip',
  ])
  t.equal(busy.seen[0], busy.seen[2], 'the same request')
})
