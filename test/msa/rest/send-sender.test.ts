/** The sender of a mail: own domain, shared address, defaults of the workspace. */
import t from 'tap'
import { simpleParser, type AddressObject } from 'mailparser'
import { openTestAppliance, type TestAppliance } from '../../support/program/appliance.js'

const good = { to: 'ann@one.test', subject: 'Hello', text: 'Hello.\n' }

/** Sends and looks at the caught mail. @returns From and Reply-To as one text each */
async function sendersOf(postroad: TestAppliance, fields: Readonly<Record<string, string>>) {
  const { status, body } = await postroad.send(postroad.key, { ...good, ...fields })
  if (status !== 200) throw new Error(JSON.stringify(body))
  const id = String(body.data.results[0].message_id)
  await postroad.messageOnce(postroad.key, id, 'delivered')
  const caught = await postroad.get(`/capture/${id}`)
  const { from, replyTo, headers } = await simpleParser(Buffer.from(String(caught.body.data.raw), 'latin1'))
  return { from: textOf(from), replyTo: textOf(replyTo), isSigned: headers.has('dkim-signature') }
}

function textOf(field: AddressObject | undefined): string | undefined {
  const [mailbox] = field?.value ?? []
  return mailbox && `${mailbox.name}|${mailbox.address ?? ''}`
}

// proves: Email > reply_to; decisions: Email > From (1) from_email's domain verified
t.test('a verified domain sends under its own name', async t => {
  const postroad = await openTestAppliance(t)
  await postroad.json('domain', 'add', 'Sender.test', '--vouch', '--workspace', postroad.workspaceId)
  const from_email = 'me@sender.TEST'
  t.same(await sendersOf(postroad, { from_email }), {
    from: '|me@sender.test',
    replyTo: undefined,
    isSigned: true,
  })
  t.same(await sendersOf(postroad, { from_email, from_name: 'Me', reply_to: 'Desk <desk@else.test>' }), {
    from: 'Me|me@sender.test',
    replyTo: 'Desk|desk@else.test',
    isSigned: true,
  })
})

// proves: What the service does > Every workspace may send from; Email > from_email
// proves: decisions: Email > From (1) from_email's domain verified
t.test('a domain that was not added sends from the shared address and is answered at its own', async t => {
  const postroad = await openTestAppliance(t)
  const from_email = 'me@else.test'
  t.same(await sendersOf(postroad, { from_email, from_name: 'Me' }), {
    from: 'Me|notify@mail.postroad.test',
    replyTo: 'Me|me@else.test',
    isSigned: true,
  })
  t.match(await sendersOf(postroad, { from_email, reply_to: 'desk@else.test' }), {
    from: '|notify@mail.postroad.test',
    replyTo: '|desk@else.test',
  })
})

// proves: decisions: Email > From (1) from_email's domain verified
t.test('a domain below a verified one is another domain', async t => {
  const postroad = await openTestAppliance(t)
  await postroad.json('domain', 'add', 'sender.test', '--vouch', '--workspace', postroad.workspaceId)
  t.match(await sendersOf(postroad, { from_email: 'me@sub.sender.test' }), {
    from: '|notify@mail.postroad.test',
  })
})

// proves: decisions: Email > From (1) from_email's domain verified
t.test('a domain that another workspace has verified is not verified here', async t => {
  const postroad = await openTestAppliance(t)
  const other = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  await postroad.json('domain', 'add', 'sender.test', '--vouch', '--workspace', other.id)
  t.match(await sendersOf(postroad, { from_email: 'me@sender.test' }), {
    from: '|notify@mail.postroad.test',
    replyTo: '|me@sender.test',
  })
})

// proves: Email > 4; Errors > domain_invalid
// answers: POST /email/send: domain_invalid
t.test('an added domain that is not verified is refused', async t => {
  const postroad = await openTestAppliance(t)
  await postroad.json('domain', 'add', 'sender.test', '--workspace', postroad.workspaceId)
  const before = postroad.rowCounts()
  t.match(await postroad.send(postroad.key, { ...good, from_email: 'me@sender.test' }), {
    status: 403,
    body: { error: { code: 'domain_invalid', path: 'from_email' } },
  })
  t.same(postroad.rowCounts(), before)
})

// proves: decisions: Email > From (1) from_email's domain verified
t.test('without a shared address a domain that was not added is refused', async t => {
  const postroad = await openTestAppliance(t, { env: { POSTROAD_MTA_SHARED_ADDRESS: '' } })
  const before = postroad.rowCounts()
  t.match(await postroad.send(postroad.key, { ...good, from_email: 'me@sender.test' }), {
    status: 403,
    body: { error: { code: 'domain_invalid', message: /sender\.test/ } },
  })
  t.same(postroad.rowCounts(), before)
})

// proves: What the service does > Every workspace may send from; Email > from_email | from_name | 2
// proves: Errors > missing_from_email
// proves: decisions: Accounts and keys > Workspace settings name default_from_email default_from_name
// answers: POST /email/send: missing_from_email
t.test("the workspace's defaults stand in for what the request leaves out", async t => {
  const postroad = await openTestAppliance(t)
  t.match(await postroad.send(postroad.key, good), {
    status: 400,
    body: { error: { code: 'missing_from_email' } },
  })
  await postroad.json('domain', 'add', 'shop.test', '--vouch', '--workspace', postroad.workspaceId)
  const defaults = ['default_from_email=shop@shop.test', 'default_from_name=The Shop']
  await postroad.json('workspace', 'set', postroad.workspaceId, ...defaults)
  t.match(await sendersOf(postroad, {}), { from: 'The Shop|shop@shop.test' })
  t.match(await sendersOf(postroad, { from_name: 'Ann' }), { from: 'Ann|shop@shop.test' })
  t.match(await sendersOf(postroad, { from_email: 'me@shop.test' }), { from: 'The Shop|me@shop.test' })
})

t.test('a domain that is added and vouched for between two mails is the sender of the second', async t => {
  const postroad = await openTestAppliance(t)
  const from_email = 'me@sender.test'
  t.match(await sendersOf(postroad, { from_email }), { from: '|notify@mail.postroad.test' })
  await postroad.json('domain', 'add', 'sender.test', '--vouch', '--workspace', postroad.workspaceId)
  t.match(await sendersOf(postroad, { from_email }), { from: '|me@sender.test' })
})
