/** The navigation, as far as the operator may see it. */
import { SCREENS, type Screen } from '../screens'
import { hasRole, hasRoleSomewhere } from '../state/session.svelte'

export const GROUPS = ['top', 'mail', 'audience', 'sending', 'appliance'] as const
export type Group = (typeof GROUPS)[number]

export type Named = { readonly screen: Screen; readonly nav: NonNullable<Screen['nav']> }

const EVERYBODY = ['owner', 'operator', 'marketer', 'viewer'] as const

export function namedScreens(): Named[] {
  return SCREENS.flatMap(screen => (screen.nav ? [{ screen, nav: screen.nav }] : []))
}

export function maySee({ roles = EVERYBODY, isAppliance = false }: Screen): boolean {
  return isAppliance ? hasRole(roles) : hasRoleSomewhere(roles)
}

export function screensOf(group: Group): Named[] {
  return namedScreens().filter(({ screen, nav }) => nav.group === group && maySee(screen))
}
