/** Which of several failed hosts decides the outcome, and when it is permanent. */
import t from 'tap'
import { paceSignal } from '../../src/queue/pacing/site-pace.js'
import type { FakeZone } from '../../src/world/dns/fake-dns.js'
import { scriptedServer, type ScriptedServer } from '../support/smtp/scripted-server.js'
import { until } from '../support/until.js'
import { goOn, makeJob, testMta, timeouts, type Place } from '../support/smtp/mta.js'

const twoExchangers: FakeZone = {
  'example.com': { MX: ['10 mx1.example', '20 mx2.example'] },
  'mx1.example': { A: ['192.0.2.1'] },
  'mx2.example': { A: ['192.0.2.2'] },
}

const greeted = `
  S 220 mx.example ESMTP
  C EHLO ...`

const atRecipient = (reply: string) => `${greeted}
  S 250 mx.example
  C MAIL ...
  S 250 ok
  C RCPT ...
  S ${reply}`

const accepts = (...extensions: string[]) => `${greeted}
  S 250-mx.example
  ${extensions.map(extension => `S 250-${extension}\n`).join('')}
  S 250 HELP
  C MAIL ...
  S 250 ok
  C RCPT ...
  S 250 ok
  C DATA
  S 354 go on
  M
  S 250 ok`

const greylists = atRecipient('451 4.7.1 Greylisted, try again in 300 seconds')

async function deliver(
  t: Parameters<typeof testMta>[0],
  places: Record<string, Place>,
  {
    recipient = 'ann@example.com',
    zone = twoExchangers,
    ...job
  }: Parameters<typeof makeJob>[0] & { zone?: FakeZone } = {},
) {
  const { agent } = testMta(t, places, { zone })
  return agent.deliver(makeJob({ recipient, ...job }), goOn)
}

t.test('if the primary greylists and the backup is dead, the outcome is greylisted', async t => {
  const primary = await scriptedServer(t, greylists)
  const outcome = await deliver(t, { '192.0.2.1': primary })
  t.match(outcome, {
    kind: 'deferred',
    subtype: 'greylisted',
    scope: 'address',
    retryAfterMs: 300_000,
    reply: { code: 451 },
    remoteMta: 'mx1.example',
    summary: /^mx1\.example answered 451/,
    tried: [{ host: 'mx1.example' }, { host: 'mx2.example', error: 'connection refused' }],
  })
  t.same(paceSignal(outcome), { kind: 'neutral' }, 'a dead backup is no reason to let the site rest')
})

t.test('a backup that drops packets does not hide that the primary is full', async t => {
  const primary = await scriptedServer(t, atRecipient('452 4.2.2 mailbox full'))
  const places: Record<string, Place> = { '192.0.2.1': primary, '192.0.2.2': 'silent' }
  const { agent, clock, dialler } = testMta(t, places, { zone: twoExchangers })
  const delivery = agent.deliver(makeJob(), goOn)
  await until('the backup to be dialled', () => dialler.dialled.includes('192.0.2.2'))
  await clock.advance(timeouts.connectMs)
  t.match(await delivery, { kind: 'deferred', subtype: 'mailbox_full', remoteMta: 'mx1.example' })
})

t.test('a reply about the message outweighs one at the greeting, in either order', async t => {
  const busy = 'S 421 4.3.2 too busy'
  for (const scripts of [
    [busy, greylists],
    [greylists, busy],
  ] as const) {
    const places = {
      '192.0.2.1': await scriptedServer(t, scripts[0]),
      '192.0.2.2': await scriptedServer(t, scripts[1]),
    }
    t.match(await deliver(t, places), { kind: 'deferred', subtype: 'greylisted' })
  }
})

t.test('a broken session outweighs an unreachable host, and a reply outweighs both', async t => {
  const breaks = `${greeted}\nCLOSE`
  const first = await scriptedServer(t, breaks)
  t.match(await deliver(t, { '192.0.2.1': first }), {
    subtype: 'connection_lost',
    remoteMta: 'mx1.example',
  })
  const second = await scriptedServer(t, breaks)
  t.match(await deliver(t, { '192.0.2.2': second }), {
    subtype: 'connection_lost',
    remoteMta: 'mx2.example',
  })
  const places = {
    '192.0.2.1': await scriptedServer(t, greylists),
    '192.0.2.2': await scriptedServer(t, breaks),
  }
  t.match(await deliver(t, places), { subtype: 'greylisted', remoteMta: 'mx1.example' })
})

