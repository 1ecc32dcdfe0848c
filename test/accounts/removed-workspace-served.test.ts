/** What still works of a workspace that was removed and can be restored: that people unsubscribe, and nothing else. */
import t from 'tap'
import { makeSubscriberToken } from '../../src/mail/links/subscriber-link.js'
import { visit, type Visiting } from '../support/api/pages.js'
import { picture } from '../support/content/images.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { linkKeysOf } from '../support/program/links.js'
import { longAfter, until } from '../support/until.js'
import { openReceiver } from '../webhooks/receiver.js'

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const MESSAGE = '0192f000-0000-7000-8000-00000000abcd'
const ONE_CLICK = { form: { 'List-Unsubscribe': 'One-Click' } }

t.test('a removed workspace shows nothing and calls nobody, and hears who unsubscribes', async t => {
  const receiver = await openReceiver(t)
  const postroad = await openTestAppliance(t, {
    env: { POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8' },
  })
  const { workspaceId, baseUrl, sql } = postroad
  const json = (...args: string[]) => postroad.json(...args)
  await json('workspace', 'set', workspaceId, 'allow_private_webhooks=true', 'company_name=Corner Shop')
  const key = await postroad.makeKey()
  const post = async (path: string, body: object) =>
    (await postroad.post(`/api/v1${path}`, body, { key })).body.data
  const see = (path: string, visiting?: Visiting) => visit(baseUrl + path, visiting)
  const keys = await linkKeysOf(postroad)
  const link = (purpose: 'unsubscribe' | 'preferences', recipient: string) =>
    `/${purpose === 'unsubscribe' ? 'u' : 'p'}/${makeSubscriberToken(keys, purpose, { workspaceId, messageId: MESSAGE, recipient })}`
  const unsubscribed = () =>
    sql<{ email: string }>("select email from suppressions where reason = 'unsubscribe' order by email").map(
      ({ email }) => email,
    )

  await post('/webhooks/triggers', { targetUrl: `${receiver.url}/hook`, event: 'contact.created' })
  await post('/webhooks/triggers', { targetUrl: `${receiver.url}/hook`, event: 'email.clicked' })
  await post('/lists', { name: 'Secret offers', public: true })
  const upload = await fetch(`${baseUrl}/api/v1/media`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'image/png' },
    body: new Uint8Array(await picture('png', 8, 8)),
  })
  const image = new URL(((await upload.json()) as { data: { url: string } }).data.url).pathname
  const { body } = await postroad.send(key, {
    to: 'ann@one.test',
    from_email: 'me@sender.test',
    subject: 'Hello',
    html: '<p>Hi, <a href="https://shop.example/">shop</a> <a href="{{view_url}}">browser</a></p>',
  })
  const id = String(body.data.results[0].message_id)
  await postroad.messageOnce(key, id, 'delivered')
  const raw = String((await postroad.get(`/capture/${id}`)).body.data.raw)
  const [view = ''] = /\/v\/[\w-]+/.exec(raw.replace(/=\r\n/g, '')) ?? []
  for (const path of [image, view]) t.equal((await see(path)).status, 200, path)
  await post('/contacts', { email: 'ann@one.test' })
  await receiver.has(1)
  // One more is being retried when the workspace goes.
  receiver.answers({ status: 500 })
  await post('/contacts', { email: 'bob@one.test' })
  await receiver.has(2)

  await json('workspace', 'remove', workspaceId, '--yes')
  receiver.answers({ status: 200 })
  for (const path of [image, view]) t.equal((await see(path)).status, 404, path)
  t.match(await see(link('unsubscribe', 'ann@one.test')), { status: 200, text: /Corner Shop/ })
  t.match(await see(link('unsubscribe', 'ann@one.test'), ONE_CLICK), { status: 200 })
  t.match(await see(link('unsubscribe', 'bob@one.test'), { form: { by_page: '1' } }), { status: 200 })
  const preferences = await see(link('preferences', 'cid@one.test'))
  t.equal(preferences.status, 200)
  t.notMatch(preferences.text, 'Secret offers', 'what it wrote is not shown')
  t.match(await see(link('preferences', 'cid@one.test'), { form: { do: 'unsubscribe' } }), { status: 200 })
  t.same(unsubscribed(), ['ann@one.test', 'bob@one.test', 'cid@one.test'])
  await longAfter(postroad.clock, 2 * MINUTE_MS)
  t.equal(receiver.received.length, 2, 'nothing was called since')

  await json('workspace', 'restore', workspaceId)
  await postroad.clock.advance(2_000)
  await receiver.has(3)
  t.match(receiver.received[2]?.json, { event: 'contact.created', data: { email: 'bob@one.test' } })
  await post('/contacts', { email: 'dan@one.test' })
  await receiver.has(4)
  t.same(unsubscribed(), ['ann@one.test', 'bob@one.test', 'cid@one.test'])
  for (const path of [image, view]) t.equal((await see(path)).status, 200, path)

  await json('workspace', 'remove', workspaceId, '--yes')
  sql(`update workspaces set deleted_at = deleted_at - ${31 * DAY_MS}`)
  t.match(await see(link('unsubscribe', 'eve@one.test'), ONE_CLICK), { status: 404 }, 'it cannot come back')
})

