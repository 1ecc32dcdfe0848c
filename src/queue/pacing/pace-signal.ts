/**
 * What an outcome says about a site's willingness, for `site-pace.ts`. Pure.
 *
 *   success      it took a message
 *   neutral      it works, and said something about this message, its recipient or its sender only
 *   busy         it has trouble of its own (421, server busy): fewer at a time
 *   asked        it told us to slow down: fewer at a time, and a rest
 *   unreachable  nobody answered, or the session broke
 *   none         nothing: no server was asked, or the failure is our own
 */
import type { Classification, Outcome } from '../../mail/outcome.js'

export type PaceSignal =
  | { readonly kind: 'success' | 'neutral' | 'busy' | 'unreachable' | 'none' }
  /** `waitMs` where the reply named a time. */
  | { readonly kind: 'asked'; readonly waitMs: number | undefined }

/** Failures that are ours or nobody's: they say nothing about the site. */
const OWN_FAILURES: ReadonlySet<string> = new Set([
  'shutdown',
  'internal_error',
  'worker_lost',
  'signing_key',
])

/**
 * Failures that one message, or the one domain it is for, has with a site that may serve thousands of others: what it
 * needs and the host has not, and what the domain's own records forbid.
 */
const OF_ONE_MESSAGE: ReadonlySet<string> = new Set([
  'smtputf8_unsupported',
  '8bitmime_unsupported',
  'message_too_big',
  'mta_sts_failure',
  'address_not_public',
])

const BUSY: ReadonlySet<string> = new Set(['server_busy', 'system_full', 'system_failure', 'network_failure'])

export function paceSignal(outcome: Outcome): PaceSignal {
  switch (outcome.kind) {
    case 'delivered':
      return { kind: 'success' }
    case 'unsendable':
      return { kind: 'none' }
    case 'bounced':
      return { kind: outcome.reply === undefined ? 'none' : 'neutral' }
    case 'deferred':
      if (OWN_FAILURES.has(outcome.subtype)) return { kind: 'none' }
      if (OF_ONE_MESSAGE.has(outcome.subtype)) return { kind: 'neutral' }
      if (outcome.reply === undefined) return { kind: 'unreachable' }
      if (isAboutOurPace(outcome)) return { kind: 'asked', waitMs: outcome.retryAfterMs }
      return { kind: outcome.reply.code === 421 || BUSY.has(outcome.subtype) ? 'busy' : 'neutral' }
  }
}

/** Greylisting names a time as well, but for one recipient only: its scope is the address. */
function isAboutOurPace({ cause, scope }: Classification): boolean {
  return scope === 'source' && cause !== 'config'
}
