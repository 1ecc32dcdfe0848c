/**
 * Decides who may submit mail on the submission listener, by login or by trusted network.
 *
 * The SMTP engine (`smtp/`) speaks the protocol; `submission-transaction.ts` takes each message. A session can last for hours, so the
 * key's permissions are rechecked for each message.
 * Standards: RFC 6409 (message submission), RFC 4954 (AUTH), RFC 8314 §3. Fails: with the error table's reply codes; 454 4.7.0
 * after too many failed logins.
 */
import { AppError } from '../../core/errors.js'
import { mayDo, type Authenticate, type Principal } from '../../http/principal.js'
import { parseAddress } from '../../mail/address.js'
import { SmtpRefusal, type MailReceiver, type SessionFacts } from '../../smtp/receiver.js'
import { NetworkList } from '../../world/net/ip-address.js'
import type { Attempt, Login, LoginGuard } from '../../accounts/login-guard.js'
import { SubmissionTransaction, type RelayParts } from './submission-transaction.js'
import type { Submitter } from './relay-mail.js'

export interface SubmissionParts extends RelayParts {
  readonly authenticate: Authenticate
  /** Finds a key by id; called for each message, so cached briefly. @throws AppError unauthorized, workspace_not_found */
  readonly principalOfKey: (keyId: string) => Promise<Principal>
  readonly guard: LoginGuard
  /** Networks of devices that cannot log in; the first match applies. Read at each connection. */
  readonly trustedNetworks: readonly { readonly network: string; readonly key: string }[]
}

interface Trusted {
  readonly list: NetworkList
  readonly key: string
}

/** Parses the networks once per configuration reload. */
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

/** The user name for any workspace; the password is the key. */
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
        // The device cannot log in, so it is served as an untrusted client.
        parts.log.warn('trusted network key rejected', {
          network: peerAddress,
          key: match.key,
        })
        return undefined
      }
    },
    async authenticate(session, username, password) {
      const attempt = await guard.reserve(session.peerAddress, loginOf(password))
      if (typeof attempt === 'number') throw lockedOut(attempt)
      try {
        const principal = await parts.authenticate(password)
        if (username.toLowerCase() !== ANY_WORKSPACE && username !== principal.liveWorkspaceId)
          throw new AppError(
            'unauthorized',
            'the user name is neither `apikey` nor the workspace of this key',
          )
        await attempt.succeeded()
        return { principal, isTrusted: false }
      } catch (error) {
        if (error instanceof AppError && LOGIN_FAILURES.has(error.code)) await refuseFailure(session, attempt)
        else await attempt.release()
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
      // Notifications are sent there, and most hosts would refuse them.
      if (parseAddress(mail.address)?.needsSmtpUtf8)
        throw new SmtpRefusal(553, '5.6.7', 'The sender must be ASCII before the @')
      return new SubmissionTransaction(parts, session, { principal, isTrusted }, mail)
    },
  }

  /** @throws SmtpRefusal if the address is throttled; otherwise the caller reports the reason */
  async function refuseFailure({ peerAddress }: SessionFacts, attempt: Attempt): Promise<void> {
    const { lockedOut: where, throttledForMs } = await attempt.failed()
    if (where !== undefined)
      parts.log.warn('submission login locked', {
        peer: peerAddress,
        where,
        lockoutMs: guard.lockoutMs,
      })
    if (throttledForMs > 0) throw lockedOut(throttledForMs)
  }
}

/** `ts_live_` and six characters: 36 bits, so random guesses never hit a real key's account. */
const ACCOUNT_CHARACTERS = 14

/** Everybody logs in as `apikey`, so an account is the start of the password. */
function loginOf(password: string): Login {
  return { account: password.slice(0, ACCOUNT_CHARACTERS), password, isAccountSecret: true }
}

/** Errors that mean wrong credentials; others, such as a database error, do not count against the client. */
const LOGIN_FAILURES: ReadonlySet<string> = new Set(['unauthorized', 'workspace_not_found'])

/** 454 and not 535 (RFC 4954 §6): the client may try the same password again later. */
function lockedOut(waitMs: number): SmtpRefusal {
  const minutes = Math.ceil(waitMs / 60_000)
  return new SmtpRefusal(454, '4.7.0', `Too many failed logins, try again in ${minutes} min`, false)
}
