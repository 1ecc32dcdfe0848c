/**
 * Cost of a mail of their own for every recipient: renderings per second of one core, CPU time of a mail that is like no
 * other, and campaign-like mail delivered beside plain mail in the same run.
 *
 * Called by `main.ts`. The mail is a newsletter of 30 KB with 20 links and 10 merge tags, its footer and its unsubscribe links
 * added; readers are contacts. Plain mail is a text of the same length without a tag. Fails: throws where anything was not
 * delivered.
 */
import { fileURLToPath } from 'node:url'
import { recipient } from '../fill/letters.js'
import { short } from '../numbers.js'
import { sendLoad } from '../peers/api-load.js'
import { openSink, type Sink } from '../peers/sinks.js'
import { run, startNode } from '../server/children.js'
import { numberOfDelivered, untilQueueIsEmpty } from '../server/queue-watch.js'
import { copyInstallation, SENDER, serve, type Installation } from '../server/server-process.js'
import { printTable } from '../table.js'

export interface RenderOptions {
  readonly renderings: number
  /** Per row. */
  readonly messages: number
  readonly profile: boolean
}

const HTML_LENGTH = 30_000
const LINKS = 20
const TAGS = [
  'Dear {{firstName|reader}} {{lastName}}',
  '{{email}}',
  '{{company|your company}}',
  '{{attributes.plan|none|uppercase}}',
  '{{attributes.points}}',
  '{{order.id}}',
  '{{city|your town|capitalize}}',
  '{{current_date}}',
  '<a href="https://shop.example/?code={{code}}">your code</a>',
]
const SENTENCE =
  'Grüße from the workshop: this week <b>three</b> new things are ready, and the first of them costs no more than 12&nbsp;€. '

/** A table of rows, of which the first have the tags and links. */
export function newsletter(): string {
  const rows = Array.from({ length: LINKS - 1 }, (_, at) => {
    const link = `<a href="https://shop.example/item/${at}?src=mail&amp;week=2">Item ${at}</a>`
    return `<tr><td style="padding:12px 24px;font-family:Arial,sans-serif">${TAGS[at] ?? ''} ${link} `
  })
  const text = SENTENCE.repeat(Math.floor((HTML_LENGTH / rows.length - 130) / SENTENCE.length))
  return `<!doctype html><html lang="en"><body><table width="600">\n${rows.map(row => `${row}${text}</td></tr>\n`).join('')}</table></body></html>`
}

const RECIPIENTS_PER_REQUEST = 100
const DOMAINS = 20
const CLIENTS = 8
const CONNECTIONS = { connections: 500, connectionsPerDestination: 40 }

export async function measureRender(original: Installation, options: RenderOptions): Promise<void> {
  const html = newsletter()
  const program = fileURLToPath(new URL('../renderings.js', import.meta.url))
  const rendered = JSON.parse(await run(startNode([program, html, String(options.renderings)]))) as {
    perSecond: number
    firstMegabytes: number
    lastMegabytes: number
  }
  printTable(
    `Rendering: ${options.renderings} mails of ${Math.round(html.length / 1_000)} KB with ${LINKS} links and ${TAGS.length + 1} tags, on one core`,
    [
      ['per CPU second', 'wanted', 'heap early', 'heap at the end'],
      [`${rendered.perSecond}`, '8000', `${rendered.firstMegabytes} MB`, `${rendered.lastMegabytes} MB`],
    ],
    ['Subject, html and text of each, with footer, click links, pixel and List-Unsubscribe.'],
  )
  await measureUnique(options.renderings / 10)
  const sink = await openSink()
  const plain = await deliver(original, sink, 'plain', plainRequest, options)
  const filled = await deliver(original, sink, 'filled in', number => filledRequest(number, html), options)
  await sink.stop()
  printTable(
    'Delivered: the same newsletter as plain text, and filled in for each reader',
    [
      ['', 'messages', 'delivered/s', 'of plain', 'CPU s/1,000'],
      ['plain', `${plain.messages}`, short(plain.perSecond), '', short(plain.cpuPerThousand)],
      [
        'filled in',
        `${filled.messages}`,
        short(filled.perSecond),
        `${Math.round((100 * filled.perSecond) / plain.perSecond)} % (wanted 80 %)`,
        short(filled.cpuPerThousand),
      ],
    ],
    [
      `${RECIPIENTS_PER_REQUEST} recipients in a request, ${DOMAINS} domains; signed with RSA-2048 and Ed25519; ${sink.name} on loopback.`,
    ],
  )
}

