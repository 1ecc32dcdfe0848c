/** One mail from the API to the receiving server, and its status afterwards. */
import t from 'tap'
import { simpleParser } from 'mailparser'
import { dkimVerdicts, dkimZone, type PublishedDomain } from '../support/dkim.js'
import { initialise, routeTo } from '../support/program/process.js'
import { openSink, type SinkMail } from '../support/smtp/sink.js'

const longLine = `${'Grüße aus Köln '.repeat(334)}!`
const html = `<p>${longLine}</p>\n<p>${'x'.repeat(5_000)}</p>\n<p>a\u{a0}b \u{1f4ec}</p>\n.\n..dot\n`
const mail = {
  to: ['ann@one.test', 'bob@two.test'],
  from_email: 'shop@sender.test',
  from_name: 'Müller, "Söhne" & Co 🚚',
  reply_to: '"Help, Desk" <help@sender.test>',
  subject: 'Ihre Bestellung – Größe 42 ✓ 日本語',
  html,
}

function mailTo(mails: readonly SinkMail[], recipient: string): SinkMail {
  const found = mails.find(({ recipients }) => recipients.join() === recipient)
  if (!found) throw new Error(`nothing came for ${recipient}`)
  return found
}

t.test('mail from a vouched domain arrives complete, signed and traceable', async t => {
  const sink = await openSink(t)
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  const owner = ['--workspace', postroad.workspaceId]
  const domain = await postroad.json<PublishedDomain>('domain', 'add', 'sender.test', '--vouch', ...owner)
  const server = await postroad.serve()
  const { status, body } = await server.send(postroad.key, mail)
  t.equal(status, 200)
  t.match(body.data, { sent: 2, failed: 0, skipped: 0, total: 2 })
  const ids = (body.data.results as { message_id: string; to: string }[]).map(result => result.message_id)
  const mails = await sink.acceptedOnce(2)

  for (const [index, to] of mail.to.entries()) {
    const id = ids[index] ?? ''
    const { raw, sender, isSecure } = mailTo(mails, to)
    t.ok(isSecure, 'TLS was used where it was offered')
    t.ok(
      raw.every(octet => octet < 0x80),
      'seven bits',
    )
    t.ok(
      raw
        .toString('latin1')
        .split('\r\n')
        .every(line => line.length <= 998),
      'lines of at most 998 octets',
    )
    t.same(await dkimVerdicts(raw, dkimZone(domain)), [
      'sender.test rsa-sha256 pass',
      'sender.test ed25519-sha256 pass',
    ])
    const parsed = await simpleParser(raw)
    t.equal(parsed.subject, mail.subject)
    t.same(parsed.from?.value, [{ name: mail.from_name, address: 'shop@sender.test' }])
    t.same(parsed.replyTo?.value, [{ name: 'Help, Desk', address: 'help@sender.test' }])
    t.match(parsed.to, { value: [{ address: to }] })
    const sent = String(parsed.html)
    t.equal(sent.slice(0, html.length), html, 'as it was written')
    t.match(sent.slice(html.length), /Unsubscribe[^]*<img /, 'with footer and pixel')
    t.match(parsed.text, /Grüße aus Köln/)
    t.match(parsed.messageId, /^<.+@mx\.postroad\.test>$/)
    t.ok(parsed.date)

    const message = await server.messageOnce(postroad.key, id, 'delivered')
    t.match(message, {
      to,
      subject: mail.subject,
      attempts: 1,
      next_attempt_at: null,
      bounced_at: null,
      trace: [
        {
          attempt: 1,
          outcome: 'delivered',
          reply_code: 250,
          hosts: [
            {
              host: '127.0.0.1',
              address: '127.0.0.1',
              port: sink.port,
              stage: 'final_dot',
              reply: /^250 /,
              error: null,
              tls: { version: 'TLSv1.3', verified: false, unverified_reason: String },
            },
          ],
        },
      ],
    })
    t.match(message.delivered_at, /^\d{4}-\d\d-\d\dT.*Z$/)
    t.match((await server.get(`/api/v1/email/${id}/status`, { key: postroad.key })).body.data, {
      message_id: id,
      status: 'delivered',
      delivered_at: message.delivered_at,
      last_reply: message.trace[0].summary,
    })

    const shown = await postroad.json('message', 'show', id)
    t.match(shown, { message_id: id, workspace_id: postroad.workspaceId, envelope_sender: sender })
    t.match(sender, /@bounce\.mx\.postroad\.test$/)
    const text = await postroad.run('message', 'show', id)
    t.match(text.out, `<${sender}> to <${to}>`)
    t.match(text.out, new RegExp(`127\\.0\\.0\\.1 \\[127\\.0\\.0\\.1\\]:${sink.port}.*TLSv1\\.3`))
  }
  const senders = new Set(mails.map(({ sender }) => sender))
  t.equal(senders.size, 2, 'each message has a return path of its own')
})