t.test('who leaves a removed sandbox is counted as leaving a sandbox', async t => {
  const postroad = await openTestAppliance(t)
  const { workspaceId } = postroad
  const [sandbox] = postroad.sql<{ id: string }>(
    `select id from sandboxes where workspace_id = '${workspaceId}'`,
  )
  await postroad.json('workspace', 'remove', workspaceId, '--yes')
  const token = makeSubscriberToken(await linkKeysOf(postroad), 'unsubscribe', {
    workspaceId: sandbox?.id ?? '',
    messageId: MESSAGE,
    recipient: 'ann@one.test',
  })
  t.equal((await visit(`${postroad.baseUrl}/u/${token}`, ONE_CLICK)).status, 200)
  const kinds = postroad.sql<{ kind: string; is_sandbox: number }>(
    "select kind, is_sandbox from events where kind = 'email.unsubscribed'",
  )
  t.match(kinds, [{ is_sandbox: 1 }])
  t.equal(postroad.rowCounts()['suppressions'], 0)
})

t.test('revoking a key says what is scheduled with it, and cancels it when told to', async t => {
  const postroad = await openTestAppliance(t)
  const { workspaceId } = postroad
  const made = async (name: string) =>
    postroad.json<{ id: string; key: string }>('key', 'create', '--workspace', workspaceId, '--name', name)
  const [one, other] = [await made('one'), await made('other')]
  const sendAt = new Date(postroad.clock.now() + 5 * MINUTE_MS).toISOString()
  const mail = { from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.', send_at: sendAt }
  const ids: string[] = []
  for (const { key } of [one, other])
    for (const to of ['ann@one.test', ['bob@one.test', 'cid@one.test']])
      ids.push(String((await postroad.send(key, { ...mail, to })).body.data.message_id))
  const statuses = () =>
    postroad
      .sql<{ status: string }>('select status from messages order by id')
      .map(({ status }) => status)
      .join(' ')
  t.equal(statuses(), 'scheduled scheduled scheduled scheduled scheduled scheduled')

  const told = await postroad.run('key', 'revoke', one.id)
  t.equal(told.status, 0)
  t.match(
    told.out,
    /revoked\n3 mails scheduled with it will still be sent; cancel with: .*--cancel-scheduled/,
  )
  t.equal(statuses(), 'scheduled scheduled scheduled scheduled scheduled scheduled')
  t.equal((await postroad.run('key', 'revoke', one.id)).status, 1, 'it is revoked already')
  t.match(await postroad.json('key', 'revoke', one.id, '--cancel-scheduled'), {
    success: true,
    scheduled: 0,
    cancelled: 3,
  })
  t.match(
    (await postroad.get(`/api/v1/email/${ids[3] ?? ''}`, { key: other.key })).body.data.status,
    'scheduled',
    "another key's mail waits on",
  )
  await longAfter(postroad.clock, 6 * MINUTE_MS)
  await until(
    'the others',
    () => statuses() === 'cancelled cancelled cancelled delivered delivered delivered' || undefined,
  )
  t.match(
    postroad.sql("select sum(accepted) as accepted from sending_usage where window_kind = 'day'"),
    [{ accepted: 3 }],
    'cancelled mail is returned to the limits',
  )
})