interface OfUnique {
  readonly length: number
  readonly ms: number
}

async function measureUnique(mails: number): Promise<void> {
  const program = fileURLToPath(new URL('../unique-mails.js', import.meta.url))
  const measured = JSON.parse(await run(startNode([program, String(mails)]))) as Record<
    'letter' | 'newsletter',
    OfUnique
  >
  printTable(
    'Plan + render of a unique mail: every mail its own HTML, on one core',
    [
      ['', 'HTML', 'CPU ms', 'wanted'],
      ...Object.entries(measured).map(([name, { length, ms }]) => [
        name,
        `${(length / 1_000).toFixed(1)} KB`,
        ms.toFixed(2),
        '0.80',
      ]),
    ],
    ['Unsigned message with footer, click links, pixel and derived text; `letter` is what `relay` sends.'],
  )
}

function readers(number: number): string[] {
  return Array.from({ length: RECIPIENTS_PER_REQUEST }, (_, at) =>
    recipient(number * RECIPIENTS_PER_REQUEST + at, DOMAINS),
  )
}

function plainRequest(number: number): Buffer {
  const text = `${SENTENCE.replace(/<[^>]*>/g, '')}\n`.repeat(Math.floor(HTML_LENGTH / SENTENCE.length))
  return Buffer.from(
    JSON.stringify({ to: readers(number), from_email: SENDER, subject: `News ${number}`, text }),
  )
}

function filledRequest(number: number, html: string): Buffer {
  const template_data = { order: { id: number }, city: 'bern', code: `A-${number}` }
  return Buffer.from(
    JSON.stringify({
      to: readers(number),
      from_email: SENDER,
      subject: 'News for {{firstName|you}}',
      html,
      template_data,
    }),
  )
}

interface Delivered {
  readonly messages: number
  readonly perSecond: number
  readonly cpuPerThousand: number
}

async function deliver(
  original: Installation,
  sink: Sink,
  name: string,
  body: (number: number) => Buffer,
  { messages, profile }: RenderOptions,
): Promise<Delivered> {
  const label = `render-${name.replace(' ', '-')}`
  const installation = await copyInstallation(original, label)
  const server = await serve(installation, { ...CONNECTIONS, port: sink.port }, profile ? label : undefined)
  const { key } = installation
  const load = { port: server.port, key, connections: CLIENTS, limitMs: 60_000 }
  // Every second reader is a contact.
  await sendLoad({
    ...load,
    requests: messages / 2,
    path: () => '/contacts',
    body: number =>
      Buffer.from(
        JSON.stringify({
          email: recipient(2 * number, DOMAINS),
          first_name: `Reader ${number}`,
          last_name: 'Müller',
          attributes: { plan: 'gold', points: number, company: 'Acme & Co' },
        }),
      ),
  })
  const cpuBefore = server.cpuSeconds()
  const startedAt = performance.now()
  const { requests } = await sendLoad({ ...load, requests: messages / RECIPIENTS_PER_REQUEST, body })
  await untilQueueIsEmpty(installation.dataDir)
  const seconds = (performance.now() - startedAt) / 1_000
  const cpuSeconds = server.cpuSeconds() - cpuBefore
  const sent = requests * RECIPIENTS_PER_REQUEST
  const delivered = await numberOfDelivered(installation.dataDir)
  await server.stop()
  if (delivered !== sent) throw new Error(`${delivered} of ${sent} messages were delivered`)
  return { messages: sent, perSecond: sent / seconds, cpuPerThousand: (cpuSeconds * 1_000) / sent }
}
