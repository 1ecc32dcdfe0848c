/** Blocks as text, for the clipboard and between templates. */
import { parseBlock, serialiseBlock, withNewIds, type Block } from './document.js'
import { isBlockType } from './fields.js'

const KIND = 'template-blocks'

export function copyText(blocks: readonly Block[]): string {
  return JSON.stringify({ kind: KIND, blocks: blocks.map(serialiseBlock) })
}

/** @returns the blocks with ids of their own; none if the text holds no blocks */
export function pastedBlocks(text: string, newId: () => string): Block[] {
  const blocks = readBlocks(text)
  return blocks.map(block => withNewIds(parseBlock(block), newId))
}

function readBlocks(text: string): unknown[] {
  try {
    const value = JSON.parse(text) as { kind?: unknown; blocks?: unknown } | null
    if (typeof value !== 'object' || value?.kind !== KIND || !Array.isArray(value.blocks)) return []
    return value.blocks.filter((one: unknown) => isBlockType((one as { type?: unknown } | null)?.type))
  } catch {
    return []
  }
}
