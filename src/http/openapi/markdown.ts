/**
 * Renders the guides of the API reference: paragraphs, headings, lists, tables, fenced code, links and code within text.
 *
 * Fences that follow each other are the same code in several languages. Only for texts of the program itself. Pure.
 */
import { escapeHtml } from '../../core/escape-html.js'
import { code, codeFigure } from './html.js'

/** After the language may stand a title. */
const FENCE = /^```(\w+)(?: (.+))?\n([^]*?)\n```$/

export function markdown(text: string): string {
  const blocks = blocksOf(text)
  let html = ''
  for (let at = 0; at < blocks.length; at++) {
    const fences: [string, string][] = []
    let title = ''
    for (let match = FENCE.exec(blocks[at] ?? ''); match; match = FENCE.exec(blocks[++at] ?? '')) {
      const [, language = '', named = TITLES[language], text = ''] = match
      title ||= named ?? ''
      fences.push([language, text])
    }
    if (fences.length > 0) {
      html += codeFigure(title, fences)
      at--
    } else html += block(blocks[at] ?? '')
  }
  return html
}

/** Of code that is in no programming language. */
const TITLES: Readonly<Record<string, string | undefined>> = { json: 'JSON', http: 'HTTP', sh: 'Shell' }

/** Blank lines separate blocks, except within fences. */
function blocksOf(text: string): string[] {
  return [...text.matchAll(/^```\w.*\n[^]*?\n```$|^(?!```).+(?:\n(?!```).+)*/gm)].map(([found]) => found)
}

export function slugOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}

export function headingsIn(text: string): { readonly id: string; readonly title: string }[] {
  return [...text.matchAll(/^## (.+)$/gm)].map(([, title = '']) => ({ id: slugOf(title), title }))
}

function block(text: string): string {
  const lines = text.split('\n')
  const [first = ''] = lines
  if (first.startsWith('## ')) {
    const title = first.slice(3)
    const id = slugOf(title)
    return `<h2 id="${id}"><a class="anchor" href="#${id}">${words(title)}</a></h2>`
  }
  if (first.startsWith('- ')) {
    const items = text.slice(2).split(/\n- /)
    return `<ul>${items.map(item => `<li>${words(item)}</li>`).join('')}</ul>`
  }
  if (first.startsWith('|')) return table(lines)
  return `<p>${words(text)}</p>`
}

function table([head = '', , ...rows]: readonly string[]): string {
  const cells = (row: string) => row.replace(/^\| ?| ?\|$/g, '').split(/ ?\| ?/)
  const header = cells(head)
    .map(cell => `<th scope="col">${words(cell)}</th>`)
    .join('')
  const body = rows.map(
    row =>
      `<tr>${cells(row)
        .map(cell => `<td>${words(cell)}</td>`)
        .join('')}</tr>`,
  )
  return `<div class="scroll" tabindex="0"><table><thead><tr>${header}</tr></thead><tbody>${body.join('')}</tbody></table></div>`
}

/** Code between backticks, `[links](/to)` and `**strong**`. */
function words(text: string): string {
  return text
    .split('`')
    .map((part, index) =>
      index % 2 === 1
        ? code(part)
        : escapeHtml(part)
            .replace(/\[([^[\]]+)\]\(([^()\s]+)\)/g, '<a href="$2">$1</a>')
            .replace(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>'),
    )
    .join('')
}
