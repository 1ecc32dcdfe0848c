/** Transmitted messages octet by octet, and messages that are never sent. */
import { simpleParser } from 'mailparser'
import { SMTPServer } from 'smtp-server'
import t from 'tap'
import { openCaptureAgent } from '../../src/mta/workers/worker-agent.js'
import type { DeliveryJob } from '../../src/queue/delivery-agent.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { goOn, LETTER, makeJob, testMta } from '../support/smtp/mta.js'

const hostname = 'mail.sender.example'

function captureAgent() {
  return openCaptureAgent({ clock: new FakeClock(), hostname })
}

async function capture(job: DeliveryJob): Promise<Buffer> {
  const outcome = await captureAgent().deliver(job, goOn)
  if (outcome.kind !== 'delivered' || outcome.captured === undefined) throw new Error(outcome.summary)
  return outcome.captured
}

/** An SMTP server that nobody here wrote; resolves with what it took. */
async function independentServer(t: { teardown(end: () => void): unknown }) {
  const taken: Buffer[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['AUTH'],
    onData(stream, _session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        taken.push(Buffer.concat(chunks))
        done()
      })
    },
  })
  server.on('error', () => {})
  const port = await new Promise<number>(resolve => {
    const listener = server.listen(0, '127.0.0.1', () =>
      resolve((listener.address() as { port: number }).port),
    )
  })
  t.teardown(() => server.close())
  return { port, taken }
}

const withText = (text: string) => makeJob({ content: { ...LETTER, text } })

for (const [what, text] of [
  ['dots at line starts', '.\n..\n.hidden\n...and more\n. \n.'],
  ['a lone dot between empty lines', 'before\n\n.\n\nafter\n'],
  [
    'what looks like the next command',
    'x\n.\nMAIL FROM:<evil@example.com>\nRCPT TO:<bob@example.com>\nDATA\n',
  ],
  ['nothing at all', ''],
  ['empty lines at its end', 'text\n\n\n\n'],
  ['several blocks with dots across their borders', '.\n'.repeat(200_000)],
] as const)
  t.test(`a message with ${what} arrives octet for octet`, async t => {
    const peer = await independentServer(t)
    const { agent } = testMta(t, { '*': peer })
    const job = withText(text)
    t.match(await agent.deliver(job, goOn), { kind: 'delivered', tried: [{ tls: { version: String } }] })
    t.ok(peer.taken[0]?.equals(await capture(job)), 'what arrived is what was rendered')
    t.equal(peer.taken.length, 1)
  })

t.test('the local inbox stores the mail as it would have been sent', async t => {
  const outcome = await captureAgent().deliver(makeJob(), goOn)
  t.match(outcome, { kind: 'delivered', remoteMta: 'capture', tried: [] })
  const parsed = await simpleParser(await capture(makeJob()))
  t.equal(parsed.messageId, '<01890a5d-ac96-774b-bcce-b302099a8057@mail.sender.example>')
  t.equal(parsed.subject, 'Your order')
  t.equal(parsed.date?.toISOString(), '2026-01-05T09:59:00.000Z')
})

t.test('a mail without text gets one derived from its HTML', async t => {
  const { text: _, ...content } = LETTER
  const parsed = await simpleParser(
    await capture(makeJob({ content: { ...content, html: '<p>On <b>its</b> way</p>' } })),
  )
  t.match(parsed.text, /On its way/)
  t.match(parsed.html, /<b>its<\/b>/)
})

t.test('a mail is signed with every key, the first on top', async t => {
  const { privateKey } = await import('node:crypto').then(crypto => crypto.generateKeyPairSync('ed25519'))
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const key = (selector: string) => ({
    domain: 'sender.example',
    selector,
    algorithm: 'ed25519' as const,
    privateKey: pem,
  })
  const message = await capture(makeJob({ signingKeys: [key('one'), key('two')] }))
  const selectors = [...message.toString('latin1').matchAll(/^DKIM-Signature:[^]*?s=(\w+);/gm)].map(
    match => match[1],
  )
  t.same(selectors, ['one', 'two'])
})

t.test('a message that cannot be built is unsendable, and no host is dialled', async t => {
  const { agent, dialler } = testMta(t, {})
  const content = { ...makeJob().content, subject: 'Your order\r\nBcc: everybody@example.com' }
  t.match(await agent.deliver(makeJob({ content }), goOn), {
    kind: 'unsendable',
    tried: [],
    summary: /^the message could not be built: /,
  })
  t.match(await captureAgent().deliver(makeJob({ content }), goOn), { kind: 'unsendable' })
  t.same(dialler.dialled, [])
})

t.test('a message whose key is unusable is deferred, since the operator can replace the key', async t => {
  const signingKeys = [
    { domain: 'sender.example', selector: 's', algorithm: 'rsa', privateKey: 'no key' } as const,
  ]
  const outcome = await captureAgent().deliver(makeJob({ signingKeys }), goOn)
  t.match(outcome, { kind: 'deferred', cause: 'config', subtype: 'signing_key' })
  t.notMatch(outcome.summary, 'no key')
})

t.test('an unsigned message with a bare line feed is unsendable, and the summary says where', async t => {
  const message = Buffer.from('From: ann@sender.example\r\n\r\nHello\nBob\r\n')
  const content = { kind: 'relayed' as const, subject: '', message }
  t.match(await captureAgent().deliver(makeJob({ content, signingKeys: [] }), goOn), {
    kind: 'unsendable',
    summary: /^the message could not be built: octet \d+ is a bare CR or LF$/,
  })
})

t.test('an envelope address with a line break cannot inject a command', async t => {
  const { agent, dialler } = testMta(t, { '*': 'refused' })
  const envelopeSender = 'b@bounce.sender.example>\r\nRCPT TO:<evil@example.com'
  t.match(await agent.deliver(makeJob({ envelopeSender }), goOn), {
    kind: 'unsendable',
    summary: 'the message could not be built: the envelope sender contains a control character',
  })
  t.same(dialler.dialled, [])
})
