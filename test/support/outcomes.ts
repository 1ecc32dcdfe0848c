/** Outcomes of each kind, as a delivery agent would report them. */
import type { Bounced, Deferred, Delivered, HostTried, Stage, Unsendable } from '../../src/mail/outcome.js'

export function tried(stage: Stage): HostTried {
  return { host: 'mx.x.example', address: '192.0.2.1', port: 25, stage, durationMs: 5, reused: false }
}

export const delivered: Delivered = {
  kind: 'delivered',
  remoteMta: 'mx.x.example',
  summary: 'mx.x.example took it',
  reply: { code: 250, enhanced: '2.0.0', text: 'queued as 17' },
  tried: [tried('final_dot')],
}

/** Put off by the server's answer to RCPT. */
export const deferred: Deferred = {
  kind: 'deferred',
  cause: 'transient',
  scope: 'address',
  permanence: 'transient',
  subtype: 'greylisted',
  summary: 'mx.x.example answered 451 4.7.1 come back later',
  reply: { code: 451, enhanced: '4.7.1', text: 'come back later' },
  remoteMta: 'mx.x.example',
  tried: [tried('rcpt')],
}

/** Nobody answered: the message was offered to no server. */
export const unreachable: Deferred = {
  kind: 'deferred',
  cause: 'transient',
  scope: 'domain',
  permanence: 'transient',
  subtype: 'host_unreachable',
  summary: 'no host could be reached',
  remoteMta: 'mx.x.example',
  tried: [{ ...tried('connect'), error: 'connection refused' }],
}

export const bounced: Bounced = {
  kind: 'bounced',
  cause: 'recipient',
  scope: 'address',
  permanence: 'permanent',
  subtype: 'no_such_mailbox',
  status: '5.1.1',
  summary: 'mx.x.example answered 550 5.1.1 no such user',
  reply: { code: 550, enhanced: '5.1.1', text: 'no such user' },
  remoteMta: 'mx.x.example',
  tried: [tried('rcpt')],
}

export const unsendable: Unsendable = {
  kind: 'unsendable',
  summary: 'the subject holds a line break',
  tried: [],
}
