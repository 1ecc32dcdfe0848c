/** Attempts at a `LoginGuard`, as its users make them. */
import type { FailureEffect, Login, LoginGuard } from '../../src/accounts/login-guard.js'

/** @returns the effect, or undefined if the attempt was refused before anything was checked */
export async function fail(
  guard: LoginGuard,
  address: string,
  login: Login,
): Promise<FailureEffect | undefined> {
  const attempt = await guard.reserve(address, login)
  return typeof attempt === 'number' ? undefined : attempt.failed()
}

/** @returns how long it is refused, ms; 0 if it would be checked */
export async function refusedMs(guard: LoginGuard, address: string, login: Login): Promise<number> {
  const attempt = await guard.reserve(address, login)
  if (typeof attempt === 'number') return attempt
  await attempt.release()
  return 0
}
