/** `postroad contacts`, `lists`, `segments` and `tags`: with the server running, and without. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'
import { initialise } from '../support/program/process.js'

t.test('contacts are imported and exported without a running server', async t => {
  const postroad = await initialise(t)
  const own = ['--workspace', postroad.workspaceId]
  const file = (name: string) => join(postroad.dataDir, name)
  const list = await postroad.json<{ id: string }>('lists', 'create', 'News', ...own)
  writeFileSync(file('people.csv'), 'Mail,Vorname,Plan,Notes\nann@x.example,Ann,pro,secret\nwrong,,,\n')
  const options = ['--list', list.id, '--tags', 'vip', '--map', 'Notes=', '--rejected', file('rejected.csv')]
  const { status, out } = await postroad.run('contacts', 'import', file('people.csv'), ...options, ...own)
  t.equal(status, 1, 'a row was rejected')
  t.equal(out, '1 created, 0 updated, 0 unchanged, 1 rejected\nline 3: the address has no @ (wrong)\n')
  t.match(readFileSync(file('rejected.csv'), 'utf8'), /^Mail,.*\nwrong,,,,3,the address has no @\n$/)
  t.match(await postroad.json('contacts', 'show', 'ann@x.example', ...own), {
    attributes: { plan: undefined, Plan: 'pro' },
    lists: [{ name: 'News' }],
    tags: [{ name: 'vip' }],
  })
  t.match(await postroad.json('contacts', 'export', file('out.csv'), ...own), { file: file('out.csv') })
  const exported = await postroad.run('contacts', 'export', '--list', list.id, ...own)
  t.equal(exported.out, readFileSync(file('out.csv'), 'utf8'))
  t.match(await postroad.json('contacts', 'export', ...own), [
    {
      email: 'ann@x.example',
      attributes: { Plan: 'pro' },
      lists: [{ name: 'News' }],
      tags: [{ name: 'vip' }],
    },
  ])
  t.same(await postroad.json('contacts', 'export', '--search', 'nobody', ...own), [])
  t.match(await postroad.json('contacts', 'import', file('out.csv'), ...own), { unchanged: 1, rejected: 0 })
})

t.test('contacts, lists, segments and tags are shown and changed beside the running server', async t => {
  const postroad = await openTestAppliance(t)
  const own = ['--workspace', postroad.workspaceId]
  const json = (...args: string[]) => postroad.json<{ id: string }>(...args, ...own)
  const ann = await json('contacts', 'add', 'ann@x.example', '--first-name', 'Ann', '--attribute', 'plan=pro')
  await json('contacts', 'add', 'bob@x.example', '--unsubscribed')
  t.match(await json('contacts', 'list', '--search', 'ANN'), [
    { email: 'ann@x.example', attributes: { plan: 'pro' } },
  ])
  const list = await json('lists', 'create', 'News')
  t.match(await json('lists', 'add', list.id, 'ann@x.example', 'bob@x.example'), { added: 2 })
  t.match(await json('lists', 'remove', list.id, ann.id), { removed: 1 })
  t.match(await json('lists', 'members', list.id), [{ email: 'bob@x.example' }])
  t.match(await json('lists', 'show', list.id), { name: 'News', member_count: 1 })
  t.match(await json('lists', 'list'), [{ name: 'News', member_count: 1 }])
  t.match(await json('tags', 'add', 'vip', 'ann@x.example'), { added: 1 })
  t.match(await json('tags', 'list'), [{ name: 'vip', contact_count: 1 }])
  t.match(await json('tags', 'remove', 'VIP', 'ann@x.example'), { removed: 1 })
  const conditions = { match: 'all', rules: [{ field: 'email', operator: 'ends_with', value: '@x.example' }] }
  const { body } = await postroad.post('/api/v1/segments', { name: 'X', conditions }, { key: postroad.key })
  t.match(await json('segments', 'list'), [{ id: body.data.id, name: 'X' }])
  t.match(await json('segments', 'estimate', body.data.id), { count: 2, mailable_count: 1 })
  t.match(await json('contacts', 'remove', 'bob@x.example', '--yes'), { success: true })
  t.equal((await postroad.run('contacts', 'show', 'bob@x.example', ...own)).status, 1)
  const typed = join(t.testdir(), 'typed.csv')
  writeFileSync(
    typed,
    'email,Spent,Born,Note\na@x.example,"1.234,50 €",3/1/24,5\nb@x.example,"7,00 €",4/5/24,x\n',
  )
  const checked = await postroad.run('contacts', 'import', typed, '--dry-run', ...own)
  t.equal(
    checked.out,
    'dry run: 2 created, 0 updated, 0 unchanged, 0 rejected\n' +
      'Spent: number, decimal comma (1.234,50 € is 1234.5)\n' +
      'Born: text, since 3/1/24 may begin with the day or the month; choose with --date-format\n',
  )
  const chosen = ['--date-format', 'MDY', '--decimal', 'comma', '--type', 'Spent=text']
  t.match(await json('contacts', 'import', typed, ...chosen), {
    columns: [{}, { type: 'text' }, { type: 'date', date_format: 'MDY' }, { type: 'text' }],
  })
  t.match(await json('contacts', 'show', 'a@x.example'), {
    attributes: { Spent: '1.234,50 €', Born: '2024-03-01' },
  })
  t.match(await postroad.run('contacts', 'import', '/nowhere/people.csv', ...own), {
    status: 1,
    err: /ENOENT/,
  })
  t.match(await postroad.run('contacts', 'import', '-', '--map', 'Mail', ...own), {
    status: 2,
    err: /column=field/,
  })
})
