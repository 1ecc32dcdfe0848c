/**
 * Renders the visual editor's structure to HTML: a table-based column with a maximum width that shrinks on phones.
 *
 * Called when a template with a structure and no HTML is submitted; the result is an ordinary merge template. Columns are side by side
 * if they fit and stack otherwise, without media queries, which some clients drop; Outlook for Windows, which cannot wrap, gets a
 * table of its own. Pure. Never throws.
 */
import { forOutlook, style, table } from './markup.js'
import { RENDER_PLAIN } from './plain-blocks.js'
import type { Block, Column, Settings, Structure } from './block.js'
import type { PlainType } from './structure.js'

/** Transforms a block's HTML; `locate-fault.ts` marks its position. */
export type Mark = (block: Block, html: string) => string

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
