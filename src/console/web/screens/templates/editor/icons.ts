import type { IconName } from '../../../lib/icons'
import type { BlockType } from '../document/fields'

export const icons: Readonly<Record<BlockType, IconName>> = {
  header: 'blockHeader',
  text: 'blockText',
  button: 'blockButton',
  image: 'blockImage',
  divider: 'blockDivider',
  spacer: 'blockSpacer',
  columns: 'blockColumns',
  social: 'blockSocial',
  dynamic: 'blockDynamic',
  conditional: 'blockConditional',
  hero: 'blockHero',
  profile: 'blockProfile',
  html: 'blockHtml',
  dropshadow: 'blockDropshadow',
}
