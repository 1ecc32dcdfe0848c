/** One-time links of operators: their tokens, addresses and lifetimes. Pure. */
import type { Random } from '../../world/random.js'
import type { LinkKind } from './session-store.js'

const DAY_MS = 86_400_000

export const LINK_LIFETIME_MS: Readonly<Record<LinkKind, number>> = {
  sign_in: DAY_MS,
  invitation: 7 * DAY_MS,
  reset: 3_600_000,
}

/** How long the holder of an address has to accept a role. */
export const INVITATION_LIFETIME_MS = 7 * DAY_MS

/** @returns a token; only its hash is stored */
export function newLink(random: Random): string {
  return random.bytes(32).toString('base64url')
}

/** Where the console takes a one-time link. The token is in the fragment, which browsers send to no server. */
export function signInUrl(publicUrl: string, token: string): string {
  return `${publicUrl.replace(/\/$/, '')}/console/#/link/${token}`
}
