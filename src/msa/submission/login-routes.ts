/** `POST /logins/unlock`, on the control socket only: clears the failed logins of an address (`postroad login unlock`). */
import Type from 'typebox'
import { openRoute, type Route } from '../../http/route.js'
import type { LoginGuard } from './login-guard.js'

export const LOGIN_UNLOCK_PATH = '/logins/unlock'

export function loginRoutes(guard: LoginGuard): Route[] {
  return [
    openRoute({
      method: 'POST',
      path: LOGIN_UNLOCK_PATH,
      isAtRoot: true,
      access: 'control',
      summary: 'Clear the failed logins of an address.',
      body: Type.Object({ address: Type.String({ maxLength: 64 }) }, { additionalProperties: false }),
      response: Type.Object({ unlocked: Type.Boolean() }),
      handle: ({ body: { address } }) => Promise.resolve({ unlocked: guard.forgive(address) }),
    }),
  ]
}
