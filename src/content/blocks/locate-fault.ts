/**
 * Finds the block, and if possible the field, with a faulty merge tag: authors see their blocks, never the rendered HTML. Pure. Never
 * throws.
 */
import { MergeError } from '../merge/merge-tree.js'
import { parseTemplate } from '../merge/parse-template.js'
import { submittedPath } from './documented-names.js'
import { renderStructure } from './render-structure.js'
import type { Block, Structure } from './read-structure.js'

export interface LocatedFault {
  /** With the submitted field names. */
  readonly path: string
  readonly message: string
}

/** Private use characters around each block. */
const MARKS = /\ue000(\d+)\ue001|\ue002/g
/** Wraps a field of a `dynamic` block, so that `this` is valid. */
const LOOP = '{{#each x}}'

export function locateFault(structure: Structure, error: MergeError): LocatedFault {
  const around = blocksAround(structure)
  const block = around.at(-1)
  if (!block) return { path: 'json_structure', message: `json_structure: ${error.message}` }
  const isInLoop = around.slice(0, -1).some(({ type }) => type === 'dynamic')
  const content = [...block.place, 'content']
  const field = 'content' in block ? faultyField(block.content, content, isInLoop) : undefined
  const path = submittedPath((field?.place ?? content).join('.'), structure.written)
  const { message } = field?.error ?? new MergeError(error.reason)
  return { path, message: `${path}: ${message} (${block.type} block "${block.id}")` }
}

/** @returns the blocks around the first fault, innermost last */
function blocksAround(structure: Structure): readonly Block[] {
  const blocks: Block[] = []
  const html = renderStructure(
    structure,
    (block, inner) => `\ue000${blocks.push(block) - 1}\ue001${inner}\ue002`,
  )
  const error = errorOf(html)
  const around: Block[] = []
  for (const { 1: number, index } of html.matchAll(MARKS)) {
    if (index >= offsetOf(html, error)) break
    const block = number === undefined ? undefined : blocks[Number(number)]
    if (block) around.push(block)
    else around.pop()
  }
  return around
}

function faultyField(
  value: unknown,
  place: readonly string[],
  isInLoop: boolean,
): { readonly place: readonly string[]; readonly error: MergeError } | undefined {
  if (typeof value === 'string') {
    const error = errorOf(isInLoop ? `${LOOP}${value}{{/each}}` : value)
    if (!error) return undefined
    const { reason, line, column } = error
    const shift = isInLoop && line === 1 ? LOOP.length : 0
    return { place, error: new MergeError(reason, line, column - shift) }
  }
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, field] of Object.entries(value)) {
    const found = faultyField(field, [...place, name], isInLoop)
    if (found) return found
  }
  return undefined
}

function errorOf(html: string): MergeError | undefined {
  try {
    parseTemplate(html, 'html')
    return undefined
  } catch (error) {
    if (error instanceof MergeError) return error
    throw error
  }
}

/** @returns the error's offset; 0 if it has no position */
function offsetOf(text: string, error: MergeError | undefined): number {
  if (!error || error.line === 0) return 0
  let start = 0
  for (let line = 1; line < error.line; line++) start = text.indexOf('\n', start) + 1
  return start + error.column - 1
}
