/**
 * Stored XSS: every field that other people or mail can fill holds markup that would run, and every screen that shows it is opened.
 *
 * Nothing may run, no dialog may open, the policy must have nothing to stop, and what was stored is there to read as text.
 * Run by `make test-pages`, for which Debian's Chromium has to be there.
 */
import { createServer } from 'node:http'
import { createConnection, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import { SMTPServer } from 'smtp-server'
import t, { type Test } from 'tap'
import { openTestAppliance, type TestAppliance } from '../support/program/appliance.js'
import { openConsole } from '../support/program/console.js'
import { tokenWith } from '../support/program/operators.js'

/** Would run in HTML, in an attribute, and as a link. */
const hostile = (name: string) =>
  `${name}"'><img src=x onerror=window.ran=1><svg onload=window.ran=2>javascript:window.ran=3`
/** Shown of it, wherever it is text. */
const shownOf = (name: string) => `${name}"'><img src=x onerror=window.ran=1><svg`

interface Watched {
  ran?: unknown
  broken: string[]
}

/** A browser in which everything that runs leaves a trace. */
async function watch(
  t: Test,
  { baseUrl, workspaceId, json }: Pick<TestAppliance, 'baseUrl' | 'workspaceId' | 'json'>,
) {
  const { page, go, turnTo, settled } = await openConsole(t, { baseUrl, json })
  const dialogs: string[] = []
  page.on('dialog', dialog => {
    dialogs.push(dialog.message())
    void dialog.dismiss()
  })
  await page.addInitScript(
    `window.broken = []; addEventListener('securitypolicyviolation', event => window.broken.push(event.violatedDirective + ' ' + event.blockedURI))`,
  )
  await go('/')
  await settled()
  /** Opens a screen, and sees that these texts are there and nothing has run. */
  const look = async (path: string, ...texts: readonly string[]) => {
    await turnTo(`${path}${path.includes('?') ? '&' : '?'}workspace=${workspaceId}`)
    for (const text of texts)
      await page
        .getByText(text)
        .locator('visible=true')
        .first()
        .waitFor({ timeout: 5_000 })
        .catch(() => t.fail(`${path}: shows ${text}`))
    const { ran, broken } = await page.evaluate<Watched>('({ ran: window.ran, broken: window.broken })')
    t.equal(ran, undefined, `${path}: nothing ran`)
    t.same(broken, [], `${path}: the policy had nothing to stop`)
    t.same(dialogs, [], `${path}: no dialog`)
    t.match(await page.title(), /Postroad$/, `${path}: the title is the screen's`)
  }
  return { page, look }
}

/** Delivers a mail to the inbound listener. */
async function deliver({ addresses }: TestAppliance, to: string, mail: string): Promise<void> {
  const [address] = addresses.inbound
  const socket = createConnection(address?.port ?? 0, '127.0.0.1')
  socket.setEncoding('latin1')
  const dot = `${mail.replace(/\r?\n/g, '\r\n')}\r\n.\r\n`
  for (const line of [
    '',
    'EHLO mx.evil.test\r\n',
    'MAIL FROM:<>\r\n',
    `RCPT TO:<${to}>\r\n`,
    'DATA\r\n',
    dot,
  ]) {
    if (line !== '') socket.write(line)
    let answer = ''
    while (!/^\d{3} .*\r\n$/m.test(answer)) answer += String((await once(socket, 'data'))[0])
    if (/^[45]/.test(answer)) throw new Error(`${line.slice(0, 40)}: ${answer}`)
  }
  socket.end('QUIT\r\n')
}

t.test('names, attributes and settings that hold markup are text on every screen', async t => {
  const receiver = createServer((_, response) => response.writeHead(500).end(hostile('response')))
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  t.teardown(() => receiver.close())
  const postroad = await openTestAppliance(t, {
    env: { POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8' },
  })
  const { key, workspaceId } = postroad
  const owner = await tokenWith(postroad, 'owner')
  const make = async (path: string, body: object, token = key) => {
    const answer = await postroad.post(path, body, { key: token })
    if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer.body)}`)
    return (answer.body.data as { id?: string }).id ?? ''
  }
  const contact = await make('/api/v1/contacts', {
    email: '"<img/src=x/onerror=window.ran=4>"@evil.test',
    first_name: hostile('first'),
    last_name: hostile('last'),
    attributes: { plan: hostile('plan'), city: [hostile('city')] },
  })
  const list = await make('/api/v1/lists', { name: hostile('list'), description: hostile('listtext') })
  await make('/api/v1/tags', { name: hostile('tag'), description: hostile('tagtext') })
  const segment = await make('/api/v1/segments', {
    name: hostile('segment'),
    conditions: { match: 'all', rules: [{ field: 'plan', operator: 'equals', value: hostile('value') }] },
  })
  const form = await make('/api/v1/forms', {
    name: hostile('form'),
    fields: [
      {
        name: 'plan',
        label: hostile('label'),
        type: 'select',
        required: true,
        options: ['a', hostile('option')],
      },
    ],
  })
  const { port } = receiver.address() as AddressInfo
  const webhook = await make('/api/v1/webhooks/triggers', {
    event: 'email.delivered',
    targetUrl: `http://127.0.0.1:${port}/<img/src=x/onerror=window.ran=5>?q='"><script>`,
  })
  await make('/api/v1/email/send', {
    to: ['evil@recipient.test'],
    from_email: 'a@sender.example',
    from_name: hostile('sender'),
    reply_to: 'r@sender.example',
    subject: hostile('subject'),
    html: `<p>${hostile('html')}</p>`,
    text: hostile('text'),
    headers: { 'X-Evil': hostile('header') },
    tags: [hostile('mailtag')],
    attachments: [{ filename: hostile('file').replaceAll('/', ''), content: 'SGk=' }],
  })
  const workspace = await make('/api/admin/v1/workspaces', { name: hostile('workspace') }, owner)
  const operator = await make(
    '/api/admin/v1/operators',
    {
      email: 'o@evil.test',
      name: hostile('operator'),
      role: 'viewer',
    },
    owner,
  )
  await make(`/api/admin/v1/workspaces/${workspaceId}/keys`, { name: hostile('key') }, owner)

  const { page, look } = await watch(t, postroad)
  await look('/contacts', shownOf('first'))
  await look(`/contacts/${contact}`, shownOf('first'), shownOf('plan'))
  await look('/lists', shownOf('list'))
  await look(`/lists/${list}`, shownOf('list'))
  await look('/tags', shownOf('tag'), shownOf('tagtext'))
  await look('/segments', shownOf('segment'))
  await look(`/segments/${segment}`)
  await look('/forms', shownOf('form'))
  await look(`/forms/${form}`)
  await look('/webhooks', 'onerror=window.ran=5')
  await look(`/webhooks/${webhook}`, 'onerror=window.ran=5')
  await page.getByRole('table').getByRole('link').first().click()
  await page.getByText(shownOf('response')).first().waitFor()
  t.equal(await page.evaluate('window.ran'), undefined, 'a response body is text')
  await look('/workspaces', shownOf('workspace'))
  await look(`/workspaces/${workspace}`, shownOf('workspace'))
  await look('/operators', shownOf('operator'))
  await look(`/operators/${operator}`, shownOf('operator'))
  await look('/keys', shownOf('key'))
  await look('/activity', shownOf('list'))
  await look('/')

  await look('/messages')
  await page.getByRole('link', { name: 'evil@recipient.test' }).click()
  await page.getByRole('heading', { level: 1 }).waitFor()
  const message = new URL(page.url()).pathname.replace('/console', '')
  await look(message, shownOf('sender'))
  await look(`${message}?tab=text`, shownOf('text'))
  await look(`${message}?tab=source`, shownOf('text').slice(0, 12))
  await look(`${message}?tab=headers`, 'X-Evil', shownOf('header'))
  await look(`${message}?tab=attachments`, shownOf('file'))
  await look(`${message}?tab=authentication`)
  await look('/captured')
  await page.getByRole('link', { name: 'evil@recipient.test' }).click()
  await page.waitForURL(/captured\/./)
  const captured = new URL(page.url()).pathname.replace('/console', '')
  for (const tab of ['text', 'source', 'headers', 'attachments']) await look(`${captured}?tab=${tab}`)
  await look(`${captured}?tab=headers`, shownOf('header'))
  // The frame's own policy stops what is in the mail; it can reach nothing.
  await page.goto(`${postroad.baseUrl}/console${captured}`)
  await page.frameLocator('iframe').getByText('javascript:window.ran=3').first().waitFor()
  t.equal(await page.evaluate('window.ran'), undefined, 'the preview of a captured mail')
  t.same(
    await Promise.all(page.frames().map(frame => frame.evaluate('window.ran').catch(() => undefined))),
    page.frames().map(() => undefined),
    'in no frame',
  )

  await look('/domains')
  await page.getByRole('button', { name: 'Add a domain' }).first().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Domain', { exact: true }).fill(hostile('domain'))
  await dialog.getByRole('button', { name: 'Add a domain' }).click()
  await dialog.getByRole('alert').first().waitFor()
  t.equal(await page.evaluate('window.ran'), undefined, 'a refused domain')

  await look('/contacts/import')
  const csv = `Mail,"${hostile('column').replaceAll('"', '""')}"\nann@one.test,"${hostile('cell').replaceAll('"', '""')}"\n`
  await page.getByLabel('Choose a file').setInputFiles({
    name: `${hostile('csv').replaceAll('/', '')}.csv`,
    mimeType: 'text/csv',
    buffer: Buffer.from(csv),
  })
  await page.getByText(shownOf('cell')).first().waitFor()
  await page.getByText(shownOf('column')).first().waitFor()
  t.equal(await page.evaluate('window.ran'), undefined, 'columns of a file')
  await look(`/messages?subject=${encodeURIComponent(hostile('param'))}`)
  await look(`/contacts?search=${encodeURIComponent(hostile('param'))}`)
})

