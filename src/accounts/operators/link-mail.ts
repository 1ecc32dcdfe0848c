/** One-time links of operators, and the mail that brings them. It is sent through message intake. */
import { AppError } from '../../core/errors.js'
import { escapeHtml } from '../../core/escape-html.js'
import type { Database, Tx } from '../../db/database.js'
import { ALL_WORKSPACES } from '../../http/roles.js'
import { listWorkspaces } from '../workspace-store.js'
import type { SendLink } from './operators.js'
import type { LinkKind } from './session-store.js'

interface RequestedMail {
  readonly to: string
  readonly subject: string
  readonly html: string
  readonly text: string
}

export interface LinkMailParts {
  readonly database: Database
  readonly publicUrl: string
  readonly hostname: string
  /** Submits mail from the workspace's default sender, or from `mta.shared_address` if it has none. */
  readonly openAccountMail: (workspaceId: string) => Promise<(tx: Tx, mail: RequestedMail) => Promise<void>>
}

/** Where the console takes a one-time link. The token is in the fragment, which browsers send to no server. */
export function signInUrl(publicUrl: string, token: string): string {
  return `${publicUrl.replace(/\/$/, '')}/console/#/link/${token}`
}

/** @throws AppError missing_from_email and others of `openRequestedMail` */
export async function openLinkMail(
  { database, hostname, publicUrl, openAccountMail }: LinkMailParts,
  workspaceId: string,
  kind: Exclude<LinkKind, 'sign_in'>,
): Promise<SendLink> {
  const workspaces = await listWorkspaces(database.reader)
  const from = workspaces.find(({ id }) => workspaceId === ALL_WORKSPACES || id === workspaceId)
  if (!from) throw new AppError('conflict', 'there is no workspace to send the mail from')
  const send = await openAccountMail(from.id).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.code !== 'missing_from_email') throw error
    throw new AppError(
      'missing_from_email',
      `the mail needs a sender: set default_from_email of the workspace ${from.name}, or mta.shared_address; ` +
        'or pass on the link yourself, without mail',
    )
  })
  return (tx, { email }, link) =>
    send(tx, { to: email, ...linkMail(kind, hostname, signInUrl(publicUrl, link)) })
}

function linkMail(
  kind: Exclude<LinkKind, 'sign_in'>,
  hostname: string,
  url: string,
): Omit<RequestedMail, 'to'> {
  const [subject, reason, lifetime] =
    kind === 'invitation'
      ? [`Your account on ${hostname}`, `You were given an account on the mail server ${hostname}.`, '7 days']
      : [`Sign in to ${hostname} again`, `Your sign-in to the mail server ${hostname} was reset.`, 'an hour']
  const request = `Open this link within ${lifetime} to sign in and set a password. It works once.`
  return {
    subject,
    text: `${reason}\n${request}\n\n${url}\n`,
    html: `<p>${escapeHtml(reason)} ${escapeHtml(request)}</p><p><a href="${escapeHtml(url)}">${escapeHtml(url)}</a></p>`,
  }
}
