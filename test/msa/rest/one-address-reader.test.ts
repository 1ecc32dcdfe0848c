/** Every way in reads addresses alike: white space around them is trimmed, control characters are refused. */
import t from 'tap'
import { openTestAppliance } from '../../support/program/appliance.js'

/** As pasted: a no-break space before; a zero-width space, a byte order mark and a line end after. */
const pasted = (address: string): string => `\u00a0${address}\u200b\ufeff\n`
const mail = { subject: 'Hello', text: 'Hello.\n' }

// proves: decisions: Added after a day's work > Addresses are read by one
t.test('an address pasted with invisible white space is the same address to every endpoint', async t => {
  const postroad = await openTestAppliance(t)
  const { key, workspaceId } = postroad
  const post = (path: string, body: object) => postroad.post(`/api/v1${path}`, body, { key })
  const made = await post('/contacts', { email: pasted('Ann@one.test') })
  t.match(made, { status: 201, body: { data: { email: 'ann@one.test' } } })
  t.match(await post('/contacts', { email: 'ann@one.test' }), { status: 409 })
  const changed = await postroad.patch(
    `/api/v1/contacts/${made.body.data.id}`,
    { email: pasted('amy@one.test') },
    { key },
  )
  t.match(changed, { status: 200, body: { data: { email: 'amy@one.test' } } })

  t.match(await post('/suppressions', { email: pasted('gone@one.test') }), {
    status: 201,
    body: { data: { email: 'gone@one.test' } },
  })
  t.match(await post('/suppressions', { email: pasted('@closed.test') }), {
    status: 201,
    body: { data: { email: '@closed.test' } },
  })

  const sent = await post('/email/send', {
    ...mail,
    from_email: pasted('me@sender.test'),
    reply_to: pasted('desk@sender.test'),
    to: [pasted('Bob@one.test'), pasted('gone@one.test'), 'Eve <\u00a0eve@one.test\u200b>'],
  })
  t.match(sent, {
    status: 200,
    body: {
      data: {
        results: [
          { to: 'Bob@one.test', success: true },
          { to: 'gone@one.test', reason: 'suppressed' },
          { to: 'eve@one.test', success: true },
        ],
      },
    },
  })
  t.match(await post('/email/send', { ...mail, from_email: 'me@sender.test', to: pasted('bob@one.test') }), {
    status: 200,
  })

  await postroad.run('workspace', 'set', workspaceId, `default_from_email=${pasted('shop@sender.test')}`)
  t.match(await postroad.json('workspace', 'show', workspaceId), { default_from_email: 'shop@sender.test' })
  t.match(await post('/contacts/erase', { email: pasted('amy@one.test') }), { status: 200 })
  t.match(await postroad.get(`/api/v1/contacts/${made.body.data.id}`, { key }), { status: 404 })
})

t.test('an address with a control character is refused by every endpoint', async t => {
  const postroad = await openTestAppliance(t)
  const { key } = postroad
  const post = (path: string, body: object) => postroad.post(`/api/v1${path}`, body, { key })
  for (const bad of ['ann@one.test\0', 'an\nn@one.test', 'ann\u200b@one.test', '\x1bann@one.test']) {
    const what = JSON.stringify(bad)
    for (const [path, body] of [
      ['/contacts', { email: bad }],
      ['/suppressions', { email: bad }],
      ['/contacts/erase', { email: bad }],
      ['/email/send', { ...mail, from_email: 'me@sender.test', to: bad }],
      ['/email/send', { ...mail, from_email: bad, to: 'ann@one.test' }],
      ['/email/send', { ...mail, from_email: 'me@sender.test', reply_to: bad, to: 'ann@one.test' }],
    ] as const)
      t.match(
        await post(path, body),
        { status: 400, body: { error: { code: 'validation_error' } } },
        `${path} ${what}`,
      )
  }
})
