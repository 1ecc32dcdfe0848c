/** The navigation, as far as an operator may see it. Pure. */
import { SCREENS, type Screen } from '../screens'
import { maySee, type Grant } from '../state/granted'

export const GROUPS = ['top', 'mail', 'audience', 'sending', 'appliance'] as const
export type Group = (typeof GROUPS)[number]

export type Named = { readonly screen: Screen; readonly nav: NonNullable<Screen['nav']> }

export function namedScreens(held: readonly Grant[]): Named[] {
  const screens: readonly Screen[] = SCREENS
  return screens.flatMap(screen => (screen.nav && maySee(held, screen) ? [{ screen, nav: screen.nav }] : []))
}

export function screensOf(group: Group, held: readonly Grant[]): Named[] {
  return namedScreens(held).filter(({ nav }) => nav.group === group)
}
