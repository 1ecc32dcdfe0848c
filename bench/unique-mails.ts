/**
 * A program of its own: what one mail costs that is like no other, from its content to the octets to sign: plan, merge, tracking, footer,
 * text derived from the HTML, transfer encoding.
 *
 * Started by `scenarios/render.ts`. Argument: mails. Prints `{"letter": {"length": N, "ms": N}, "newsletter": {...}}`: octets of HTML and
 * CPU time per mail in milliseconds, the median of ten rounds.
 */
import type { JobContent } from '../src/queue/delivery-agent.js'
import { openRenderer } from '../src/mta/render.js'
import { systemClock } from '../src/world/time/clock.js'
import { letterHtml, newsletterHtml } from './fill/letters.js'
import { median } from './numbers.js'

const ROUNDS = 10
const [count = '0'] = process.argv.slice(2)
const perRound = Math.ceil(Number(count) / ROUNDS)
const secret = { version: 1, secret: Buffer.alloc(32, 's') }
const merging = {
  brand: { companyName: 'Bench', companyAddress: '1 Main Street', attribution: true, timezone: 'UTC' },
  hasFooter: true,
  tracking: { opens: true, clicks: {} },
}
const render = openRenderer({
  clock: systemClock,
  hostname: 'mail.bench.example',
  links: {
    secrets: [secret],
    publicUrl: 'https://mail.bench.example',
    unsubscribeDomain: 'bounce.bench.example',
    unsubscribeKey: secret,
  },
})

async function renderOne(number: number, html: string): Promise<void> {
  const content: JobContent = {
    kind: 'composed',
    from: { address: 'news@bench.example' },
    subject: `Letter ${number}`,
    html,
    merging,
  }
  const result = await render({
    messageId: `0192f3a4-5b6c-7d8e-9f01-${number.toString(16).padStart(12, '0')}`,
    workspaceId: '0192f3a4-5b6c-7d8e-9f01-000000000000',
    envelopeSender: 'x@bounce.bench.example',
    recipient: `reader${number}@d.example`,
    attempt: 1,
    acceptedAt: 1_767_607_200_000,
    content,
    signingKeys: [],
  })
  if (result.kind !== 'rendered') throw new Error(result.summary)
}

async function measure(htmlOf: (number: number) => string): Promise<{ length: number; ms: number }> {
  const times: number[] = []
  let number = 0
  for (let round = 0; round <= ROUNDS; round += 1) {
    const mails = Array.from({ length: perRound }, (_, at) => htmlOf(number + at))
    const before = process.cpuUsage()
    for (const html of mails) await renderOne(number++, html)
    const { user, system } = process.cpuUsage(before)
    // The first warms up.
    if (round > 0) times.push((user + system) / 1_000 / perRound)
  }
  return { length: Buffer.byteLength(htmlOf(0)), ms: Math.round(1_000 * median(times)) / 1_000 }
}

const letter = await measure(letterHtml)
const newsletter = await measure(newsletterHtml)
process.stdout.write(JSON.stringify({ letter, newsletter }))