t.test('a dead idle connection has no influence on the outcome', async t => {
  const server = await scriptedServer(
    t,
    `${accepts()}
     C RSET
     S 421 4.4.2 idle for too long`,
    `${greeted}\nCLOSE`,
  )
  const { agent } = testMta(t, { '*': server })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'delivered' })
  t.match(await agent.deliver(makeJob(), goOn), { kind: 'deferred', subtype: 'connection_lost' })
})

t.test('a rejection at the greeting defers the message, even if every host rejects', async t => {
  const closed = 'S 554 5.7.1 no service for you'
  const first = await scriptedServer(t, closed)
  const alone = await deliver(t, { '192.0.2.1': first })
  t.match(alone, {
    kind: 'deferred',
    permanence: 'transient',
    reply: { code: 554 },
    remoteMta: 'mx1.example',
  })
  const both = { '192.0.2.1': await scriptedServer(t, closed), '192.0.2.2': await scriptedServer(t, closed) }
  t.match(await deliver(t, both), {
    kind: 'deferred',
    permanence: 'transient',
    reply: { code: 554 },
    summary:
      'mx1.example refused this server at the greeting, which says nothing about the recipient: 554 5.7.1 no service for you',
    tried: [
      { host: 'mx1.example', stage: 'greeting' },
      { host: 'mx2.example', stage: 'greeting' },
    ],
  })
})

for (const reply of [
  '554 Blocked - see https://example.com/block',
  '521 5.3.2 no mail here',
  '550 5.1.1 user unknown',
])
  t.test(`"${reply}" at the greeting of the only host defers the message`, async t => {
    const closed = await scriptedServer(t, `S ${reply}`)
    t.match(await deliver(t, { '*': closed }, { zone: { 'example.com': { A: ['192.0.2.1'] } } }), {
      kind: 'deferred',
      cause: 'policy',
      summary: /refused this server at the greeting/,
    })
  })

t.test('a host that rejects EHLO and HELO defers the message', async t => {
  const script = 'S 220 mx.example ESMTP \n C EHLO ... \n S 550 5.7.1 no \n C HELO ... \n S 550 5.7.1 no'
  const zone = { 'example.com': { A: ['192.0.2.1'] } }
  t.match(await deliver(t, { '*': await scriptedServer(t, script) }, { zone }), {
    kind: 'deferred',
    summary: /refused this server at EHLO, which says nothing about the recipient: 550/,
  })
})

t.test('a verdict about the recipient outweighs a refusal at the greeting', async t => {
  const places = {
    '192.0.2.1': await scriptedServer(t, 'S 554 5.7.1 no service for you'),
    '192.0.2.2': await scriptedServer(t, atRecipient('550 5.1.1 no such user')),
  }
  t.match(await deliver(t, places), { kind: 'bounced', subtype: 'no_such_mailbox', remoteMta: 'mx2.example' })
})

t.test('if not all hosts were tried, their rejections are not final', async t => {
  const names = Array.from({ length: 500 }, (_, index) => `mx${index}.example`)
  const zone: FakeZone = { 'example.com': { MX: names.map((name, index) => `${index} ${name}`) } }
  names.forEach((name, index) => (zone[name] = { A: [`198.51.${100 + (index >> 8)}.${index & 255}`] }))
  const closed = Array.from({ length: 10 }, () => 'S 554 5.7.1 no service for you')
  t.match(await deliver(t, { '*': await scriptedServer(t, ...closed) }, { zone }), {
    kind: 'deferred',
    permanence: 'transient',
    reply: { code: 554 },
  })
})

t.test('a host counts by the address that answered', async t => {
  const zone = {
    'example.com': { MX: ['10 mx.example'] },
    'mx.example': { A: ['192.0.2.1'], AAAA: ['2001:db8::1'] },
  }
  const closed = await scriptedServer(t, 'S 554 5.7.1 no service for you')
  t.match(await deliver(t, { '192.0.2.1': closed }, { zone }), {
    kind: 'deferred',
    reply: { code: 554 },
    summary: /refused this server at the greeting/,
  })
})

const jürgen = { recipient: 'jürgen@example.com' }
const big = {
  content: { kind: 'composed', from: { address: 'a@b.example' }, subject: 's', text: 'x'.repeat(90) },
} as const
const eightBitSigned = {
  content: {
    kind: 'relayed' as const,
    subject: '',
    message: Buffer.from(
      'From: a@b.example\r\nContent-Type: multipart/signed; boundary=x\r\n\r\n--x\r\n\r\nüü\r\n--x--\r\n',
    ),
  },
}

