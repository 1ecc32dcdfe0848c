/** The groups of the contract that no route serves yet. A route of one of them in the appliance makes the check fail. */
import type { NotBuilt } from './row.js'

export const NOT_BUILT: readonly NotBuilt[] = []
