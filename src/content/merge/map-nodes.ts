/** Maps the texts and values of a merge tree; conditions and loops are kept. Pure. */
import type { MergeNode, ValueNode } from './merge-tree.js'

export function mapLeaves(
  nodes: readonly MergeNode[],
  change: (leaf: string | ValueNode) => MergeNode,
): MergeNode[] {
  const all = (some: readonly MergeNode[]) => mapLeaves(some, change)
  return nodes.map(node => {
    if (typeof node === 'string') return change(node)
    switch (node.kind) {
      case 'value':
        return change(node)
      case 'choice':
        return { ...node, whenTrue: all(node.whenTrue), whenFalse: all(node.whenFalse) }
      case 'loop':
        return { ...node, body: all(node.body), whenEmpty: all(node.whenEmpty) }
      case 'url':
        return { ...node, parts: all(node.parts) }
      case 'link':
      case 'pixel':
        return node
    }
  })
}
