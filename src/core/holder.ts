/**
 * On whose behalf the current work is done, for resources that several workspaces share (`fair-shares.ts`).
 *
 * Set once per request by the HTTP servers; follows promises, so that what a request waits for needs no parameter to know it. Work that
 * no request waits for is the appliance's.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** Shares are divided among owners, and those of an owner among its keys. */
export interface Holder {
  /** A workspace, or the network of a client that names none. */
  readonly owner: string
  /** An API key or operator, or the address of the client. */
  readonly key?: string
}

const APPLIANCE_WORK: Holder = { owner: 'appliance' }
const current = new AsyncLocalStorage<Holder>()

export function currentHolder(): Holder {
  return current.getStore() ?? APPLIANCE_WORK
}

export function actFor<T>(holder: Holder, work: () => T): T {
  return current.run(holder, work)
}
