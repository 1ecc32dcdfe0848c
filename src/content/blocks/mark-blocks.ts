/** The HTML of blocks with marks around each, which stay in what is rendered from it: they say which block a piece is of. Pure. */
import { renderStructure } from './render-structure.js'
import type { Block, Structure } from './read-structure.js'

export interface MarkedHtml {
  readonly html: string
  /** By the number in their marks. */
  readonly blocks: readonly Block[]
}

export function markBlocks(structure: Structure): MarkedHtml {
  const blocks: Block[] = []
  const html = renderStructure(
    structure,
    (block, inner) => `\ue000b${blocks.push(block) - 1}\ue001${inner}\ue000/\ue001`,
  )
  return { html, blocks }
}

/** Private use characters: the number where a block begins, none where it ends. */
const MARKS = /\ue000(?:b(\d+)|\/)\ue001/g

/** Takes a text in pieces and tells which block each is in. A mark is within one piece. */
export class MarkReader {
  private readonly around: number[] = []

  /** Number of the innermost block; undefined outside of blocks. */
  get block(): number | undefined {
    return this.around.at(-1)
  }

  /** @param take called with the text between marks */
  read(text: string, take: (piece: string, block: number | undefined) => void): void {
    let from = 0
    for (const { 0: mark, 1: number, index } of text.matchAll(MARKS)) {
      take(text.slice(from, index), this.block)
      if (number === undefined) this.around.pop()
      else this.around.push(Number(number))
      from = index + mark.length
    }
    take(text.slice(from), this.block)
  }
}
