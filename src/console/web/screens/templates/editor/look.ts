/** A document's theme, with the renderer's defaults. */
import { settingOf, type EditorDocument } from '../document/document'
import { THEME_FIELDS } from '../document/fields'
import { STANDARD_FONT } from './fonts'

export interface Look {
  readonly fontFamily: string
  /** Pixels. */
  readonly contentWidth: number
  readonly backgroundColor: string
  readonly contentBackgroundColor: string
  readonly defaultTextColor: string
}

const HEX = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i

export function lookOf(document: EditorDocument): Look {
  const colour = (name: string): string => {
    const value = settingOf(document, name)
    const field = THEME_FIELDS.find(one => one.name === name)
    const standard = field?.kind === 'colour' ? (field.standard ?? '') : ''
    return typeof value === 'string' && HEX.test(value) ? value : standard
  }
  const font = settingOf(document, 'fontFamily')
  const width = settingOf(document, 'contentWidth')
  return {
    fontFamily: typeof font === 'string' && font !== '' ? font : STANDARD_FONT,
    contentWidth: typeof width === 'number' ? width : 600,
    backgroundColor: colour('backgroundColor'),
    contentBackgroundColor: colour('contentBackgroundColor'),
    defaultTextColor: colour('defaultTextColor'),
  }
}

/** The colour as `#rrggbb`, which colour fields of browsers need. */
export function longHex(colour: string): string {
  return colour.length === 4 ? colour.replace(/[0-9a-f]/gi, digit => digit + digit) : colour
}
