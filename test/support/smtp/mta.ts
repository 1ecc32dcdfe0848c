/**
 * The outgoing side as tests need it: an SMTP agent in a declared world, jobs for it, and a dialler that maps the
 * addresses of that world to servers on the loopback.
 */
import type { DeliveryAgent, DeliveryJob } from '../../../src/queue/delivery-agent.js'
import type { ComposedContent } from '../../../src/mail/compose/compose.js'
import type { LinkOptions } from '../../../src/mta/render.js'
import { DEFAULT_POOL_LIMITS, type Timeouts } from '../../../src/mta/mta-options.js'
import { openSession, type SmtpSession } from '../../../src/mta/smtp/smtp-session.js'
import { openSmtpAgent, type SmtpAgentParts } from '../../../src/mta/smtp-agent.js'
import { openDialler, type Dialler } from '../../../src/world/net/dial.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { fakeDns, type FakeZone } from '../../../src/world/dns/fake-dns.js'
import { SeededRandom } from '../../../src/world/fake-random.js'
import { assertAllowed, PUBLIC_ONLY, type EgressPolicy } from '../../../src/world/net/egress-policy.js'
import type { SystemLookup } from '../../../src/world/dns/host-lookup.js'

/** RFC 5321 §4.5.3.2, with connecting made shorter than the dialogue so that tests can distinguish the two. */
export const timeouts: Timeouts = {
  attemptMs: 600_000,
  connectMs: 30_000,
  starttlsMs: 40_000,
  greetingMs: 300_000,
  mailMs: 300_000,
  rcptMs: 300_000,
  dataMs: 120_000,
  blockMs: 180_000,
  finalDotMs: 600_000,
  quitMs: 5_000,
}

/** What the links in mail are made with. */
export const LINKS: LinkOptions = {
  secrets: [{ version: 1, secret: Buffer.alloc(32, 'l') }],
  publicUrl: 'https://mail.sender.example',
  unsubscribeDomain: 'bounce.sender.example',
  unsubscribeKey: { version: 1, secret: Buffer.alloc(32, 'r') },
}

/** What is at an address: a server, nothing (`refused`), or a hole that swallows packets (`silent`). */
export type Place = { readonly port: number } | 'refused' | 'silent'

export interface MappedDialler extends Dialler {
  /** Addresses dialled, in order, with source address where one was given: `192.0.2.1`, `192.0.2.1 from 192.0.2.7`. */
  readonly dialled: readonly string[]
}

/**
 * @param places by IP address; `*` stands for every other address
 * @param trusted certificates to trust beside the system's
 */
export function mappedDialler(
  clock: FakeClock,
  places: Record<string, Place>,
  trusted?: Buffer,
  egress: EgressPolicy = PUBLIC_ONLY,
): MappedDialler {
  const real = openDialler(clock)
  const dialled: string[] = []
  return {
    dialled,
    async connect({ address, timeoutMs, localAddress, ...target }) {
      assertAllowed(egress, target, address)
      dialled.push(localAddress === undefined ? address : `${address} from ${localAddress}`)
      const place = places[address] ?? places['*'] ?? 'refused'
      if (place === 'refused')
        return Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }))
      if (place === 'silent')
        return new Promise((_, reject) => {
          const fail = (code: string) => () => reject(Object.assign(new Error(code), { code }))
          clock.after(timeoutMs, fail('ETIMEDOUT'))
          target.signal?.addEventListener('abort', fail('ABORT_ERR'), { once: true })
        })
      return real.connect({
        ...target,
        namedBy: 'operator',
        address: '127.0.0.1',
        port: place.port,
        timeoutMs,
      })
    },
    secure: (socket, options) =>
      real.secure(socket, { ...options, ...(trusted === undefined ? {} : { ca: trusted }) }),
  }
}

/** One domain, one exchanger, one address. */
export const simpleZone: FakeZone = {
  'example.com': { MX: ['10 mx.example'] },
  'mx.example': { A: ['192.0.2.25'] },
}

export const noSystemNames: SystemLookup = async () => ({ kind: 'missing', why: 'nxdomain', ttlSeconds: 0 })

export interface TestMta {
  readonly agent: DeliveryAgent
  readonly clock: FakeClock
  readonly dialler: MappedDialler
}

export interface MtaSetting extends Partial<Omit<SmtpAgentParts, 'resolver' | 'dialler' | 'clock'>> {
  readonly zone?: FakeZone
  readonly trusted?: Buffer
}

/** An agent whose world holds these places; everything else has a sensible default. */
export function testMta(
  t: { teardown(end: () => Promise<void>): unknown },
  places: Record<string, Place>,
  { zone = simpleZone, trusted, egress = PUBLIC_ONLY, ...parts }: MtaSetting = {},
): TestMta {
  const clock = new FakeClock()
  const dialler = mappedDialler(clock, places, trusted, egress)
  const agent = openSmtpAgent({
    clock,
    dialler,
    resolver: fakeDns(zone),
    systemLookup: noSystemNames,
    random: new SeededRandom(),
    hostname: 'mail.sender.example',
    port: 25,
    egress,
    routes: [],
    ownAddresses: [],
    sourceAddresses: [],
    timeouts,
    pool: DEFAULT_POOL_LIMITS,
    ...parts,
  })
  t.teardown(async () => {
    const closed = agent.close()
    await clock.advance(timeouts.quitMs)
    await closed
  })
  return { agent, clock, dialler }
}

/** A session in clear with the server behind the dialler, ready for a message. */
export async function openTestSession(clock: FakeClock, dialler: Dialler): Promise<SmtpSession> {
  const opening = await openSession(
    { clock, dialler, hostname: 'mail.sender.example', timeouts },
    {
      host: 'mx.example',
      address: '192.0.2.25',
      port: 25,
      tls: 'none',
      tlsSource: 'route',
      implicitTls: false,
    },
    { skipStartTls: false, deadline: Infinity, signal: goOn },
  )
  if ('result' in opening) throw new Error('no session')
  return opening.session
}

/** A job ready to be sent. */
export const LETTER: ComposedContent = {
  kind: 'composed',
  from: { name: 'Shop', address: 'shop@sender.example' },
  subject: 'Your order',
  text: 'It is on its way.\n',
}

export function makeJob(parts: Partial<DeliveryJob> = {}): DeliveryJob {
  return {
    messageId: '01890a5d-ac96-774b-bcce-b302099a8057',
    workspaceId: '01890a5d-ac96-774b-bcce-b302099a8058',
    envelopeSender: 'b+token@bounce.sender.example',
    recipient: 'ann@example.com',
    attempt: 1,
    acceptedAt: Date.UTC(2026, 0, 5, 9, 59),
    content: LETTER,
    signingKeys: [],
    ...parts,
  }
}

/** A signal that never aborts. */
export const goOn: AbortSignal = new AbortController().signal
