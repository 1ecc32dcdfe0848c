/** Who did something, in words. */
import type { components } from '#api/admin'
import { tr } from '../../i18n/i18n'

export function actorText({
  type,
  name,
  peer,
  id,
}: components['schemas']['LoggedActivity']['actor']): string {
  const who = name ?? id ?? peer
  return who === undefined || who === ''
    ? tr().activity.actorType[type]
    : `${who} (${tr().activity.actorType[type]})`
}
