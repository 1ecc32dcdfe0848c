/**
 * What the submission listener does with its clients: who may log in, and who needs not to.
 *
 * The SMTP engine speaks the protocol (`smtp/`); this decides. A message itself is `submission-transaction.ts`.
 * A session can last for hours, so what its key may do is asked again for each message.
 * Standards: RFC 6409 (message submission), RFC 4954 (AUTH), RFC 8314 §3. Fails: with the reply codes of the error table;
 * 454 4.7.0 after too many failed logins.
 */
import { AppError } from '../../core/errors.js'
import { mayDo, type Authenticate, type Principal } from '../../http/principal.js'
import { SmtpRefusal, type MailReceiver, type SessionFacts } from '../../smtp/receiver.js'
import { NetworkList } from '../../world/net/ip-address.js'
import type { LoginGuard } from './login-guard.js'
import { SubmissionTransaction, type RelayParts } from './submission-transaction.js'
import type { Submitter } from './submitter.js'

export interface SubmissionParts extends RelayParts {
  readonly authenticate: Authenticate
  /** The key with this id; asked for each message, so it remembers for a moment. @throws AppError unauthorized, workspace_not_found */
  readonly principalOfKey: (keyId: string) => Promise<Principal>
  readonly guard: LoginGuard
  /** Devices that cannot authenticate; the first network that holds the address counts. Asked for each connection. */
  readonly trustedNetworks: readonly { readonly network: string; readonly key: string }[]
}

interface Trusted {
  readonly list: NetworkList
  readonly key: string
}

/** Made ready once for each reading of the configuration. */
export function trustedNetworks(parts: Pick<SubmissionParts, 'trustedNetworks'>): () => readonly Trusted[] {
  let [known, ready]: [unknown, readonly Trusted[]] = [undefined, []]
  return () => {
    const { trustedNetworks: now } = parts
    if (now !== known) {
      known = now
      ready = now.map(({ network, key }) => ({ list: new NetworkList([network]), key }))
    }
    return ready
  }
}

/** As user name it says nothing; the password is the key. */
const ANY_WORKSPACE = 'apikey'

export function openSubmissionReceiver(parts: SubmissionParts): MailReceiver<Submitter> {
  const { guard } = parts
  const trusted = trustedNetworks(parts)

  return {
    async connect({ peerAddress }) {
      const match = trusted().find(({ list }) => list.contains(peerAddress))
      if (match === undefined) return undefined
      try {
        return { principal: await parts.principalOfKey(match.key), isTrusted: true }
      } catch (error) {
        if (!(error instanceof AppError)) throw error
        // The device cannot log in, so without that key it can only be told that the server is not ready for it.
        parts.log.warn('trusted network key rejected', {
          network: peerAddress,
          key: match.key,
        })
        return undefined
      }
    },
    async authenticate(session, username, password) {
      const waitMs = guard.lockedForMs(session.peerAddress, password)
      if (waitMs > 0) throw lockedOut(waitMs)
      try {
        const principal = await parts.authenticate(password)
        if (username.toLowerCase() !== ANY_WORKSPACE && username !== principal.liveWorkspaceId)
          throw new AppError(
            'unauthorized',
            'the user name is neither `apikey` nor the workspace of this key',
          )
        guard.succeeded(session.peerAddress, password)
        return { principal, isTrusted: false }
      } catch (error) {
        if (error instanceof AppError && LOGIN_FAILURES.has(error.code)) refuseFailure(session, password)
        throw error
      }
    },
    keyIdOf: ({ principal }) => principal.keyId,
    async beginMail(session, submitter, mail) {
      if (submitter === undefined) throw new SmtpRefusal(530, '5.7.0', 'Log in first')
      const { isTrusted } = submitter
      const principal = await parts.principalOfKey(submitter.principal.keyId)
      if (!mayDo(principal, 'smtp:send'))
        throw new AppError('forbidden', 'this key lacks the permission smtp:send')
      parts.database.storage.requireRoom()
      return new SubmissionTransaction(parts, session, { principal, isTrusted }, mail)
    },
  }

  /** @throws SmtpRefusal where the address is throttled; otherwise the client gets the reason */
  function refuseFailure({ peerAddress }: SessionFacts, password: string): void {
    const { lockedOut: where, throttledForMs } = guard.failed(peerAddress, password)
    if (where !== undefined)
      parts.log.warn('submission login locked', {
        ...{ peer: peerAddress, where, lockoutMs: guard.lockoutMs },
      })
    if (throttledForMs > 0) throw lockedOut(throttledForMs)
  }
}

/** Errors that say the credentials are wrong; others, e.g. a database that cannot be read, are not the client's. */
const LOGIN_FAILURES: ReadonlySet<string> = new Set(['unauthorized', 'workspace_not_found'])

/** 454 and not 535 (RFC 4954 §6): the client may try the same password again later. */
function lockedOut(waitMs: number): SmtpRefusal {
  const minutes = Math.ceil(waitMs / 60_000)
  return new SmtpRefusal(454, '4.7.0', `Too many failed logins, try again in ${minutes} min`, false)
}