t.test('replies, returned mail and reports that hold markup are text on every screen', async t => {
  const host = new SMTPServer({
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    logger: false,
    onRcptTo({ address }, _, done) {
      const refusal = Object.assign(new Error(`5.1.1 ${hostile('reply')}`), { responseCode: 550 })
      done(address.startsWith('evil') ? refusal : null)
    },
    onData(stream, _, done) {
      stream.resume()
      stream.on('end', () => {
        done(null, hostile('accepted'))
      })
    },
  })
  const listening = host.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  t.teardown(() => new Promise<void>(resolve => host.close(() => resolve())))
  const { port } = listening.address() as AddressInfo
  const postroad = await openTestAppliance(t, {
    toml: `[[mta.routes]]\ndomain = "*"\nhost = "127.0.0.1"\nport = ${port}\n`,
    env: {
      POSTROAD_MTA_CAPTURE: 'false',
      POSTROAD_MTA_RETURN_PATH_DOMAIN: 'bounce.postroad.test',
      POSTROAD_INBOUND_GREETING_DELAY: '0s',
    },
  })
  const { key, workspaceId } = postroad
  const owner = await tokenWith(postroad, 'owner')
  await postroad.run('domain', 'add', 'shop.test', '--workspace', workspaceId, '--vouch')
  const send = async (to: string) => {
    const mail = { to: [to], from_email: 'me@shop.test', subject: 'Hi', text: 'Hello' }
    const { body } = await postroad.send(key, mail)
    return (body.data.results as { message_id: string }[])[0]?.message_id ?? ''
  }
  const refused = await send('evil@one.test')
  const returned = await send('ann@one.test')
  await postroad.messageOnce(key, refused, 'bounced')
  await postroad.messageOnce(key, returned, 'delivered')
  const { body } = await postroad.get(`/api/admin/v1/messages/${returned}`, { key: owner })
  const report = `Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: text/plain

${hostile('note')}
--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.evil.test

Final-Recipient: rfc822; ann@one.test
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 ${hostile('diagnostic')}

--b--`
  const head = `From: ${hostile('name').replace(/["<>]/g, '')} <x@evil.test>\nSubject: ${hostile('inboundsubject')}\nMIME-Version: 1.0\n`
  await deliver(postroad, String(body.data.envelope_sender), head + report)
  await deliver(
    postroad,
    'postmaster@bounce.postroad.test',
    `${head}X-Evil: ${hostile('inboundheader')}\n\n${hostile('inboundtext')}`,
  )
  const xml = `<feedback><report_metadata><org_name><![CDATA[${hostile('org')}]]></org_name><report_id><![CDATA[${hostile('reportid')}]]></report_id>
<date_range><begin>${Math.floor(Date.now() / 1000) - 3600}</begin><end>${Math.floor(Date.now() / 1000)}</end></date_range></report_metadata>
<policy_published><domain>shop.test</domain><p><![CDATA[${hostile('policy')}]]></p></policy_published><record><row><source_ip><![CDATA[${hostile('source')}]]></source_ip><count>3</count>
<policy_evaluated><disposition>none</disposition><dkim>fail</dkim><spf>fail</spf></policy_evaluated></row><identifiers><header_from><![CDATA[${hostile('from')}]]></header_from></identifiers></record></feedback>`
  await deliver(
    postroad,
    'dmarc@bounce.postroad.test',
    `Content-Type: application/gzip\nContent-Transfer-Encoding: base64\n\n${gzipSync(xml).toString('base64').replace(/.{76}/g, '$&\n')}`,
  )
  await postroad.messageOnce(key, returned, 'bounced')

  const { page, look } = await watch(t, postroad)
  await look(`/messages/${refused}`, shownOf('reply'))
  await look(`/messages/${returned}`, shownOf('diagnostic'))
  await look('/bounces', shownOf('reply'), shownOf('diagnostic'))
  await look('/inbound')
  for (const [id, tab, text] of [
    ['1', '', shownOf('diagnostic')],
    ['1', 'headers', shownOf('inboundsubject')],
    ['1', 'text', shownOf('note')],
    ['1', 'source', shownOf('note')],
    ['2', 'text', shownOf('inboundtext')],
    ['2', 'headers', shownOf('inboundheader')],
    ['3', 'attachments', ''],
  ] as const)
    await look(`/inbound/${id}?tab=${tab}`, ...(text === '' ? [] : [text]))
  await page.getByRole('button', { name: 'Process again' }).click()
  await page.getByText('Waiting', { exact: true }).waitFor()
  await postroad.clock.advance(6_000)
  await page.getByText('Report, known').first().waitFor()
  await look('/reports', shownOf('org'), shownOf('source'))
  await page.getByText(shownOf('source')).first().click()
  await page.getByText(shownOf('from')).first().waitFor()
  await page.getByRole('link', { name: shownOf('org') }).click()
  await page.getByText(shownOf('policy')).first().waitFor()
  t.equal(await page.evaluate('window.ran'), undefined, 'a report with its records')
  await look('/delivery')
  await look('/suppressions', 'evil@one.test')
  await look('/')
})
