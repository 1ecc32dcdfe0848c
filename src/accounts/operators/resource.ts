/** Operators as a resource of the admin API: sign-in, their own accounts, and managing others; retention of sessions and links. */
import { resource } from '../../resource/resource.js'
import { retentionRule } from '../../resource/retention.js'
import { SESSION_LIFETIME } from './access.js'
import { meRoutes } from './me-routes.js'
import { operatorRoutes, type OperatorRouteParts } from './operator-routes.js'
import { deleteChallengesBefore } from './challenge-store.js'
import { passkeyRoutes } from './passkey-routes.js'
import { deleteLinksBefore, deleteSessionsBefore } from './session-store.js'
import { oidcRoutes, type OidcRouteParts } from './oidc/oidc-routes.js'
import { OIDC_SECTION } from './oidc/settings.js'
import { sessionRoutes, type SessionRouteParts } from './session-routes.js'

export const operators = resource({
  section: { name: 'oidc', schema: OIDC_SECTION },
  chapters: {
    'Sign-in': 'Sessions of operators.',
    'Your account': 'Your own name, credentials, sessions and tokens.',
    Operators: 'Accounts of the people who run the appliance, and their roles.',
  },
  open: (parts: OperatorRouteParts & SessionRouteParts & OidcRouteParts, settings) => ({
    routes: [
      ...sessionRoutes(parts),
      ...oidcRoutes(parts, settings),
      ...passkeyRoutes(parts),
      ...meRoutes({ ...parts, oidcIssuer: settings.issuer }),
      ...operatorRoutes(parts),
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
    ],
  }),
})