for (const [what, extension, job, subtype, status] of [
  ['knows no SMTPUTF8', 'SMTPUTF8', jürgen, 'smtputf8_unsupported', '5.6.7'],
  ['takes smaller messages only', 'SIZE 100000', big, 'message_too_big', '5.3.4'],
  ['knows no 8BITMIME', '8BITMIME', eightBitSigned, '8bitmime_unsupported', '5.6.3'],
] as const) {
  const cannot = `${greeted}\nS 250 ${extension.startsWith('SIZE') ? 'SIZE 100' : 'HELP'}`
  const withHelo = cannot.replace(/S 250 (\S.*)$/, 'S 250-mx.example\nS 250 $1')

  t.test(`if the first host ${what}, the next one gets the message`, async t => {
    const places = {
      '192.0.2.1': await scriptedServer(t, withHelo),
      '192.0.2.2': await scriptedServer(t, accepts(extension)),
    }
    t.match(await deliver(t, places, job), { kind: 'delivered', remoteMta: 'mx2.example' })
  })

  t.test(`if every host ${what}, the message bounces without counting against the recipient`, async t => {
    const places: Record<string, ScriptedServer> = {
      '192.0.2.1': await scriptedServer(t, withHelo),
      '192.0.2.2': await scriptedServer(t, withHelo),
    }
    const outcome = await deliver(t, places, job)
    t.match(outcome, {
      kind: 'bounced',
      cause: 'content',
      scope: 'domain',
      permanence: 'permanent',
      subtype,
      status,
    })
  })

  t.test(`if one host ${what} and the other is unreachable, the message is deferred`, async t => {
    const outcome = await deliver(t, { '192.0.2.1': await scriptedServer(t, withHelo) }, job)
    t.match(outcome, { kind: 'deferred', permanence: 'transient', subtype, remoteMta: 'mx1.example' })
    t.same(paceSignal(outcome), { kind: 'neutral' })
  })
}

t.test('a host that rejects the size at MAIL leaves the message to the next one', async t => {
  const tooBig = `${greeted}
    S 250 mx.example
    C MAIL ...
    S 552 5.3.4 message size exceeds fixed limit`
  const places = {
    '192.0.2.1': await scriptedServer(t, tooBig),
    '192.0.2.2': await scriptedServer(t, accepts()),
  }
  t.match(await deliver(t, places), { kind: 'delivered', remoteMta: 'mx2.example' })
  const refused = {
    '192.0.2.1': await scriptedServer(t, tooBig),
    '192.0.2.2': await scriptedServer(t, tooBig),
  }
  t.match(await deliver(t, refused), { kind: 'bounced', status: '5.3.4', cause: 'content' })
})

const atSender = (reply: string) => `${greeted}
  S 250 mx.example
  C MAIL ...
  S ${reply}`

for (const [command, dialogue, reply, subtype] of [
  ['MAIL', atSender, '530 5.7.0 Must issue a STARTTLS command first', 'tls_required'],
  ['MAIL', atSender, '530 5.7.0 Authentication required', 'authentication_required'],
  [
    'RCPT',
    atRecipient,
    '504 5.5.2 <localhost>: Helo command rejected: need fully-qualified hostname',
    'helo_refused',
  ],
  ['RCPT', atRecipient, '550 5.7.1 <mx>: Helo command rejected: Host not found', 'helo_refused'],
] as const) {
  t.test(`"${reply}" to ${command} is about this server, so the next host is tried`, async t => {
    const first = await scriptedServer(t, dialogue(reply))
    const second = await scriptedServer(t, accepts())
    t.match(await deliver(t, { '192.0.2.1': first, '192.0.2.2': second }), { kind: 'delivered' })
  })

  t.test(`"${reply}" to ${command} by every host defers the message`, async t => {
    const refusing = () => scriptedServer(t, dialogue(reply))
    const outcome = await deliver(t, { '192.0.2.1': await refusing(), '192.0.2.2': await refusing() })
    t.match(outcome, {
      kind: 'deferred',
      subtype,
      summary: `mx1.example refused this server at ${command}, which says nothing about the recipient: ${reply}`,
    })
  })
}

t.test('an address kept to members ("550 authentication required") bounces', async t => {
  const reply = '550 5.7.133 SenderNotAuthenticatedForGroup; authentication required'
  t.match(await deliver(t, { '192.0.2.1': await scriptedServer(t, atRecipient(reply)) }), { kind: 'bounced' })
})
