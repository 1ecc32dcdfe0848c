/** Renders blocks that contain no other blocks as table rows. Pure. Never throws. */
import { authored, row, style, table } from './markup.js'
import type { Settings } from './block.js'
import type { ContentOf, PlainType } from './structure.js'

type Render<T extends PlainType> = (content: ContentOf<T>, settings: Settings, width: number) => string

/** Default button colours. */
const ACCENT = '#2563eb'
const ON_ACCENT = '#ffffff'
const HEADING_SIZES = { 1: 28, 2: 22, 3: 18 } as const

/** @param width of the enclosing column, pixels */
export const RENDER_PLAIN: { readonly [T in PlainType]: Render<T> } = {
  header: ({ text = '', level = 1, alignment = 'left', color }, settings) => {
    const size = HEADING_SIZES[level]
    const rules = { margin: '0', 'font-size': size, ...lines(size * 1.25), ...letters(settings, color) }
    return row(`<h${level}${style(rules)}>${authored(text)}</h${level}>`, alignment)
  },

  text: ({ html = '', alignment = 'left', color }, settings) =>
    row(`<div${style(body(settings, color))}>${html}</div>`, alignment, { 'text-align': alignment }),

  button: (content, settings) => row(button(content, settings), content.alignment ?? 'center'),

  image: ({ src = '', alt = '', width = 'auto', alignment = 'center', url }, settings, column) => {
    if (src === '') return ''
    const isFull = width === 'full'
    const pixels = typeof width === 'number' ? Math.min(width, column) : isFull ? column : undefined
    return row(image({ src, alt, pixels, alignment }, url, settings), alignment, {
      padding: isFull ? '0' : '8px 24px',
    })
  },

  divider: ({ color = '#dddddd', thickness = 1, style: line = 'solid', width = 100 }) => {
    const rules = { 'border-top': `${thickness}px ${line} ${color}`, 'font-size': '0', 'line-height': '0' }
    const cell = `<tr><td${style(rules)}>&nbsp;</td></tr>`
    return row(table(cell, ` width="${width}%"`), 'center')
  },

  spacer: ({ height = 20 }) =>
    `<tr><td height="${height}"${style({ height, 'font-size': '0', ...lines(height) })}>&nbsp;</td></tr>\n`,

  html: ({ html = '' }) => `<tr><td>${html}</td></tr>\n`,

  social: ({ links = [], alignment = 'center', color }, settings) => {
    const look = { ...body(settings, color), 'text-decoration': 'underline' }
    const shown = links.map(({ platform, url, label = platform, icon }) => {
      const inner =
        icon === undefined ? authored(label) : picture({ src: icon, alt: label, pixels: 24 }, settings)
      return `<a href="${authored(url)}"${style(look)}>${inner}</a>`
    })
    return shown.length === 0 ? '' : row(shown.join(' &nbsp; '), alignment, body(settings, color))
  },

  hero: (content, settings, width) => {
    const {
      title = '',
      text = '',
      src,
      alt = '',
      backgroundColor = '#1f2937',
      textColor = '#ffffff',
    } = content
    const { alignment = 'center', buttonText, buttonUrl, buttonColor = ACCENT } = content
    const heading = { margin: '0 0 12px', 'font-size': 32, ...lines(40), ...letters(settings, textColor) }
    const inner = [
      src === undefined
        ? ''
        : row(picture({ src, alt, pixels: width, color: textColor }, settings), 'center', { padding: '0' }),
      title === ''
        ? ''
        : row(`<h1${style(heading)}>${authored(title)}</h1>`, alignment, { padding: '32px 24px 0' }),
      text === '' ? '' : row(`<div${style(body(settings, textColor))}>${authored(text)}</div>`, alignment),
      buttonText === undefined || buttonUrl === undefined
        ? ''
        : row(
            button({ text: buttonText, url: buttonUrl, backgroundColor: buttonColor }, settings),
            alignment,
            {
              padding: '8px 24px 32px',
            },
          ),
    ]
    return `<tr><td bgcolor="${backgroundColor}"${style({ 'background-color': backgroundColor })}>${table(inner.join(''))}</td></tr>\n`
  },

  profile: ({ src, name = '', role = '', text = '', url, alignment = 'center' }, settings) => {
    const small = { ...body(settings, undefined), 'font-size': 13, ...lines(20) }
    const strong = { ...body(settings, undefined), 'font-weight': 'bold' }
    // The name is already shown below; only a link needs it as alternative text.
    const alt = url === undefined ? '' : name
    const inner = [
      src === undefined
        ? ''
        : image({ src, alt, pixels: 96, alignment, rules: { 'border-radius': '50%' } }, url, settings),
      name === '' ? '' : `<div${style(strong)}>${authored(name)}</div>`,
      role === '' ? '' : `<div${style(small)}>${authored(role)}</div>`,
      text === '' ? '' : `<div${style(body(settings, undefined))}>${authored(text)}</div>`,
    ]
    return row(inner.join(''), alignment, { 'text-align': alignment })
  },
}

