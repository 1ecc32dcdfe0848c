/**
 * A program of its own: how many mails one core fills in per second, with click links and pixel, and whether its memory stays flat.
 *
 * Started by `scenarios/render.ts`. Arguments: HTML, renderings. Prints `{"perSecond": N, "firstMegabytes": N, "lastMegabytes": N}`:
 * renderings per second of CPU time, and the heap after a collection, early and at the end.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { ComposedContent } from '../src/mail/compose/compose.js'
import type { JobContent } from '../src/queue/delivery-agent.js'
import { openMailLinks, openPersonalizer } from '../src/mta/render.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const [html = '', count = '0'] = process.argv.slice(2)
const total = Number(count)
const secret = { version: 1, secret: Buffer.alloc(32, 's') }
const fillIn = openPersonalizer(
  openMailLinks({
    secrets: [secret],
    publicUrl: 'https://mail.bench.example',
    unsubscribeDomain: 'bounce.bench.example',
    unsubscribeKey: secret,
  }),
)
const brand = { companyName: 'Bench', companyAddress: '1 Main Street', attribution: true, timezone: 'UTC' }
const data = { order: { id: 7 }, city: 'Bern', code: 'A-1' }
const merging = { brand, hasFooter: true, data, tracking: { opens: true, clicks: {} } }
const content: ComposedContent & JobContent = {
  kind: 'composed',
  from: { address: 'news@bench.example' },
  subject: 'News for {{firstName|you}}',
  html,
  merging,
}

function fill(number: number): number {
  const id = number.toString(16).padStart(12, '0')
  const contact = {
    email: `reader${number}@d.example`,
    firstName: `Reader ${number}`,
    lastName: 'Müller',
    attributes: { plan: 'gold', points: number, company: 'Acme & Co' },
  }
  const filled = fillIn(
    {
      messageId: `0192f3a4-5b6c-7d8e-9f01-${id}`,
      workspaceId: '0192f3a4-5b6c-7d8e-9f01-000000000000',
      envelopeSender: '',
      recipient: contact.email,
      attempt: 1,
      acceptedAt: 1_767_607_200_000,
      content,
      mergeValues: { contact },
      signingKeys: [],
    },
    content,
    merging,
  )
  // V8 flattens a text joined from pieces when it is first read.
  return [filled.subject, filled.html ?? '', filled.text ?? ''].reduce((sum, text) => {
    const written = typeof text === 'string' ? text : text.encoded
    return sum + written.charCodeAt(written.length - 1)
  }, 0)
}

function megabytes(): number {
  collect()
  return Math.round(process.memoryUsage().heapUsed / 2 ** 18) / 4
}

for (let number = 0; number < total / 10; number += 1) fill(number)
const firstMegabytes = megabytes()
const before = process.cpuUsage()
for (let number = 0; number < total; number += 1) fill(number)
const { user, system } = process.cpuUsage(before)
const perSecond = Math.round((total * 1_000_000) / (user + system))
process.stdout.write(JSON.stringify({ perSecond, firstMegabytes, lastMegabytes: megabytes() }))
