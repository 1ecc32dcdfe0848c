/**
 * Renders the visual editor's structure to the HTML of a mail: a column of a fixed width that shrinks on phones, by tables.
 *
 * Called when a template with a structure and no HTML is submitted; what comes out is a merge template like any other. Columns stand
 * side by side where there is room for them and below each other where there is none, without media queries (some clients drop
 * them); Outlook for Windows, which cannot wrap, is given a table of its own. Pure. Fails: never throws.
 */
import { forOutlook, style, table } from './markup.js'
import { RENDER_PLAIN } from './plain-blocks.js'
import type { Block, Column, PlainType, Settings, Structure } from './structure.js'

export function renderStructure({ settings, blocks }: Structure): string {
  const { contentWidth, backgroundColor, contentBackgroundColor } = settings
  const rows = renderBlocks(blocks, settings, contentWidth)
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

/** @param width of the column that they stand in, pixels */
function renderBlocks(blocks: readonly Block[], settings: Settings, width: number): string {
  return blocks.map(block => renderBlock(block, settings, width)).join('')
}

function renderBlock(block: Block, settings: Settings, width: number): string {
  switch (block.type) {
    case 'columns':
      return renderColumns(block.columns, settings, width)
    case 'dynamic': {
      const inner = renderBlocks(block.blocks, settings, width)
      return block.source === '' ? '' : `{{#each ${block.source}}}${inner}{{/each}}`
    }
    case 'conditional': {
      const { condition, blocks, elseBlocks } = block
      const inner = renderBlocks(blocks, settings, width)
      const otherwise = elseBlocks.length === 0 ? '' : `{{else}}${renderBlocks(elseBlocks, settings, width)}`
      return condition === '' ? inner : `{{#if ${condition}}}${inner}${otherwise}{{/if}}`
    }
    case 'dropshadow': {
      const { blocks, blur, borderRadius, backgroundColor = settings.contentBackgroundColor } = block
      const look = {
        'background-color': backgroundColor,
        'border-radius': borderRadius,
        'box-shadow': `0 2px ${blur}px rgba(0,0,0,0.2)`,
        // Clients that draw no shadow get a line.
        border: '1px solid #e5e5e5',
      }
      const inner = table(renderBlocks(blocks, settings, width - 2 * CARD_MARGIN - 2))
      return `<tr><td${style({ padding: `${CARD_MARGIN}px` })}>${table(`<tr><td bgcolor="${backgroundColor}"${style(look)}>${inner}</td></tr>`)}</td></tr>\n`
    }
    default:
      return renderPlain(block, settings, width)
  }
}

const CARD_MARGIN = 16

function renderPlain(block: Extract<Block, { type: PlainType }>, settings: Settings, width: number): string {
  // TypeScript does not see that the function and the content belong to the same type of block.
  const render = RENDER_PLAIN[block.type] as (content: unknown, settings: Settings, width: number) => string
  return render(block.content, settings, width)
}

/** Fluid columns: as wide as they are asked to be where they fit, else as wide as the mail and below each other. */
function renderColumns(columns: readonly Column[], settings: Settings, width: number): string {
  if (columns.length === 0) return ''
  const total = columns.reduce((sum, column) => sum + column.width, 0)
  const cells = columns.map(column => {
    const pixels = Math.floor((width * column.width) / total)
    const look = { display: 'inline-block', width: '100%', 'max-width': pixels, 'vertical-align': 'top' }
    const inner = table(renderBlocks(column.blocks, settings, pixels))
    return `${forOutlook(`<td width="${pixels}" valign="top">`)}<div${style(look)}>${inner}</div>${forOutlook('</td>')}`
  })
  const open = forOutlook(
    `<table role="presentation" width="${width}" cellpadding="0" cellspacing="0" border="0"><tr>`,
  )
  // Spaces between inline blocks would be drawn, and the last column pushed below: a font size of 0 takes their width.
  return `<tr><td align="center"${style({ 'font-size': '0', 'text-align': 'center' })}>${open}${cells.join('')}${forOutlook('</tr></table>')}</td></tr>\n`
}
