/**
 * The appliance's own mail: one-time links to operators, for invitations, resets and lost passwords.
 *
 * It belongs to no workspace and is never stored: a row says who gets which kind of link, and the link is made when an attempt begins, in the
 * transaction that begins it. Database and backups therefore hold only the link's hash; no log, view or webhook shows the mail. It is
 * sent from the null return path, so that no returned mail brings the link back. Its text is the appliance's alone, without names that operators choose.
 * With `mta.capture` the link goes to the server's log instead. An attempt that was cut off is repeated with a new link.
 */
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import { describeError } from '../../core/errors.js'
import { escapeHtml } from '../../core/escape-html.js'
import type { Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { composeNotice } from '../../mail/compose/notice.js'
import { WHEN_WOKEN, Worker } from '../../world/time/worker.js'
import {
  claimAccountMail,
  insertAccountMail,
  listDueAccountMails,
  recordAccountMail,
  soonestAccountMail,
  type AccountMail,
  type AccountMailKind,
  type AccountMailResult,
} from './account-mail-store.js'
import { hashToken } from './access.js'
import { setInvitationLink } from './invitation-store.js'
import { LINK_LIFETIME_MS, newLink, signInUrl } from './links.js'
import { deleteMailedLinks, insertLink } from './session-store.js'

/** A composed mail for one attempt. */
export interface AccountLetter {
  readonly id: string
  readonly recipient: string
  /** 1 for the first. */
  readonly attempt: number
  readonly createdAt: number
  readonly subject: string
  /** With CRLF line endings. */
  readonly message: Buffer
}

/** `reason` is one sentence for people. */
export type Posted =
  | { readonly kind: 'delivered'; readonly reason: string; readonly isCaptured: boolean }
  | { readonly kind: 'deferred'; readonly reason: string; readonly retryAfterMs?: number }
  | { readonly kind: 'failed'; readonly reason: string }

/** Makes one attempt by the ordinary routes. Rejects only on database errors. */
export type PostAccountMail = (letter: AccountLetter, signal: AbortSignal) => Promise<Posted>

export interface AccountMailerParts extends Pick<
  Services,
  'database' | 'clock' | 'random' | 'log' | 'newId' | 'hostname' | 'publicUrl'
> {
  /** Author of the mail. */
  readonly accountMailFrom: string
  readonly postAccountMail: PostAccountMail
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** How long a mail is tried. */
const RETRIED_MS: Readonly<Record<AccountMailKind, number>> = {
  invitation: 48 * HOUR_MS,
  join: 48 * HOUR_MS,
  reset: 4 * HOUR_MS,
  lost: HOUR_MS,
}
const RETRY: BackoffPolicy = { firstMs: MINUTE_MS, factor: 2, maxMs: HOUR_MS }
/** Attempts at a time; a slow host occupies one of them. */
const MAX_IN_HAND = 16
const ATTEMPT_MS = 5 * MINUTE_MS
/** When an attempt is begun again whose process died. */
const CLAIM_MS = 3 * ATTEMPT_MS
const MAX_REASON = 500

export interface WantedAccountMail {
  readonly kind: AccountMailKind
  readonly recipient: string
  readonly operatorId?: string
  /** Of `join`. */
  readonly invitationId?: string
}

export class AccountMailer {
  private readonly parts: AccountMailerParts
  private readonly worker: Worker
  private readonly inHand = new Map<string, Promise<void>>()

  constructor(parts: AccountMailerParts) {
    this.parts = parts
    this.worker = new Worker({
      ...parts,
      failure: 'account mail not read',
      runPiece: stopping => this.begin(stopping),
      version: () => parts.database.changes.version('account_mail'),
    })
  }

  /** Sends a link, in the transaction of what it is for. */
  async enqueue(tx: Tx, { kind, recipient, operatorId, invitationId }: WantedAccountMail): Promise<void> {
    const createdAt = this.parts.clock.now()
    await insertAccountMail(tx.db, {
      id: this.parts.newId(),
      kind,
      recipient,
      operatorId: operatorId ?? null,
      invitationId: invitationId ?? null,
      createdAt,
      expiresAt: createdAt + RETRIED_MS[kind],
    })
    tx.onCommit(() => this.worker.wake())
  }

  async run(stopping: AbortSignal): Promise<void> {
    await this.worker.run(stopping)
    await Promise.all(this.inHand.values())
  }

  /** @returns when the next mail is due */
  private async begin(stopping: AbortSignal): Promise<number> {
    const { database, clock } = this.parts
    const now = clock.now()
    const room = MAX_IN_HAND - this.inHand.size
    // A claim moves the due time, so mail in progress is not found again.
    const due = room > 0 ? await listDueAccountMails(database.reader, now, room) : []
    for (const mail of due) {
      const link = newLink(this.parts.random)
      if (stopping.aborted || !(await this.claim(mail, link))) continue
      const attempt = this.attempt(mail, link, stopping).finally(() => {
        this.inHand.delete(mail.id)
        this.worker.wake()
      })
      this.inHand.set(mail.id, attempt)
    }
    this.worker.resetBackoff()
    // The end of an attempt wakes it.
    if (this.inHand.size >= MAX_IN_HAND) return WHEN_WOKEN
    return (await soonestAccountMail(database.reader)) ?? WHEN_WOKEN
  }

  /** Begins an attempt, and makes its link the only one that was mailed for this. */
  private claim(mail: AccountMail, link: string): Promise<boolean> {
    const { database, clock } = this.parts
    const { kind, operatorId, invitationId } = mail
    const now = clock.now()
    return database.write(async tx => {
      if (!(await claimAccountMail(tx.db, mail, now + CLAIM_MS))) return false
      if (invitationId !== null) return setInvitationLink(tx.db, invitationId, hashToken(link))
      if (operatorId === null || kind === 'join') return false
      await deleteMailedLinks(tx.db, operatorId)
      const linkKind = kind === 'lost' ? 'reset' : kind
      const expiresAt = now + LINK_LIFETIME_MS[linkKind]
      await insertLink(tx.db, {
        tokenHash: hashToken(link),
        operatorId,
        kind: linkKind,
        expiresAt,
        isMailed: true,
      })
      return true
    })
  }

  private async attempt(mail: AccountMail, link: string, stopping: AbortSignal): Promise<void> {
    const { database, log } = this.parts
    const posted = await this.post(mail, link, stopping)
    const result = this.resultOf(mail, posted, stopping)
    try {
      await database.write(tx => recordAccountMail(tx.db, mail.id, result))
    } catch (error) {
      // It is tried again when the claim ends.
      log.error('account mail result not stored', { messageId: mail.id, error: describeError(error) })
    }
  }

  private async post(mail: AccountMail, link: string, stopping: AbortSignal): Promise<Posted> {
    const { clock, log, publicUrl, postAccountMail } = this.parts
    const { id, recipient, createdAt } = mail
    const url = signInUrl(publicUrl, link)
    const expiry = new AbortController()
    const timer = clock.after(ATTEMPT_MS, () => expiry.abort())
    try {
      const { subject, message } = await this.compose(mail, url)
      const attempt = mail.attempts + 1
      const letter = { id, recipient, attempt, createdAt, subject, message }
      const posted = await postAccountMail(letter, AbortSignal.any([stopping, expiry.signal]))
      const fields = { messageId: id, recipient, attempt, summary: posted.reason }
      // Nothing is delivered there, and this is the only place where the link can be read.
      if (posted.kind === 'delivered' && posted.isCaptured)
        log.info('account mail captured', { recipient, link: url })
      else if (posted.kind === 'delivered') log.info('account mail delivered', fields)
      else if (posted.kind === 'deferred') log.info('account mail deferred', fields)
      else log.warn('account mail failed', fields)
      return posted
    } catch (error) {
      log.error('account mail not attempted', { messageId: id, error: describeError(error) })
      return { kind: 'deferred', reason: 'internal error; see the log' }
    } finally {
      timer.cancel()
    }
  }

  private resultOf(
    { attempts, expiresAt }: AccountMail,
    posted: Posted,
    stopping: AbortSignal,
  ): AccountMailResult {
    const { clock, random } = this.parts
    const now = clock.now()
    const reason = posted.reason.slice(0, MAX_REASON)
    if (posted.kind !== 'deferred')
      return { state: posted.kind, reason, nextAttemptAt: null, finishedAt: now }
    const planned = retryDelayMs(RETRY, attempts + 1, random.fraction())
    const delay = stopping.aborted ? 0 : Math.max(planned, Math.min(posted.retryAfterMs ?? 0, RETRY.maxMs))
    if (now + delay >= expiresAt) return { state: 'failed', reason, nextAttemptAt: null, finishedAt: now }
    return { state: 'waiting', reason, nextAttemptAt: now + delay, finishedAt: null }
  }

  private async compose({ id, kind, recipient }: AccountMail, url: string) {
    const { hostname, accountMailFrom, clock } = this.parts
    const { subject, text, html } = letterOf(kind, hostname, url)
    const message = await composeNotice({
      from: { name: 'Postroad', address: accountMailFrom },
      to: recipient,
      subject,
      text,
      html,
      messageId: `${id}@${hostname}`,
      date: clock.now(),
    })
    return { subject, message }
  }
}

function letterOf(
  kind: AccountMailKind,
  hostname: string,
  url: string,
): { readonly subject: string; readonly text: string; readonly html: string } {
  const { subject, reason, request } = TEXTS[kind](hostname)
  return {
    subject,
    text: `${reason}\n${request}\n\n${url}\n`,
    html: `<p>${escapeHtml(reason)} ${escapeHtml(request)}</p><p><a href="${escapeHtml(url)}">${escapeHtml(url)}</a></p>`,
  }
}

const IGNORE = 'If you did not expect this mail, ignore it.'

/** By hostname. Operators of a workspace choose no word of it. */
const TEXTS: Readonly<
  Record<
    AccountMailKind,
    (hostname: string) => { readonly subject: string; readonly reason: string; readonly request: string }
  >
> = {
  invitation: hostname => ({
    subject: `Your account on ${hostname}`,
    reason: `You were given an account on the mail server ${hostname}.`,
    request: `Open this link within 7 days to sign in and set a password. It works once. ${IGNORE}`,
  }),
  join: hostname => ({
    subject: `Invitation to ${hostname}`,
    reason: `You were invited to a workspace on the mail server ${hostname}.`,
    request: `Open this link within 7 days to see the invitation and accept it. ${IGNORE}`,
  }),
  reset: hostname => ({
    subject: `Sign in to ${hostname} again`,
    reason: `Your sign-in to the mail server ${hostname} was reset.`,
    request: 'Open this link within an hour to sign in and set a password. It works once.',
  }),
  lost: hostname => ({
    subject: `Sign in to ${hostname}`,
    reason: `Somebody, probably you, asked for a link to sign in to the mail server ${hostname}.`,
    request: `Open this link within an hour, then set a new password. It works once. If you did not ask for it, ignore this mail: your password still works.`,
  }),
}