/** A table cell with a background, since Outlook ignores padding on links; elsewhere the link's padding makes the whole button clickable. */
function button(content: ContentOf<'button'>, settings: Settings): string {
  const { text = '', url = '', backgroundColor = ACCENT, textColor = ON_ACCENT, borderRadius = 4 } = content
  const link = {
    ...letters(settings, textColor),
    'font-size': 16,
    ...lines(20),
    'font-weight': 'bold',
    'text-decoration': 'none',
    display: 'inline-block',
    padding: '12px 24px',
    'mso-padding-alt': '0',
  }
  const cell = {
    'border-radius': borderRadius,
    'background-color': backgroundColor,
    'mso-padding-alt': '12px 24px',
  }
  const width = content.fullWidth === true ? ' width="100%"' : ''
  return table(
    `<tr><td align="center" bgcolor="${backgroundColor}"${style(cell)}><a href="${authored(url)}"${style(link)}>${authored(text)}</a></td></tr>`,
    width,
  )
}

interface Picture {
  readonly src: string
  readonly alt: string
  /** Absent for the image's own size. */
  readonly pixels?: number | undefined
  /** Colour of the alternative text. */
  readonly color?: string | undefined
  readonly alignment?: keyof typeof MARGINS
  readonly rules?: Readonly<Record<string, string>>
}

/** Block elements ignore `text-align`. */
const MARGINS = { left: '0 auto 0 0', center: '0 auto', right: '0 0 0 auto' } as const

function image(shown: Picture, url: string | undefined, settings: Settings): string {
  const inner = picture(shown, settings)
  return url === undefined
    ? inner
    : `<a href="${authored(url)}"${style({ 'text-decoration': 'none' })}>${inner}</a>`
}

/** Width from which an image may exceed a phone's column, pixels. */
const FLUID_FROM = 200

/**
 * The width attribute is for Outlook. Elsewhere a wide image fills its cell up to that width: with `max-width:100%` alone, the
 * alternative text of an image that is not loaded would stretch the mail beyond a phone's screen.
 */
function picture({ src, alt, pixels, color, alignment, rules }: Picture, settings: Settings): string {
  const width = pixels === undefined ? undefined : Math.round(pixels)
  const isFluid = width !== undefined && width >= FLUID_FROM
  const look = {
    display: 'block',
    border: '0',
    ...(isFluid ? { width: '100%', 'max-width': width } : { 'max-width': '100%' }),
    height: 'auto',
    ...(alignment === undefined ? {} : { margin: MARGINS[alignment] }),
    ...letters(settings, color),
    'font-size': 14,
    ...lines(20),
    ...rules,
  }
  const attribute = width === undefined ? '' : ` width="${width}"`
  return `<img src="${authored(src)}" alt="${authored(alt)}"${attribute}${style(look)}>`
}

function letters({ fontFamily, defaultTextColor }: Settings, color: string | undefined) {
  return { 'font-family': fontFamily, color: color ?? defaultTextColor }
}

function body(settings: Settings, color: string | undefined) {
  return { ...letters(settings, color), 'font-size': 16, ...lines(24) }
}

function lines(height: number) {
  return { 'line-height': Math.round(height), 'mso-line-height-rule': 'exactly' }
}