t.test('mail from an unknown domain is sent from the shared address', async t => {
  const sink = await openSink(t, { hasTls: false })
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  const [shared] = await postroad.json<PublishedDomain[]>('domain', 'list')
  const server = await postroad.serve()
  const own = { to: 'ann@one.test', from_email: 'me@elsewhere.test', subject: 'Hi', text: 'Hello.\n' }
  await server.send(postroad.key, { ...own, from_name: 'Me' })
  await server.send(postroad.key, { ...own, to: 'bob@two.test', reply_to: 'office@elsewhere.test' })
  const mails = await sink.acceptedOnce(2)

  const named = mailTo(mails, 'ann@one.test')
  t.notOk(named.isSecure, 'a server without STARTTLS gets it in clear')
  t.same(await dkimVerdicts(named.raw, dkimZone(shared!)), [
    'mail.postroad.test rsa-sha256 pass',
    'mail.postroad.test ed25519-sha256 pass',
  ])
  const parsed = await simpleParser(named.raw)
  t.same(parsed.from?.value, [{ name: 'Me', address: 'notify@mail.postroad.test' }])
  t.same(parsed.replyTo?.value, [{ name: 'Me', address: 'me@elsewhere.test' }])
  t.equal(parsed.text, 'Hello.\n')

  const answered = await simpleParser(mailTo(mails, 'bob@two.test').raw)
  t.same(answered.replyTo?.value, [{ name: '', address: 'office@elsewhere.test' }])
})

t.test('captured mail stays on this machine and can be read', async t => {
  const sink = await openSink(t)
  const env = { ...routeTo(sink.port), POSTROAD_MTA_CAPTURE: 'true' }
  const postroad = await initialise(t, { env })
  const [shared] = await postroad.json<PublishedDomain[]>('domain', 'list')
  const server = await postroad.serve()
  const { body } = await server.send(postroad.key, mail)
  const id = String(body.data.results[0].message_id)
  for (const { message_id: each } of body.data.results as { message_id: string }[])
    await server.messageOnce(postroad.key, each, 'delivered')

  const list = await server.get('/capture')
  t.equal(list.status, 200)
  t.match(list.body.pagination, { total: 2, has_more: false })
  t.match(list.body.data, [
    { subject: mail.subject, envelope_sender: /@bounce\.mx\.postroad\.test$/, size: Number },
    { subject: mail.subject },
  ])
  const one = await server.get(`/capture/${id}`)
  t.match(one.body.data, { message_id: id, recipient: 'ann@one.test' })
  const raw = Buffer.from(String(one.body.data.raw), 'latin1')
  t.same(await dkimVerdicts(raw, dkimZone(shared!)), [
    'mail.postroad.test rsa-sha256 pass',
    'mail.postroad.test ed25519-sha256 pass',
  ])
  t.equal(String((await simpleParser(raw)).html).slice(0, html.length), html)
  t.match(await server.get('/capture/none'), { status: 404, body: { error: { code: 'not_found' } } })
  t.match(await server.get('/capture', { headers: { 'X-Forwarded-For': '192.0.2.1' } }), { status: 404 })

  const listed = await postroad.json<{ message_id: string }[]>('capture', 'list')
  t.equal(listed.length, 2)
  t.equal((await postroad.json<unknown[]>('capture', 'list', '--limit', '1')).length, 1)
  const read = await postroad.run('capture', 'show', id)
  t.match(read.out, `Subject: ${mail.subject}`)
  t.notMatch(read.out, 'DKIM-Signature')
  const shown = await postroad.run('capture', 'show', id, '--raw')
  t.equal(shown.status, 0)
  t.equal(shown.out, `${raw.toString('latin1')}\n`)
  t.match(await postroad.json('capture', 'show', id), {
    message_id: id,
    raw: raw.toString('latin1'),
    content: { html, attachments: [] },
  })
  t.match(await postroad.run('capture', 'show', 'none'), { status: 1, err: /no mail none/ })
  t.equal(sink.begun, 0)
})

t.test('without capture the local inbox routes do not exist', async t => {
  const postroad = await initialise(t)
  const server = await postroad.serve()
  t.match(await server.get('/capture'), { status: 404, body: { error: { code: 'not_found' } } })
})
