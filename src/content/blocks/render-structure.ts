/**
 * Renders the visual editor's structure to HTML: a table-based column with a maximum width that shrinks on phones.
 *
 * The result is an ordinary merge template. Columns stand side by side if they fit and stack otherwise, without media queries, which some
 * clients drop; Outlook for Windows cannot wrap and gets a separate table. Pure. Never throws.
 *
 * The markup is what all clients draw alike: table layout with width attributes (Outlook for Windows renders with Word's engine, which
 * lacks `max-width` and `float`); `role="presentation"` for screen readers; inline styles (some Gmail apps drop `<style>`);
 * `mso-line-height-rule` for line heights in Outlook; images with `display:block` and no border. Word's capabilities: Microsoft's "Word
 * 2007 HTML and CSS Rendering Capabilities in Outlook 2007", hteumeuleu.com/2020/outlook-rendering-engine.
 */
import { escapeHtml } from '../../core/escape-html.js'
import type { Block, Column, Settings, Structure } from './read-structure.js'
import type { ContentOf, PlainType } from './structure.js'

/** Transforms a block's HTML; `locate-fault.ts` marks its position. */
type Mark = (block: Block, html: string) => string

export function renderStructure({ settings, blocks }: Structure, mark: Mark = (_, html) => html): string {
  const { contentWidth, backgroundColor, contentBackgroundColor } = settings
  const rows = new Renderer(settings, mark).all(blocks, contentWidth)
  const column = { width: '100%', 'max-width': contentWidth, 'background-color': contentBackgroundColor }
  const content = table(
    rows,
    ` width="100%" align="center" bgcolor="${contentBackgroundColor}"${style(column)}`,
  )
  const frame = forOutlook(
    `<table role="presentation" width="${contentWidth}" align="center" cellpadding="0" cellspacing="0" border="0"><tr><td>`,
  )
  const outer = `<tr><td align="center"${style({ padding: '24px 0' })}>${frame}${content}${forOutlook('</td></tr></table>')}</td></tr>`
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light">
<meta name="format-detection" content="telephone=no, date=no, address=no, email=no">
<title></title>
</head>
<body${style({ margin: '0', padding: '0', 'background-color': backgroundColor })}>
${table(outer, ` width="100%" bgcolor="${backgroundColor}"`)}
</body>
</html>
`
}

const CARD_MARGIN = 16

class Renderer {
  private readonly settings: Settings
  private readonly mark: Mark

  constructor(settings: Settings, mark: Mark) {
    this.settings = settings
    this.mark = mark
  }

  /** @param width of the enclosing column, pixels */
  all(blocks: readonly Block[], width: number): string {
    return blocks.map(block => this.mark(block, this.one(block, width))).join('')
  }

  private one(block: Block, width: number): string {
    switch (block.type) {
      case 'columns':
        return this.columns(block.columns, width)
      case 'dynamic':
        return block.source === '' ? '' : `{{#each ${block.source}}}${this.all(block.blocks, width)}{{/each}}`
      case 'conditional': {
        const { condition, blocks, elseBlocks } = block
        if (condition === undefined) return ''
        const otherwise = elseBlocks.length === 0 ? '' : `{{else}}${this.all(elseBlocks, width)}`
        const { tag, expression } = condition
        return `{{#${tag} ${expression}}}${this.all(blocks, width)}${otherwise}{{/${tag}}}`
      }
      case 'dropshadow':
        return this.card(block, width)
      default:
        return renderPlain(block, this.settings, width)
    }
  }

  private card(
    {
      blocks,
      blur,
      borderRadius,
      backgroundColor = this.settings.contentBackgroundColor,
    }: Extract<Block, { type: 'dropshadow' }>,
    width: number,
  ): string {
    const look = {
      'background-color': backgroundColor,
      'border-radius': borderRadius,
      'box-shadow': `0 2px ${blur}px rgba(0,0,0,0.2)`,
      // For clients without shadows.
      border: '1px solid #e5e5e5',
    }
    const inner = table(this.all(blocks, width - 2 * CARD_MARGIN - 2))
    return `<tr><td${style({ padding: `${CARD_MARGIN}px` })}>${table(`<tr><td bgcolor="${backgroundColor}"${style(look)}>${inner}</td></tr>`)}</td></tr>\n`
  }

  /** Fluid columns: their own width if they fit side by side, else stacked at full width. */
  private columns(columns: readonly Column[], width: number): string {
    if (columns.length === 0) return ''
    const total = columns.reduce((sum, column) => sum + column.width, 0)
    const cells = columns.map(column => {
      const pixels = Math.floor((width * column.width) / total)
      const look = { display: 'inline-block', width: '100%', 'max-width': pixels, 'vertical-align': 'top' }
      const inner = table(this.all(column.blocks, pixels))
      return `${forOutlook(`<td width="${pixels}" valign="top">`)}<div${style(look)}>${inner}</div>${forOutlook('</td>')}`
    })
    const open = forOutlook(
      `<table role="presentation" width="${width}" cellpadding="0" cellspacing="0" border="0"><tr>`,
    )
    // A font size of 0 hides the whitespace between inline blocks, which would push the last column below.
    return `<tr><td align="center"${style({ 'font-size': '0', 'text-align': 'center' })}>${open}${cells.join('')}${forOutlook('</tr></table>')}</td></tr>\n`
  }
}

function renderPlain(block: Extract<Block, { type: PlainType }>, settings: Settings, width: number): string {
  // TypeScript cannot relate the function and the content to the same block type.
  const render = RENDER_PLAIN[block.type] as (content: unknown, settings: Settings, width: number) => string
  return render(block.content, settings, width)
}

type Render<T extends PlainType> = (content: ContentOf<T>, settings: Settings, width: number) => string

const ACCENT = '#2563eb'
const ON_ACCENT = '#ffffff'
const HEADING_SIZES = { 1: 28, 2: 22, 3: 18 } as const

/** @param width of the enclosing column, pixels */
const RENDER_PLAIN: { readonly [T in PlainType]: Render<T> } = {
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
 * The width attribute is for Outlook. Elsewhere a wide image fills its cell up to that width: with `max-width:100%` alone, the alternative
 * text of an image that is not loaded would stretch the mail beyond a phone's screen.
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

/** Escapes the author's text except for merge tags, which are escaped when they are filled in. */
function authored(text: string): string {
  return text
    .split(/(\{\{\{?[^{}]*\}?\}\})/)
    .map((piece, index) => (index % 2 === 1 ? piece : escapeHtml(piece)))
    .join('')
}

function style(rules: Readonly<Record<string, string | number | undefined>>): string {
  const written = Object.entries(rules).flatMap(([name, value]) =>
    value === undefined || value === ''
      ? []
      : [`${name}:${typeof value === 'number' ? `${value}px` : value}`],
  )
  return ` style="${written.join(';').replaceAll('"', "'")}"`
}

function row(
  inner: string,
  align: string,
  rules: Readonly<Record<string, string | number | undefined>> = {},
): string {
  return `<tr><td align="${align}"${style({ padding: '8px 24px', ...rules })}>${inner}</td></tr>\n`
}

function table(inner: string, attributes = ' width="100%"'): string {
  return `<table role="presentation"${attributes} cellpadding="0" cellspacing="0" border="0">${inner}</table>`
}

function forOutlook(markup: string): string {
  return `<!--[if mso]>${markup}<![endif]-->`
}
