/** Lockouts after failed logins, by SMTP and by operators, in the admin API. They are not kept for long, and with SQLite in memory only. */
import Type from 'typebox'
import { AppError } from '../core/errors.js'
import { isoTime } from '../core/moments.js'
import type { Services } from '../db/services.js'
import { recordAction } from '../events/activity-store.js'
import { adminListRoute, adminRoute } from '../http/admin-route.js'
import { Moment, TextOrNull } from '../http/answer/answer-fields.js'
import { listingOf, PageQuery } from '../http/pagination.js'
import type { Route } from '../http/route.js'
import { ipVersion } from '../world/net/ip-address.js'
import type { LoginGuard, LoginLock } from './login-guard.js'

export interface LoginLockParts extends Pick<Services, 'database' | 'clock'> {
  readonly guard: LoginGuard
}

const LockSchema = Type.Object(
  {
    scope: Type.Enum(['address', 'account', 'account_at_address'], {
      description:
        '`address`: failed logins from it are delayed; `account`: locked everywhere; `account_at_address`: locked for one address.',
    }),
    address: TextOrNull({ description: 'IPv4 address or IPv6 /64.' }),
    account: TextOrNull({ description: 'Email address of an operator; null for an API key or a passkey.' }),
    failures: Type.Integer(),
    locked_until: Moment(),
  },
  { title: 'LoginLock' },
)

export function loginLockRoutes({ database, clock, guard }: LoginLockParts): Route[] {
  return [
    adminListRoute({
      method: 'GET',
      path: '/login-locks',
      access: { permission: 'system:read', scope: 'appliance' },
      operationId: 'listLoginLocks',
      chapter: 'Login locks',
      summary: 'List locked accounts and addresses.',
      query: PageQuery,
      item: LockSchema,
      async handle(_request, page) {
        const now = clock.now()
        const toApi = (lock: LoginLock) => ({
          scope: lock.scope,
          address: lock.address ?? null,
          account: lock.account ?? null,
          failures: lock.failures,
          locked_until: isoTime(now + lock.remainingMs),
        })
        const keyOf = ({ scope, address, account }: LoginLock) => `${scope} ${address ?? account ?? ''}`
        return listingOf(await guard.locks(), page, toApi, keyOf)
      },
    }),
    adminRoute({
      method: 'POST',
      path: '/login-locks/unlock',
      access: { permission: 'system:write', scope: 'appliance' },
      operationId: 'unlockLogins',
      chapter: 'Login locks',
      summary: 'Clear failed logins of an address.',
      description: 'Also those of the accounts that failed there.',
      body: Type.Object(
        { address: Type.String({ maxLength: 64, description: 'IP address of the client.' }) },
        { additionalProperties: false },
      ),
      response: Type.Object(
        { unlocked: Type.Boolean({ description: 'False: the address had no failed logins.' }) },
        { title: 'LoginsUnlocked' },
      ),
      async handle({ operator, body: { address } }) {
        if (ipVersion(address) === 0)
          throw new AppError('validation_error', `${address} is not a valid IP address`, { path: 'address' })
        const unlocked = await guard.forgive(address)
        if (unlocked) await recordAction({ database, clock }, operator.actor, 'login.unlocked', address)
        return { unlocked }
      },
    }),
  ]
}
