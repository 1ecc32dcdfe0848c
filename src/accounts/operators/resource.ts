/** Operators as a resource of the admin API: sign-in, their own accounts, and managing others; retention of sessions and links. */
import { resource } from '../../resource/resource.js'
import { retentionRule } from '../../resource/retention.js'
import type { OpenWindow } from '../../http/sliding-window.js'
import { SESSION_LIFETIME } from './access.js'
import { AccountMailer, type AccountMailerParts } from './account-mail.js'
import { AccountMailAllowance } from './account-mail-allowance.js'
import { deleteAccountMailsBefore } from './account-mail-store.js'
import { deleteInvitationsBefore } from './invitation-store.js'
import type { LinkMail } from './operators.js'
import { LostPasswords } from './lost-password.js'
import { meRoutes } from './me-routes.js'
import { operatorRoutes, type OperatorRouteParts } from './operator-routes.js'
import { deleteChallengesBefore } from './challenge-store.js'
import { passkeyRoutes } from './passkey-routes.js'
import { deleteLinksBefore, deleteSessionsBefore } from './session-store.js'
import { oidcRoutes, type OidcRouteParts } from './oidc/oidc-routes.js'
import { OIDC_SECTION } from './oidc/settings.js'
import { sessionRoutes, type SessionRouteParts } from './session-routes.js'

type OperatorParts = Omit<OperatorRouteParts, keyof LinkMail> &
  SessionRouteParts &
  OidcRouteParts &
  AccountMailerParts & { readonly openWindow?: OpenWindow | undefined }

const MAIL_KEPT_MS = 30 * 86_400_000

export const operators = resource({
  section: { name: 'oidc', schema: OIDC_SECTION },
  chapters: {
    'Sign-in': 'Sessions of operators.',
    'Your account': 'Your own name, credentials, sessions and tokens.',
    Operators: 'Accounts of the people who run the appliance, and their roles.',
  },
  open: (parts: OperatorParts, settings) => {
    const mailer = new AccountMailer(parts)
    const allowance = new AccountMailAllowance(parts.clock, parts.openWindow)
    const lostPasswords = new LostPasswords({ ...parts, mailer, allowance })
    const withOidc = { ...parts, oidcIssuer: settings.issuer }
    return {
      routes: [
        ...sessionRoutes({ ...parts, lostPasswords }),
        ...oidcRoutes(parts, settings),
        ...passkeyRoutes(withOidc),
        ...meRoutes(withOidc),
        ...operatorRoutes({ ...parts, mailer, allowance }),
      ],
      jobs: [
        {
          name: 'send account mail',
          schedule: '* * * * *',
          isRunAtStart: true,
          isHeldAfterRestore: true,
          run: stopping => mailer.run(stopping),
        },
      ],
      retention: [
        retentionRule({ what: 'operator sessions', keep: SESSION_LIFETIME.idleMs }, (db, before, limit) =>
          deleteSessionsBefore(
            db,
            {
              seenBefore: before,
              createdBefore: before + SESSION_LIFETIME.idleMs - SESSION_LIFETIME.maxMs,
            },
            limit,
          ),
        ),
        // Each has its own expiry time.
        retentionRule({ what: 'sign-in links', keep: 0 }, deleteLinksBefore),
        retentionRule({ what: 'sign-in challenges', keep: 0 }, deleteChallengesBefore),
        retentionRule({ what: 'operator invitations', keep: 0 }, deleteInvitationsBefore),
        retentionRule({ what: 'results of account mail', keep: MAIL_KEPT_MS }, deleteAccountMailsBefore),
      ],
      stop: () => lostPasswords.stop(),
    }
  },
})
